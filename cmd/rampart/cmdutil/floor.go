package cmdutil

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/policy"
	"github.com/rampart-gitops/rampart/policy/bundle"
	"github.com/rampart-gitops/rampart/policy/lint"
	"github.com/rampart-gitops/rampart/policy/parse"
	"github.com/rampart-gitops/rampart/policy/sandbox"
)

// policyFlags say which policies the bot has of its own, and which exceptions of a repository count.
type policyFlags struct {
	dirs, bundles, tokenFiles, keys, scopes, waivable []string
	algorithm                                         Choice
	caFile, cacheDir                                  string
	unsigned, plainHTTP                               bool
	interval, timeout, maxAge                         time.Duration
}

const variableBundleToken = "RAMPART_POLICY_BUNDLE_TOKEN"

// AddPolicies adds the flags of a command that asks policies. It goes last: --cache-dir may be a flag of the command
// already.
func AddPolicies(a *App, cmd *cobra.Command) {
	f := &a.policies
	f.algorithm = NewChoice("auto", append([]string{"auto"}, bundle.Algorithms()...)...)
	fs := cmd.Flags()
	if fs.Lookup("cache-dir") == nil {
		fs.String("cache-dir", "",
			"folder of what was downloaded, safe to delete (default: rampart in the user's cache folder)")
	}
	fs.StringSliceVar(&f.dirs, "policy-dir", nil,
		"directory of the bot's own policies, which a repository can add to and not change; repeatable")
	fs.StringSliceVar(&f.bundles, "policy-bundle", nil, "OPA bundle of the bot's own policies, NAME=URL; repeatable")
	fs.StringSliceVar(&f.keys, "policy-bundle-key", nil,
		"public key in PEM that bundles have to be signed with, [ID=]FILE; several, each with the ID that "+
			"signatures name")
	fs.Var(&f.algorithm, "policy-bundle-algorithm",
		"algorithm of the keys: auto (RS256, or ES256 and so on for a curve), "+strings.Join(bundle.Algorithms(), ", "))
	fs.StringSliceVar(&f.scopes, "policy-bundle-scope", nil, "scope that signatures have to name, [NAME=]SCOPE")
	fs.BoolVar(&f.unsigned, "policy-bundle-unsigned", false,
		"take bundles without a signature: who controls the server then controls the policies")
	fs.StringSliceVar(&f.tokenFiles, "policy-bundle-token-file", nil,
		"file with a bearer token for bundles, [NAME=]FILE (or "+variableBundleToken+")")
	fs.StringVar(&f.caFile, "policy-bundle-ca-file", "", "authorities to trust for bundles beside the system's, PEM")
	fs.BoolVar(&f.plainHTTP, "policy-bundle-plain-http", false,
		"take signed bundles over plain HTTP from other hosts than this one")
	fs.DurationVar(&f.interval, "policy-bundle-interval", bundle.DefaultInterval,
		"time between two looks at bundles and directories")
	fs.DurationVar(&f.timeout, "policy-bundle-timeout", bundle.DefaultTimeout, "time for the download of a bundle")
	fs.DurationVar(&f.maxAge, "policy-bundle-max-age", bundle.DefaultMaxAge,
		"how long the facts bundle.NAME and dir.PATH are good without the server's word, or a reading")
	fs.StringSliceVar(&f.waivable, "waivable-rule", nil, "rule that waivers of a repository may waive, such as "+
		"rollout.freeze, or acme.* for all that begin so; repeatable")
	CompleteFlag(cmd, "policy-dir", CompleteFolders)
	CompleteFlag(cmd, "waivable-rule", func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return lint.LibraryRules(), cobra.ShellCompDirectiveNoFileComp
	})
	CompleteFlag(cmd, "policy-bundle-algorithm", f.algorithm.Complete)
}

// WaivableRules are the rules that waivers of a repository may waive, by --waivable-rule.
func (a *App) WaivableRules() []string { return a.policies.waivable }

