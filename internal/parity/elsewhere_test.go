package parity

// Scenarios about resources, carrying out, connections, and what there is in a cluster only.

func resources() []Case {
	const owners = "what is in Git has no owner references: a version's folder holds its resources, and they go with it"
	const inGit = "an object is a file of its version: written, put back and removed with it"
	one := func(scenario, controller, want, why string, tests ...string) Case {
		return Case{Scenario: scenario, Controller: controller, Want: want, Why: why, Tests: tests}
	}
	return []Case{
		one("counts: none; one version, two templates; two versions, two templates", "renders one object for each template and Deployment, injected, and applies it",
			"one object for each template and version, in the states that the template names", "a budget for the current version does not count for a candidate", "internal/plan TestResources"),
		one("raw template missing; template that cannot be parsed; render error", "the error is noted for that version, others go on",
			"a problem of its file; what was made from it stays, and a new version waits for it", "a version without its scaler could not bear the traffic", "gitops TestReadTemplates", "internal/plan TestResources"),
		one("Deployments that are being deleted", "skipped", "objects go in the commit that scales the version down", "a scaler left behind would scale it up again", "test/e2e TestObjectsOfTemplates"),
		one("contents of the rendered object", "name, namespace, labels, owner, injected places", "name, namespace, labels, injected places", "", "render TestGolden"),
		one("matchLabels", "both selector labels where the template has an empty map", "both selector labels where the template has an empty map", "", "render TestGolden"),
		one("names: six forms", "cleaned, at most 47 characters, with a hash", "cleaned, at most 47 characters, with a hash", "", "render TestResourceName"),
		one("labels", "the template's, with the two selector labels over them", "the template's, with the two selector labels over them", "", "render TestGolden"),
		one("scaleTargetRef: at the top, deeper, absent", "points at the version's Deployment", "points at the version's Deployment", "", "render TestGolden"),
		one("metrics: four forms", "three labels are merged into an external metric's selector", "three labels are merged into an external metric's selector", "", "render TestGolden"),
		one("KEDA: seven forms", "three values of a trigger of type temporal", "three values of a trigger of type temporal", "", "render TestGolden"),
		one("a whole rendered object", "as compared in its test", "as compared in its test", "", "render TestGolden"),
		one("delete: none; a fixed name; several templates and versions; several times the same", "deletes what has no live Deployment",
			"removed with its version, and from every version with its template", inGit, "internal/plan TestResources", "test/e2e TestObjectsOfTemplates"),
		one("delete: label missing; unparsable; orphan tried again; live ones kept", "keeps the live ones, and tries again for the rest", "what cannot be read keeps what was made from it", inGit, "internal/plan TestNeverResources"),
		one("a version goes and comes back with the same build ID", "applies its objects again", "they come back with its workers", "", "internal/plan TestObjectsThroughARollout"),
		one("nothing changed", "writes no status", "no commit", "", "render TestObjectsKeepTheirBytes"),
		{Scenario: "owner references: all, there already, foreign controller, empty, another kind of owner", Controller: "patches the template's owner", Want: NoCounterpart, Why: owners},
	}
}

