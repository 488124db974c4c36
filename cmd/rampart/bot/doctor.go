package bot

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rampart-gitops/rampart/cmd/rampart/cmdutil"
	"github.com/rampart-gitops/rampart/gitops"
	"github.com/rampart-gitops/rampart/gitops/api/v1alpha1"
	"github.com/rampart-gitops/rampart/internal/cluster"
	"github.com/rampart-gitops/rampart/internal/plan"
	"github.com/rampart-gitops/rampart/internal/printable"
	"github.com/rampart-gitops/rampart/internal/report"
	"github.com/rampart-gitops/rampart/internal/rollout"
	"github.com/rampart-gitops/rampart/temporal"
)

func doctorCommand(a *cmdutil.App) *cobra.Command {
	var (
		output     cmdutil.Choice
		repository cmdutil.RepositoryFlags
		server     cmdutil.TemporalFlags
		on         forgeFlags
		k8s        cmdutil.ClusterFlags
		webhook    string
	)
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check what the bot needs: repository, policies, Temporal, forge, cluster",
		Long: `Doctor takes the flags of rampart run that say where things are, and checks, in this order, what a
bot with these flags needs: that a commit can be signed; that the repository can be read, and pushed to; that its
configuration, specs and policies can be used; that each Temporal answers, lets the bot change worker deployments,
takes the heartbeats of workers, and whether its release lacks something; that the forge accepts the token, that this
may do what the bot does, and that the branches are protected and take its pushes; with --webhook-url, that a webhook
of the repository leads there, and that its last delivery arrived; that the clock agrees with the Git server's, where
that is asked over HTTP; and with --kubeconfig, that the cluster has the custom resource definitions, without the
in-cluster worker controller beside them. Each line says what is so, and what to do where something is wrong; a check
that fails keeps no other from being made. It changes nothing.

Forges tell their webhooks to those who administer the repository, and not all tell how deliveries went. Exit code 1
if a check failed; a warning fails none.`,
		Example: `  rampart doctor --repo https://git.example.com/team/workers.git --git-token-file token
  rampart doctor --config bot.yaml --kubeconfig prod.yaml`,
		Args:              cmdutil.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if repository.URL == "" {
				return errors.New("doctor needs a repository: --repo URL, or RAMPART_REPO")
			}
			d := &doctor{App: a, repository: repository, server: server, forge: on, webhook: webhook}
			if err := d.bot(cmd.Context()); err != nil {
				return err
			}
			if cmd.Flags().Changed("kubeconfig") || cmd.Flags().Changed("context") {
				d.cluster(cmd.Context(), k8s)
			}
			return d.tell(cmd.Context(), output.Value)
		},
	}
	cmdutil.AddOutput(cmd, &output, cmdutil.FormatText, cmdutil.FormatJSON, cmdutil.FormatYAML)
	repository.AddReading(cmd)
	repository.AddWriting(cmd)
	server.Add(cmd)
	server.AddLimits(cmd)
	addForge(cmd, &on)
	cmdutil.AddPolicies(a, cmd)
	cmd.Flags().StringVar(&webhook, "webhook-url", "",
		"address at which the forge reaches the bot's webhooks, such as https://rampart.example.com/webhook")
	k8s.Add(cmd, "kubeconfig of the cluster that ArgoCD or Flux applies to")
	return cmd
}

type verdict string

// The verdicts.
const (
	checkPassed  verdict = "ok"
	checkWarning verdict = "warning"
	checkFailed  verdict = "failed"
)

type check struct {
	Check   string  `json:"check"`
	Verdict verdict `json:"verdict"`
	// Found is what is so; Do what a person can do about it, "" for nothing.
	Found string `json:"found"`
	Do    string `json:"do,omitempty"`
}

type doctor struct {
	*cmdutil.App
	repository cmdutil.RepositoryFlags
	server     cmdutil.TemporalFlags
	forge      forgeFlags
	webhook    string
	checks     []check
	// applied says that the status of some environment is applied to the cluster.
	applied bool
}

func (d *doctor) pass(name, format string, args ...any) {
	d.checks = append(d.checks, check{Check: name, Verdict: checkPassed, Found: fmt.Sprintf(format, args...)})
}

func (d *doctor) warn(name, found, do string) {
	d.checks = append(d.checks, check{name, checkWarning, found, do})
}

func (d *doctor) fail(name, found, do string) {
	d.checks = append(d.checks, check{name, checkFailed, found, do})
}