// ruleShape is the name of a rule, or the beginning of names.
var ruleShape = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*(\.\*)?$`)

// openFloor opens the bot's own policies; nil: it has none. It waits for no network.
func openFloor(a *App) (*bundle.Store, error) {
	f := a.policies
	for _, rule := range f.waivable {
		if !ruleShape.MatchString(rule) {
			return nil, fmt.Errorf("--waivable-rule %q: want the name of a rule, such as rollout.freeze or acme.*",
				rule)
		}
	}
	list, err := f.bundleList()
	if err != nil {
		return nil, err
	}
	if len(list)+len(f.dirs) == 0 {
		return nil, f.withoutBundles()
	}
	cfg := bundle.Config{Dirs: f.dirs, Bundles: list, CAFile: f.caFile, Interval: f.interval, Timeout: f.timeout,
		MaxAge: f.maxAge, Compile: problemsOf, Proxy: http.ProxyFromEnvironment, Log: a.Log, Now: a.Now}
	if len(list) == 0 {
		if err := f.withoutBundles(); err != nil {
			return nil, err
		}
		return bundle.Open(cfg)
	}
	if cfg.CacheDir, err = CacheDir(f.cacheDir); err != nil {
		return nil, err
	}
	if cfg.Keys, err = f.keyList(); err != nil {
		return nil, err
	}
	if f.plainHTTP {
		cfg.PlainHTTP = bundle.AnyHost
	}
	switch {
	case len(cfg.Keys) > 0 && f.unsigned:
		return nil, errors.New("--policy-bundle-key and --policy-bundle-unsigned exclude each other")
	case len(cfg.Keys) > 0:
		cfg.Signatures = bundle.Signed
	case f.unsigned:
		cfg.Signatures = bundle.Unsigned
	default:
		return nil, errors.New("--policy-bundle needs --policy-bundle-key FILE, the key that bundles are signed " +
			"with, or --policy-bundle-unsigned")
	}
	if err := giveTokens(a, cfg.Bundles); err != nil {
		return nil, err
	}
	return bundle.Open(cfg)
}

// problemsOf compiles policies apart from this process.
func problemsOf(cfg policy.Config) []parse.Problem {
	e := sandbox.Compile(cfg, PolicyProcess)
	defer e.Close()
	return e.Problems()
}

// withoutBundles refuses flags about bundles where there is none: one that was forgotten would be missed only when it
// is needed.
func (f policyFlags) withoutBundles() error {
	if len(f.keys)+len(f.scopes)+len(f.tokenFiles) > 0 || f.caFile != "" || f.unsigned || f.plainHTTP {
		return errors.New("there are flags about policy bundles, and no --policy-bundle NAME=URL")
	}
	return nil
}

func (f policyFlags) bundleList() ([]bundle.Bundle, error) {
	var out []bundle.Bundle
	for _, text := range f.bundles {
		name, url, ok := strings.Cut(text, "=")
		if !ok {
			return nil, errors.New("--policy-bundle has the form NAME=URL, such as " +
				"org=https://example.com/bundle.tar.gz")
		}
		out = append(out, bundle.Bundle{Name: name, URL: url})
	}
	scopes, err := forBundles("policy-bundle-scope", f.scopes, out)
	if err != nil {
		return nil, err
	}
	for i := range out {
		out[i].Scope = scopes[i]
	}
	return out, nil
}

// named is NAME=VALUE, which a file name may look like only with a folder before it.
var named = regexp.MustCompile(`^([A-Za-z0-9][A-Za-z0-9._-]*)=(.*)$`)

// forBundles gives each bundle its value of a flag: the one that names it, else the one without a name, else "".
func forBundles(flag string, values []string, list []bundle.Bundle) ([]string, error) {
	out := make([]string, len(list))
	common := ""
	for _, text := range values {
		match := named.FindStringSubmatch(text)
		if match == nil {
			if common != "" {
				return nil, fmt.Errorf("--%s is given twice without the name of a bundle", flag)
			}
			common = text
			continue
		}
		i := slices.IndexFunc(list, func(b bundle.Bundle) bool { return b.Name == match[1] })
		if i < 0 {
			return nil, fmt.Errorf("--%s: there is no policy bundle %q", flag, match[1])
		}
		out[i] = match[2]
	}
	for i := range out {
		if out[i] == "" {
			out[i] = common
		}
	}
	return out, nil
}

func (f policyFlags) keyList() ([]bundle.Key, error) {
	algorithm := f.algorithm.Value
	if algorithm == "auto" {
		algorithm = ""
	}
	var out []bundle.Key
	for _, text := range f.keys {
		file := bundle.KeyFile{Path: text, Algorithm: algorithm}
		if match := named.FindStringSubmatch(text); match != nil {
			file.ID, file.Path = match[1], match[2]
		}
		key, err := bundle.ReadKey(file)
		if err != nil {
			return nil, err
		}
		out = append(out, key)
	}
	return out, nil
}

// giveTokens gives bundles their tokens. One that is for no bundle by name goes to one server only.
func giveTokens(a *App, list []bundle.Bundle) error {
	files, err := forBundles("policy-bundle-token-file", a.policies.tokenFiles, list)
	if err != nil {
		return err
	}
	byName := map[string]bool{}
	for _, text := range a.policies.tokenFiles {
		if match := named.FindStringSubmatch(text); match != nil {
			byName[match[1]] = true
		}
	}
	var origins []string
	for i := range list {
		secret := a.Secret(files[i], variableBundleToken)
		if secret == nil {
			continue
		}
		if file, ok := files[i], files[i] != ""; ok && !IsFile(file) {
			return fmt.Errorf("--policy-bundle-token-file: %s is not a file", file)
		}
		list[i].Token = secret
		if !byName[list[i].Name] {
			origins = append(origins, list[i].Origin())
		}
	}
	if slices.Sort(origins); len(slices.Compact(origins)) > 1 {
		return errors.New("bundles come from several servers, and a token goes to one: say which with " +
			"--policy-bundle-token-file NAME=FILE")
	}
	return nil
}

// firstWait is how long the first cycle waits for bundles that were never had. Without them it could raise nothing.
const firstWait = 5 * time.Second

// Poll keeps the bot's own policies up to date beside the cycles, until stop is called. It first waits up to 5 s for
// bundles that were never downloaded.
func (j *Judges) Poll(ctx context.Context) (stop func()) {
	if j.store == nil {
		return func() {}
	}
	if len(j.store.Missing()) > 0 {
		first, cancel := context.WithTimeout(ctx, firstWait)
		j.store.Refresh(first)
		cancel()
	}
	ctx, cancel := context.WithCancel(ctx)
	var polling sync.WaitGroup
	polling.Go(func() { j.store.Poll(ctx) })
	return func() { cancel(); polling.Wait() }
}