func execution() []Case {
	const pushed = "nothing is applied to a cluster: one commit has all files, or none"
	return []Case{
		{Scenario: "creating, deleting, scaling, updating a Deployment fails", Controller: "an event for each, PlanExecutionFailed, everything after it is left out",
			Want: "a push that is refused changes nothing, and the cycle starts over", Tests: []string{"internal/reconcile TestMovingBranch", "gitops TestCommitAfterSomebodyElse"}, Why: pushed},
		{Scenario: "the API server is away", Controller: "errors, with backoff", Want: "with the repository away, what raises waits and what lowers does not",
			Tests: []string{"internal/reconcile TestRepositoryAway"}, Why: "a retreat does not wait for a record of it"},
		{Scenario: "starting a gate fails", Controller: "TestWorkflowStartFailed; everything after it is left out", Want: "tried again, for seconds here and in each cycle; the run of a lost answer is found",
			Tests: []string{"test/temporal TestGateStartFailures"}},
		{Scenario: "SetCurrent fails", Controller: "VersionPromotionFailed, tried again", Want: "decided again on what Temporal has then; a lost answer is found out",
			Tests: []string{"test/temporal TestRaiseOnAStaleBasis", "test/temporal TestLostAnswersCountAsMade"}, Why: "what was decided before is no longer decided"},
		{Scenario: "SetRamping fails", Controller: "VersionPromotionFailed, tried again", Want: "the same", Tests: []string{"test/temporal TestUnsentCallsAreTriedOnceMore", "test/temporal TestOutcomeNotKnown"},
			Why: "what was decided before is no longer decided"},
		{Scenario: "writing metadata fails", Controller: "MetadataUpdateFailed, PlanExecutionFailed, after routing has moved", Want: "a mark comes before routing moves back, with a short deadline, and holds nothing up",
			Tests: []string{"test/temporal TestLowerMarksFirst", "test/temporal TestLowerDoesNotWaitForMarks"}, Why: "metadata is for a run after a crash, and no part of the result"},
		{Scenario: "claiming fails", Controller: "ManagerIdentityClaimFailed", Want: "nothing moves", Tests: []string{"test/temporal TestRaiseWithAnotherManager"}},
		{Scenario: "conflict tokens", Controller: "that of the describe, then that of the claim", Want: "each answer's token goes into the next call", Tests: []string{"test/temporal TestRaiseChainsTokens"}},
		{Scenario: "a failed delete is tried again", Controller: "in the next pass", Want: "refused deletions rest, longer each time, and are reported",
			Tests: []string{"internal/plan TestOtherRows", "test/temporal TestDeleteVersion"}, Why: "each try that is refused costs a commit"},
		{Scenario: "nothing changed", Controller: "no status write", Want: "no commit", Tests: []string{"internal/plan TestSteadyIsQuiet", "test/e2e TestIdle"}},
		{Scenario: "Kubernetes events", Controller: "a warning event for each failure, none for success", Want: "a commit for each transition, with its reasons", Tests: []string{"internal/compose TestMessage"},
			Why: "history is in Git, of what went well too"},
		{Scenario: "killed in between", Controller: "no test", Want: "killed before and after each write, the next run ends in the right state", Tests: []string{"test/e2e TestKilledAtEveryWrite"},
			Why: "each write is decided on what is there"},
	}
}

