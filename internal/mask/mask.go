package mask

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
)

// Mark stands where something was masked.
const Mark = "***"

// Roots of the pointers of what was masked.
const (
	inputRoot  = "input"
	resultRoot = "result"
)

// Masker finds what may be secret in a decision. It is safe for concurrent use.
type Masker struct {
	pointers [][]string
	// credentials and clean cache what was found of keys and texts: most are the same from one decision to the next.
	credentials, clean textCache
}

// New adds JSON pointers to what is masked without being asked: /input/... or /result/..., where the segment * stands
// for any one key or element. An error names the pointer and what is wrong with it.
//
// Masked without being asked are: the values of literal environment variables and of HTTP headers; texts whose keys
// name credentials (password, token, ...), and values beside such a name; the inputs of gates; what kubectl keeps of
// the object that it applied; arguments and commands that carry credentials (--token=x, --token x, -u name:x, TOKEN=x);
// bearer credentials, assigned ones (token=x) and passwords in URLs in any text, tokens of known formats and private
// keys; and what the result repeats of those, unless the input has the same text where it is not masked.
func New(pointers ...string) (*Masker, error) {
	m := &Masker{credentials: newTextCache(), clean: newTextCache()}
	for _, p := range pointers {
		if !strings.HasPrefix(p, "/") {
			return nil, fmt.Errorf("mask %q: a JSON pointer begins with /, as in "+
				"/input/deployment/metadata/labels/owner", p)
		}
		parts := strings.Split(p[1:], "/")
		if parts[0] != inputRoot && parts[0] != resultRoot {
			return nil, fmt.Errorf("mask %q: it has to begin with /input/ or /result/", p)
		}
		if len(parts) < 2 || slices.Contains(parts, "") {
			return nil, fmt.Errorf("mask %q: it has to name something below /%s, without empty segments", p, parts[0])
		}
		for i, part := range parts {
			if badEscape.MatchString(part) {
				return nil, fmt.Errorf("mask %q: ~ is written ~0, and / in a key is written ~1", p)
			}
			if part != "*" {
				parts[i] = unescape.Replace(part)
			}
		}
		m.pointers = append(m.pointers, parts)
	}
	return m, nil
}

var (
	badEscape = regexp.MustCompile(`~([^01]|$)`)
	unescape  = strings.NewReplacer("~1", "/", "~0", "~")
	escape    = strings.NewReplacer("~", "~0", "/", "~1")

	// credential finds the names of credentials: in keys, flags and variables.
	credential = regexp.MustCompile(`(?i)` + credentialWords)
	// assigned is a credential with its value in an argument: --token=x, -Dpassword=x, TOKEN: x, within other text too.
	assigned = regexp.MustCompile(`(?i)([\w.-]*` + credentialWords +
		`[\w.-]*["']?\s*[=:]\s*)("[^"]*"|'[^']*'|[^\s"'&;,][^\s&;]*)`)
	// argued is a whole argument: --token=x.
	argued = regexp.MustCompile(`(?i)^(-{0,2}[\w.-]*` + credentialWords + `[\w.-]*=)(\S+)$`)
	// spaced is one in a longer command: --token x.
	spaced = regexp.MustCompile(`(?i)(--?[\w.-]*` + credentialWords + `[\w.-]*\s+)([^\s-][^\s]*)`)
	// bearer is an HTTP credential by itself.
	bearer = regexp.MustCompile(`(?i)(\b(?:bearer|basic)\s+)([\w.~+/=-]{6,})`)
	// told is an assigned credential in any text: token=x, "token": "x". Names with a tag (token-service:1.2) and
	// comparisons do not count.
	told = regexp.MustCompile(`(?i)([\w.-]*` + credentialWords +
		`[\w.-]*(?:\\*["']?\s*=\s*|\\*["']?\s*:\s+|\\*["']\s*:\s*)\\*)("[^"]*"|'[^']*'|[^\s"'&;,=~!\\][^\s&;]*)`)
	// login is a name with a password in a longer command, and loginArgument in the argument after the flag or with it.
	login = regexp.MustCompile(
		`((?:^|\s)(?:-[a-zA-Z]*[uU]|--(?:proxy-)?user)(?:\s*|=)["']?[^\s:"'/]*:)([^\s"']+)`)
	loginArgument = regexp.MustCompile(`^([^\s:/]*:)(\S+)$`)
	loginFlag     = regexp.MustCompile(`^(?:-[a-zA-Z]*[uU]|--(?:proxy-)?user)$`)
	// reference is a key that names where a credential is, not the credential.
	reference = regexp.MustCompile(
		`(?i)(?:name|ref|file|path|dir|kind|type|policy|class|namespace|seconds|conflicttoken)$`)
	// userinfo is a password in a URL, or a token in place of name and password.
	userinfo = regexp.MustCompile(`([a-zA-Z][\w+.-]*://(?:[^\s/:@]*:)?)([^\s@]+)(@)`)
)