// bot checks what a bot works on. The error is that of flags that no bot can be started with.
func (d *doctor) bot(ctx context.Context) error {
	d.signs(ctx)
	world, err := d.content(ctx)
	if err != nil {
		return err
	}
	d.reviews(ctx, world)
	d.clock(ctx)
	return ctx.Err()
}

// signs checks that a commit can be signed. Where it can't, the rest is checked without the key.
func (d *doctor) signs(ctx context.Context) {
	const name = "signing"
	var cfg gitops.Config
	flags := &d.repository.Signing
	err := cmdutil.ConfigureSigning(ctx, d.App, *flags, &cfg)
	if err == nil && cfg.SigningKey != nil {
		_, err = cfg.SigningKey.Sign([]byte("a trial"))
	}
	switch {
	case err != nil:
		d.fail(name, err.Error(),
			"check --signing-key, --signing-passphrase-file and --allowed-signers: docs/operations.md")
		*flags = cmdutil.SigningFlags{}
	case flags.Key != "":
		d.pass(name, "a trial was signed with %s", flags.Key)
	}
}

// content checks the repository, what is in it, and the Temporals that it names. The world is empty where the
// repository cannot be read.
func (d *doctor) content(ctx context.Context) (world rollout.World, err error) {
	pool, err := d.OpenPool(d.server, cmdutil.PoolHooks{InFull: true})
	if err != nil {
		return world, err
	}
	defer pool.Close()
	judges, err := d.Judges(ctx)
	if err != nil {
		return world, err
	}
	defer judges.Close()
	repo, closeRepo, err := d.OpenShortLived(d.repository)
	if err != nil {
		d.unreadable(err)
		return world, nil
	}
	defer func() { err = errors.Join(err, closeRepo()) }()
	planner, err := d.NewPlanner(cmdutil.PlannerPorts{Source: d.NarrowSpecSource(repo), Observer: pool, Judges: judges,
		Pods: nil}, d.server)
	if err != nil {
		return world, err
	}
	world, decided, err := cmdutil.PlanWithRetries(ctx, planner, time.Second)
	if ctx.Err() != nil {
		return world, ctx.Err()
	}
	if err != nil {
		d.unreadable(err)
		return rollout.World{}, nil
	}
	d.pass("repository", "branch %s at %.12s can be read", d.repository.Branch, world.Git.Commit)
	d.pushes(ctx, repo)
	d.specs(world)
	d.rules(world, judges)
	d.temporal(ctx, pool, slices.Concat(decided...))
	return world, nil
}

// unreadable says that the repository cannot be read. The status of an environment is applied unless that says not.
func (d *doctor) unreadable(err error) {
	d.applied = true
	d.fail("repository", err.Error(), cmp.Or(cmdutil.Hint(err),
		"check --repo, --branch and the flags with its credentials: docs/operations.md"))
}

func (d *doctor) pushes(ctx context.Context, repo *gitops.Repository) {
	if err := repo.MayPush(ctx); err != nil {
		d.fail("push", err.Error(), cmp.Or(cmdutil.Hint(err),
			"let these credentials write to the repository: docs/operations.md"))
		return
	}
	d.pass("push", "the server takes pushes by these credentials; whether it protects branch %s shows with the "+
		"first one", d.repository.Branch)
}

func (d *doctor) specs(world rollout.World) {
	var wrong []string
	warnings := 0
	for _, p := range cmdutil.WorldProblems(world) {
		if p.Severity == v1alpha1.Error {
			wrong = append(wrong, cmdutil.ProblemLine(p))
		} else {
			warnings++
		}
	}
	deployments := 0
	for _, env := range world.Environments {
		deployments += len(env.Deployments)
		d.applied = d.applied || env.Environment.Status != v1alpha1.StatusOff
		if env.Unusable != nil && len(wrong) == 0 {
			wrong = append(wrong, env.Unusable.Message)
		}
	}
	said := fmt.Sprintf("environments: %d, worker deployments: %d", len(world.Environments), deployments)
	switch {
	case len(wrong) > 0:
		d.fail("specs", cmdutil.JoinFirst(wrong, 3), "rampart validate, in a checkout, says all that is wrong")
	case deployments == 0:
		d.warn("specs", said, "a spec is a YAML file with kind: "+v1alpha1.KindTemporalWorkerDeployment+
			" and apiVersion: "+v1alpha1.TemporalAPIVersion)
	case warnings > 0:
		d.warn("specs", fmt.Sprintf("%s, warnings: %d", said, warnings), "rampart validate, in a checkout, says which")
	default:
		d.pass("specs", "%s", said)
	}
}