func clients() []Case {
	const files = "credentials are the bot's own files, never Secrets that a repository names"
	return []Case{
		{Scenario: "no CA", Controller: "the system's", Want: "the system's", Tests: []string{"temporal TestTLSConfig", "test/temporal TestTLS"}},
		{Scenario: "a CA", Controller: "beside the system's", Want: "beside the system's", Tests: []string{"test/temporal TestTLS"}},
		{Scenario: "an expired certificate", Controller: "AuthSecretInvalid", Want: "AuthSecretInvalid", Tests: []string{"test/temporal TestMutualTLS"}},
		{Scenario: "a valid certificate", Controller: "used", Want: "used", Tests: []string{"test/temporal TestMutualTLS"}},
		{Scenario: "a certificate that was replaced early", Controller: "not noticed until the old one expires", Want: "used for the next call",
			Tests: []string{"test/temporal TestMutualTLS", "temporal TestStamp"}, Why: "files are looked at before each use"},
		{Scenario: "server name: without credentials, with certificate, with API key", Controller: "verified in place of the host, over TLS", Want: "the same",
			Tests: []string{"temporal TestTLSConfig", "test/temporal TestTLS"}},
		{Scenario: "API key: credentials over TLS", Controller: "TLS always", Want: "TLS always", Tests: []string{"test/temporal TestAPIKey"}},
		{Scenario: "API key: read for each call", Controller: "from the Secret", Want: "from the file", Tests: []string{"test/temporal TestAPIKey"}},
		{Scenario: "API key: missing", Controller: "an empty token, no error", Want: "AuthSecretInvalid", Tests: []string{"test/temporal TestAPIKey", "temporal TestAPIKey"},
			Why: "an empty key is never sent"},
		{Scenario: "types of Secrets: kubernetes.io/tls, Opaque, others", Controller: "accepted by mode, others refused", Want: NoCounterpart, Why: files},
		{Scenario: "health check after connecting: without credentials, certificate, API key", Controller: "made, made, not made", Want: "the first describe shows it, in each mode",
			Tests: []string{"test/temporal TestOutage", "test/temporal TestSilentServer"}, Why: "a describe is what it is needed for"},
		{Scenario: "evicted on PermissionDenied, on Unauthenticated", Controller: "dropped", Want: "dropped", Tests: []string{"test/temporal TestOneConnection"}},
		{Scenario: "header temporal-namespace", Controller: "on each request", Want: "on each request", Tests: []string{"test/temporal TestTLS"}},
		{Scenario: "Secrets of one name in two namespaces", Controller: "share a client, and so credentials", Want: "another namespace's connection has none of them",
			Tests: []string{"temporal TestResolve", "test/temporal TestCredentialsStayHome"}, Why: "credentials are bound to a connection's namespace and name, or to an address"},
		{Scenario: "rate limited", Controller: "TemporalStateFetchFailed, again in 30s", Want: "nothing is asked for a second, and nothing is committed",
			Tests: []string{"test/temporal TestRateLimitedByTheServer", "temporal TestRateLimited", "internal/reconcile TestBusyServerIsQuiet"}, Why: "a busy server does not change a status"},
		{Scenario: "status mapping of gates", Controller: "Running, Completed, Failed, Canceled, Terminated, TimedOut; what continued or is unknown runs", Want: "the same, but what is unknown is not read",
			Tests: []string{"temporal TestGateStateOf"}, Why: "an unknown fact holds it"},
	}
}

func cluster() []Case {
	const crd = "there are no custom resources in the cluster: specs are files, of the old kinds too"
	const watch = "there is no cache and no watch: Git is read by commit"
	none := func(scenario, controller, why string) Case {
		return Case{Scenario: scenario, Controller: controller, Want: NoCounterpart, Why: why}
	}
	return []Case{
		{Scenario: "old kinds", Controller: "deprecated: no new objects, warnings", Want: "read like the new ones", Tests: []string{"gitops/api/v1alpha1 TestSamples", "gitops/api/v1alpha1 TestGolden"},
			Why: "specs of five eras are in use"},
		none("old kinds: condition Deprecated, WorkerDeploymentExists, MigratedToWorkerDeployment", "written to the object's status", crd),
		none("old kinds: finalizer added, taken away, stale", "migration-guard", crd),
		none("old kinds: delete before and after the migration", "blocked, then allowed", crd),
		none("old kinds: owner references handed over, skipped when done, unrelated ones untouched", "patched", crd),
		none("old kinds of connections: six cases", "the same for connections", crd),
		none("old kinds not installed; their watches detected or forbidden", "their watches are left out", crd),
		none("cache: label scope, namespace scope, list of namespaces", "limits what the cache holds", watch),
		none("webhooks: registered, served, failing", "validating webhooks, off by default", "rampart validate checks in CI what the bot checks when it reads"),
		none("leader election", "one of two replicas", "two bots are harmless: each push is compare-and-swap, each routing call has its token"),
		{Scenario: "deletion: routing cleared, versions deleted skipping drainage, finalizers", Controller: "a manifest that is deleted unroutes and deletes all versions",
			Want: "a spec that is gone keeps everything", Tests: []string{"internal/plan TestSpecGone"}, Why: "a file can go by mistake; retiring is a wish of its own: rampart retire"},
		none("server-side apply, field managers", "for rendered resources", "the CD tool applies"),
		none("Helm values, RBAC, metrics proxy", "of the chart", "the bot has no role in the cluster and answers for itself; its chart is another one (`TestChart` in `test/cluster`)"),
	}
}