const credentialWords = `(?:passw(?:or)?d|passphrase|(?:\b|_)pass(?:\b|_)|pwd|secret|token|api[-_.]?key|` +
	`access[-_.]?key|private[-_.]?key|signing[-_.]?key|encryption[-_.]?key|credential|authorization|bearer|` +
	`session[-_.]?id|cookie|(?:\b|_)dsn(?:\b|_)|connection[-_.]?string)`

// shortest text that is looked for in the result: what is shorter is everywhere.
const (
	shortest     = 4
	shortestPart = 8
)

// masking is one decision's.
type masking struct {
	masker *Masker
	masked map[string]bool
	gone   map[string]bool
}

// Mask gives a decision's input and result as canonical JSON, both masked, and sorted pointers to what was masked.
func (m *Masker) Mask(input, result json.RawMessage) (in, out json.RawMessage, masked []string, err error) {
	i, err := parsed(inputRoot, input)
	if err != nil {
		return nil, nil, nil, err
	}
	r, err := parsed(resultRoot, result)
	if err != nil {
		return nil, nil, nil, err
	}
	w := masking{masker: m, masked: map[string]bool{}, gone: map[string]bool{}}
	i = w.walk([]string{inputRoot}, i)
	r = w.pointed([]string{resultRoot}, r)
	if len(w.gone) > 0 {
		r = w.scrub([]string{resultRoot}, r, w.secrets(i))
	}
	if in, err = canonical(i); err != nil {
		return nil, nil, nil, fmt.Errorf("encode the decision's input: %w", err)
	}
	if out, err = canonical(r); err != nil {
		return nil, nil, nil, fmt.Errorf("encode the decision's result: %w", err)
	}
	return in, out, slices.Sorted(maps.Keys(w.masked)), nil
}

// hide notes what is masked.
func (w *masking) hide(path []string, what ...string) {
	w.masked[pointer(path)] = true
	for _, s := range what {
		if s = strings.TrimSpace(s); len(s) >= shortest {
			w.gone[s] = true
		}
		for _, part := range strings.FieldsFunc(s, func(r rune) bool {
			return strings.ContainsRune("&;,=:@\"' \t\n", r)
		}) {
			if len(part) >= shortestPart { // that a policy may take it apart into
				w.gone[part] = true
			}
		}
	}
}

func pointer(path []string) string {
	var b strings.Builder
	for _, p := range path {
		b.WriteByte('/')
		b.WriteString(escape.Replace(p))
	}
	return b.String()
}

func below(path []string, key string) []string { return append(slices.Clip(path), key) }

// walk masks what is known to be secret, and what the pointers name.
func (w *masking) walk(path []string, v any) any {
	if w.masker.names(path) {
		return w.whole(path, v)
	}
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			at := below(path, k)
			switch text, _ := x.(string); {
			case k == lastApplied && text != "" && !w.masker.names(at):
				w.applied(at, text)
				v[k] = Mark
			case w.secretMember(path, v, k):
				v[k] = w.whole(at, x)
			default:
				v[k] = w.walk(at, x)
			}
		}
	case []any:
		words := len(path) > 0 && (path[len(path)-1] == "args" || path[len(path)-1] == "command")
		for i, x := range v {
			at := below(path, strconv.Itoa(i))
			if s, ok := x.(string); ok && words {
				v[i] = w.argument(at, v, i, s)
			} else {
				v[i] = w.walk(at, x)
			}
		}
	case string:
		return w.inAnyText(path, v)
	}
	return v
}

// lastApplied is where kubectl repeats an object as text.
const lastApplied = "kubectl.kubernetes.io/last-applied-configuration"

// secretMember reports whether a member of an object is masked as a whole. That is the value of a variable or a header,
// what is beside the name of a credential or is named like one, the input of a gate.
func (w *masking) secretMember(path []string, object map[string]any, key string) bool {
	n := len(path)
	if key == "input" && path[n-1] == "gate" {
		return true
	}
	if s, isText := object[key].(string); !isText || s == "" || n < 2 {
		return false
	}
	switch path[n-1] {
	case "annotations", "labels", "matchLabels":
		return w.credential(key)
	}
	if key == "value" {
		name, _ := object["name"].(string)
		return path[n-2] == "env" || path[n-2] == "httpHeaders" || w.credential(name)
	}
	return w.credential(key) && !reference.MatchString(key)
}

// credential reports whether a name is that of a credential.
func (w *masking) credential(name string) bool {
	return w.masker.credentials.of(name, credential.MatchString)
}

// applied notes an object that is repeated as text. It notes the whole of it, and of its parts, which are most of the
// spec, what would be masked.
func (w *masking) applied(path []string, text string) {
	object, err := v1alpha1.DecodeJSON([]byte(text))
	if err != nil {
		w.hide(path, text)
		return
	}
	w.masked[pointer(path)], w.gone[strings.TrimSpace(text)] = true, true
	inner := masking{masker: w.masker, masked: map[string]bool{}, gone: w.gone}
	inner.walk([]string{inputRoot, "deployment"}, object)
}