// rules checks that the policies of each environment, with the bot's own, can be used.
func (d *doctor) rules(world rollout.World, judges *cmdutil.Judges) {
	var wrong []string
	for _, env := range world.Environments {
		for _, p := range env.PolicyProblems {
			wrong = append(wrong, cmdutil.ProblemLine(p))
		}
		for _, p := range judges.Engine(env).Problems() {
			wrong = append(wrong, p.Error())
		}
	}
	slices.Sort(wrong)
	if wrong = slices.Compact(wrong); len(wrong) > 0 {
		d.fail("policies", cmdutil.JoinFirst(wrong, 3),
			"rampart policy check, in a checkout, says all that is wrong; until it is mended every raise is held")
		return
	}
	d.pass("policies", "those of each environment can be used")
}

// temporal checks what the specs lead to. It reports what keeps a spec from being used, and each Temporal namespace by
// each connection, with the worst that is known of it.
func (d *doctor) temporal(ctx context.Context, pool *temporal.Pool, decided []*rollout.Decision) {
	found, tried := map[string]check{}, map[string]trial{}
	var order []string
	worst := map[verdict]int{checkPassed: 0, checkWarning: 1, checkFailed: 2}
	for _, one := range decided {
		s := one.Snapshot
		if s.Spec == nil {
			continue // it is wrong, and that was said
		}
		if state := report.StateOf(one.Proposal, one.Plan); state.Stalled &&
			slices.Contains(inRepository, state.Reason) {
			d.fail(s.Deployment.String(), state.Message, "rampart explain "+s.Deployment.String())
		}
		connection := plan.Look(s).Connection()
		if connection == nil {
			continue
		}
		address := cmp.Or(d.server.Address, connection.Spec.HostPort)
		name := fmt.Sprintf("Temporal %s, namespace %s, by %s", address, plan.TemporalNamespace(s),
			connection.Ref().In(s.Deployment.Namespace))
		now := check{Check: name, Verdict: checkPassed, Found: "answers"}
		if _, done := tried[name]; !done && s.Observation.Problem == nil {
			tried[name] = tryTemporal(ctx, pool, *connection, plan.TemporalNamespace(s))
		}
		switch o := s.Observation; {
		case o.Problem != nil:
			now.Verdict, now.Found = checkFailed, s.Deployment.String()+": "+o.Problem.Message
			now.Do = "check the connection's address, credentials and namespace, and that this machine reaches it: " +
				"docs/operations.md"
		case tried[name].change != nil:
			now.Verdict, now.Found = checkFailed, tried[name].change.Error()
			now.Do = "give the bot's credentials the right to write to the namespace: docs/operations.md"
		case one.Plan.Status != nil && one.Plan.Status.OlderServer != "":
			now.Verdict, now.Found = checkWarning, one.Plan.Status.OlderServer
			now.Do = "docs/compatibility.md says what each release of Temporal lacks"
		case tried[name].heartbeats != nil:
			now.Verdict, now.Found = checkWarning, tried[name].heartbeats.Error()
			now.Do = "switch frontend.WorkerHeartbeatsEnabled on in Temporal's dynamic configuration: " +
				"docs/compatibility.md"
		case o.ServerVersion != "":
			now.Found = "answers, release " + o.ServerVersion
		}
		was, known := found[name]
		if !known {
			order = append(order, name)
		}
		if !known || worst[now.Verdict] > worst[was.Verdict] {
			found[name] = now
		}
	}
	for _, name := range order {
		d.checks = append(d.checks, found[name])
	}
}

// trial is what came of calls to Temporal that doctor alone makes.
type trial struct {
	// change is why the bot may not change worker deployments, heartbeats what is wrong with those of workers.
	change, heartbeats error
}

func tryTemporal(ctx context.Context, pool *temporal.Pool, connection v1alpha1.Connection, namespace string) trial {
	t := trial{change: pool.MayChange(ctx, connection, namespace)}
	on, err := pool.Heartbeats(ctx, connection, namespace)
	switch {
	case err != nil:
		t.heartbeats = err
	case !on:
		t.heartbeats = fmt.Errorf("namespace %s takes no heartbeats of workers: those that poll without versioning "+
			"are not found", namespace)
	}
	return t
}

// inRepository are the reasons that only a change of the repository ends.
var inRepository = []rollout.Reason{rollout.InvalidSpec, rollout.InvalidConfiguration, rollout.ConnectionNotFound,
	rollout.TemporalConnectionNotFound}

// clock compares the clock with that of the Git server, where that is asked over HTTP.
func (d *doctor) clock(ctx context.Context) {
	at, err := url.Parse(d.repository.URL)
	if err != nil || at.Scheme != "https" && at.Scheme != "http" {
		return
	}
	client, err := forgeClient(d.App, d.repository)
	if err != nil {
		return // it was said of the forge
	}
	client.Timeout = 10 * time.Second
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	at.User, at.RawQuery = nil, "service=git-upload-pack"
	at = at.JoinPath("info", "refs")
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return
	}
	before := d.Now()
	answer, err := client.Do(r)
	after := d.Now()
	if err != nil {
		return // it was said of the repository
	}
	_ = answer.Body.Close() // whatever it answers, it says when
	said, err := http.ParseTime(answer.Header.Get("Date"))
	if err != nil {
		return
	}
	off, how := said.Sub(after), "behind"
	if ahead := before.Sub(said.Add(time.Second)); ahead > off { // it says whole seconds
		off, how = ahead, "ahead of"
	}
	if off > rollout.ClockTolerance {
		d.warn("clock", fmt.Sprintf("this machine is %s %s %s", off.Round(time.Second), how, at.Host),
			"have both take the time from NTP: pauses, windows and the age of what was read are measured by this clock")
		return
	}
	d.pass("clock", "agrees with that of %s to %s", at.Host, rollout.ClockTolerance)
}

// cluster checks the custom resource definitions, and that the in-cluster worker controller does not work on the same
// objects.
func (d *doctor) cluster(ctx context.Context, f cmdutil.ClusterFlags) {
	const name = "cluster"
	c, err := f.Open()
	if err != nil {
		d.fail(name, err.Error(), "check --kubeconfig and --context")
		return
	}
	found, err := c.Definitions(ctx)
	if err != nil {
		d.fail(name, err.Error(), "let the kubeconfig's user get customresourcedefinitions")
		return
	}
	of, later := map[cluster.State][]string{}, ""
	for _, f := range found {
		of[f.State] = append(of[f.State], f.Name)
		if f.State == cluster.Newer {
			later = f.Release
		}
	}
	switch {
	case !d.applied:
		d.pass(name,
			"no environment has its status applied (status: Off), so that it needs no custom resource definitions")
	case len(of[cluster.WithSubresource]) > 0:
		d.fail(name, "definitions with a status subresource, as the in-cluster worker controller's are, drop the "+
			"status from Git: "+cmdutil.JoinFirst(of[cluster.WithSubresource], len(found)),
			"stop that controller, then rampart crds --install --replace-controller; or set status: Off in "+
				"rampart.yaml")
	case len(of[cluster.Missing]) > 0:
		d.fail(name, "custom resource definitions are missing: "+cmdutil.JoinFirst(of[cluster.Missing], len(found)),
			"rampart crds --install, or status: Off in rampart.yaml")
	case len(of[cluster.Newer]) > 0:
		d.warn(name, fmt.Sprintf("custom resource definitions are of release %s, later than this one: %s", later,
			cmdutil.JoinFirst(of[cluster.Newer], len(found))),
			"run rampart "+later+" here")
	case len(of[cluster.Different]) > 0:
		d.warn(name, "custom resource definitions are not those of this release: "+
			cmdutil.JoinFirst(of[cluster.Different], len(found)), "rampart crds --install")
	default:
		d.pass(name, "%s has the custom resource definitions of this release", c.Host)
	}
	running, err := c.Controllers(ctx)
	switch {
	case err != nil:
		d.warn("controller", err.Error(),
			"let the kubeconfig's user list deployments, so that a running in-cluster worker controller is found")
	case len(running) > 0:
		d.fail("controller", "the in-cluster worker controller runs, and works on the same objects: "+
			strings.Join(running, ", "), "scale it to 0 before the bot writes")
	default:
		d.pass("controller", "no in-cluster worker controller runs")
	}
}

// tell prints the checks. The error says how many failed.
func (d *doctor) tell(ctx context.Context, format string) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if format != cmdutil.FormatText {
		if err := d.Encode(format, d.checks); err != nil {
			return err
		}
	}
	failed := 0
	for _, c := range d.checks {
		if c.Verdict == checkFailed {
			failed++
		}
		if format != cmdutil.FormatText {
			continue
		}
		if _, err := fmt.Fprintf(d.Out, "%-8s %s\n", c.Verdict, printable.Line(c.Check+": "+c.Found)); err != nil {
			return err
		}
		if c.Do == "" {
			continue
		}
		if _, err := fmt.Fprintf(d.Out, "         %s\n", printable.Line(c.Do)); err != nil {
			return err
		}
	}
	if failed > 0 {
		return &cmdutil.ExitError{Code: cmdutil.ExitFailure,
			Err: fmt.Errorf("%d of %d checks failed", failed, len(d.checks))}
	}
	return nil
}