// argument masks the credentials of one argument: in itself, or the whole where the one before names it.
func (w *masking) argument(path []string, all []any, i int, s string) string {
	var before string
	if i > 0 {
		before, _ = all[i-1].(string)
	}
	follows := strings.HasPrefix(before, "-") && !strings.ContainsAny(before, "= ") && w.credential(before) &&
		!strings.HasPrefix(s, "--")
	if follows || w.masker.names(path) {
		w.hide(path, s)
		return Mark
	}
	if loginFlag.MatchString(before) {
		s = w.inText(path, s, loginArgument)
	}
	return w.inText(path, s, token, argued, bearer, userinfo, assigned, spaced, login)
}

// inAnyText masks the credentials of a text that may be about anything.
func (w *masking) inAnyText(path []string, s string) string {
	if strings.Trim(s, "0123456789-+:.TZ") == "" { // a number, or a time
		return s
	}
	var expressions []*regexp.Regexp
	if len(s) >= shortestToken {
		expressions = append(expressions, token)
	}
	if strings.ContainsAny(s, " \t\n=:") {
		expressions = append(expressions, bearer, userinfo, told)
	}
	if len(expressions) == 0 || w.masker.clean.of(s, func(s string) bool {
		return !slices.ContainsFunc(expressions, func(re *regexp.Regexp) bool { return re.MatchString(s) })
	}) {
		return s
	}
	return w.inText(path, s, expressions...)
}

// inText masks the second group of what the expressions find.
func (w *masking) inText(path []string, s string, expressions ...*regexp.Regexp) string {
	for _, re := range expressions {
		found := re.FindAllStringSubmatchIndex(s, -1)
		for k := len(found) - 1; k >= 0; k-- {
			from, to := found[k][4], found[k][5]
			if s[from:to] == Mark {
				continue
			}
			w.hide(path, s[from:to], strings.Trim(s[from:to], `"'`))
			s = s[:from] + Mark + s[to:]
		}
	}
	return s
}

// names reports whether one of the pointers names the path.
func (m *Masker) names(path []string) bool {
	return slices.ContainsFunc(m.pointers, func(p []string) bool {
		return slices.EqualFunc(p, path, func(a, b string) bool { return a == "*" || a == b })
	})
}

// pointed masks only what the pointers name.
func (w *masking) pointed(path []string, v any) any {
	if w.masker.names(path) {
		return w.whole(path, v)
	}
	switch v := v.(type) {
	case map[string]any:
		for k, x := range v {
			v[k] = w.pointed(below(path, k), x)
		}
	case []any:
		for i, x := range v {
			v[i] = w.pointed(below(path, strconv.Itoa(i)), x)
		}
	}
	return v
}

// whole masks a value with all that is in it.
func (w *masking) whole(path []string, v any) any {
	texts(v, func(s string) { w.hide(path, s) })
	w.hide(path)
	return Mark
}

// texts calls f with each text in a value, keys and numbers included.
func texts(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case json.Number:
		f(v.String())
	case map[string]any:
		for k, x := range v {
			f(k)
			texts(x, f)
		}
	case []any:
		for _, x := range v {
			texts(x, f)
		}
	}
}

// secrets are the masked texts that the input has nowhere else, the longest first.
func (w *masking) secrets(input any) []string {
	left := maps.Clone(w.gone)
	texts(input, func(s string) {
		for g := range left {
			if strings.Contains(s, g) {
				delete(left, g)
			}
		}
	})
	return slices.SortedFunc(maps.Keys(left), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(b), len(a)), strings.Compare(a, b))
	})
}

// scrub masks what a result repeats.
func (w *masking) scrub(path []string, v any, secrets []string) any {
	switch v := v.(type) {
	case string:
		s := v
		for _, secret := range secrets {
			s = strings.ReplaceAll(s, secret, Mark)
		}
		if s != v {
			w.masked[pointer(path)] = true
		}
		return s
	case json.Number:
		if slices.Contains(secrets, v.String()) {
			w.masked[pointer(path)] = true
			return Mark
		}
	case []any:
		for i, x := range v {
			v[i] = w.scrub(below(path, strconv.Itoa(i)), x, secrets)
		}
	case map[string]any:
		return w.scrubObject(path, v, secrets)
	}
	return v
}

func (w *masking) scrubObject(path []string, v map[string]any, secrets []string) any {
	out := make(map[string]any, len(v))
	for _, k := range slices.Sorted(maps.Keys(v)) {
		key := k
		for _, secret := range secrets {
			key = strings.ReplaceAll(key, secret, Mark)
		}
		at := below(path, key)
		if key != k {
			w.masked[pointer(at)] = true
		}
		out[key] = w.scrub(at, v[k], secrets)
	}
	return out
}
