package parity

// Scenarios on a real server: the controller's by strategy, and the tests of ours that show them end to end.

const identity = "a state of its own, and no call is made that the server would refuse"

func maxVersions(strategy string) Case {
	return Case{Scenario: "max versions", Controller: strategy + ": creates no version above the limit, says nothing", Want: "VersionLimitReached, with names",
		Tests: []string{"test/e2e TestPeer", "test/e2e TestVersionLimit"}, Why: "a person has to know what is in the way"}
}

func otherManager() Case {
	return Case{Scenario: "another manager", Controller: "routing does not move; PlanExecutionFailed", Want: "OwnedByAnother; files still render",
		Tests: []string{"test/e2e TestPeer"}, Why: identity}
}

func clearedManager() Case {
	return Case{Scenario: "manager cleared", Controller: "claims it again with the next change", Want: "claims it again with the next change", Tests: []string{"test/e2e TestPeer"}}
}

func manual() []Case {
	return []Case{
		{Scenario: "no change", Controller: "does nothing", Want: "no commit and no call", Tests: []string{"test/e2e TestIdle"}},
		{Scenario: "failed gate", Controller: "runs it, and does nothing", Want: "runs none", Tests: []string{"test/e2e TestPeer"}, Why: "no gate can stop a person"},
		{Scenario: "passed gate", Controller: "runs it, and does nothing", Want: "runs none", Tests: []string{"test/e2e TestPeer"}, Why: "no gate can stop a person"},
		{Scenario: "a person moves traffic", Controller: "no test", Want: "followed", Tests: []string{"test/e2e TestManual"}, Why: "a person is who decides there"},
		{Scenario: "scaled up", Controller: "a target at 0 is scaled up", Want: "a target at 0 is scaled up",
			Tests: []string{"test/e2e TestPeer"}},
		{Scenario: "custom build ID: rolling update", Controller: "in place", Want: "in place", Tests: []string{"test/e2e TestPeer", "test/e2e TestStableBuildIDUpdatesInPlace"}},
		{Scenario: "deprecated version scaled down", Controller: "to 0 once drained", Want: "to 0 once drained, by two reads", Tests: []string{"test/e2e TestPeer", "test/e2e TestDrainedVersionGoesInTwoCommits"}},
		{Scenario: "unversioned pollers", Controller: "does nothing", Want: "does nothing", Tests: []string{"test/e2e TestPeer"}},
		maxVersions("Manual"), otherManager(), clearedManager(),
	}
}

func allAtOnce() []Case {
	return []Case{
		{Scenario: "gate passes", Controller: "makes the target current", Want: "makes the target current", Tests: []string{"test/e2e TestPeer"}},
		{Scenario: "gate fails", Controller: "routing does not move", Want: "routing does not move; GateFailed", Tests: []string{"test/e2e TestPeer", "test/e2e TestGateFails"}},
		{Scenario: "deprecated version scaled down", Controller: "to 0 once drained", Want: "to 0 once drained, by two reads", Tests: []string{"test/e2e TestPeer", "test/e2e TestDrainedVersionGoesInTwoCommits"}},
		{Scenario: "unversioned pollers", Controller: "makes the target current", Want: "makes the target current", Tests: []string{"test/e2e TestPeer"}},
		maxVersions("AllAtOnce"), otherManager(), clearedManager(),
	}
}

func progressive() []Case {
	return []Case{
		{Scenario: "gate, no current version", Controller: "current once it passed", Want: "current once it passed", Tests: []string{"test/e2e TestPeer", "test/e2e TestGatePasses"}},
		{Scenario: "no current version, no unversioned pollers", Controller: "current at once", Want: "current at once", Tests: []string{"test/e2e TestPeer", "test/e2e TestFirstDeployment"}},
		{Scenario: "no current version, unversioned pollers", Controller: "first step", Want: "first step",
			Tests: []string{"test/e2e TestPeer"}},
		{Scenario: "first step", Controller: "ramps", Want: "ramps, after the push", Tests: []string{"test/e2e TestPeer", "test/e2e TestProgressive"}},
		{Scenario: "all steps", Controller: "no test", Want: "each step, then current", Tests: []string{"test/e2e TestProgressive"}, Why: "that is what a rollout is for"},
		{Scenario: "gate passes", Controller: "ramps", Want: "ramps; each step may have one", Tests: []string{"test/e2e TestGateOnEachStep"}},
		{Scenario: "gate fails", Controller: "routing does not move", Want: "routing does not move; GateFailed", Tests: []string{"test/e2e TestPeer", "test/e2e TestGateFails"}},
		maxVersions("Progressive"), otherManager(), clearedManager(),
	}
}

func rest() []Case {
	return []Case{
		{Scenario: "rollback, AllAtOnce", Controller: "the version before is current again", Want: "the version before is current again",
			Tests: []string{"test/e2e TestPeer", "test/e2e TestRevertWithAllAtOnce"}},
		{Scenario: "rollback, Progressive", Controller: "no test that would fail without it", Want: "current at once, without steps", Tests: []string{"test/e2e TestRollbackAfterPromotion"},
			Why: "steps would show there"},
		{Scenario: "6th and 7th rollout after pollers died", Controller: "the server makes room", Want: "the server makes room, and the files of what it deleted go",
			Tests: []string{"test/e2e TestSeventhRollout", "test/e2e TestServersVersionLimit"}, Why: "the bot makes room too, once deleteDelay is over"},
		{Scenario: "an autoscaler for each build ID", Controller: "rendered for each", Want: "rendered for each", Tests: []string{"test/e2e TestObjectsOfTemplates"}},
		{Scenario: "resource templates: eight cases", Controller: "applied, updated, deleted", Want: "written, followed, put back, removed", Tests: []string{"test/e2e TestObjectsOfTemplates"}},
		{Scenario: "conditions when all is well: two cases", Controller: "Ready, Progressing", Want: "Ready, Progressing", Tests: []string{"test/e2e TestFirstDeployment", "test/e2e TestManual"}},
		{Scenario: "conditions when not: three cases", Controller: "the reasons of failures", Want: "the reasons of failures",
			Tests: []string{"test/e2e TestTemporalDownInMidRamp", "test/e2e TestGateInputFromSecret", "test/e2e TestTwoSpecsOfOneName"}},
		{Scenario: "rate limit: ten worker deployments, one request in a second", Controller: "all end well", Want: "the whole namespace is asked less, and goes on",
			Tests: []string{"test/e2e TestManyUnderRateLimit", "test/temporal TestRateLimitedByTheServer"}, Why: "people and workers share the limit"},
		{Scenario: "deletion: unversioned, and finalizers", Controller: "routing is cleared, versions are deleted, drained or not",
			Want: "retired by a person: drained first, nothing skipped", Tests: []string{"test/e2e TestRetireAWorkerDeployment"},
			Why: "a spec that is gone keeps everything; workflows that run for months end first"},
	}
}

// gaps are what the controller's tests leave out.
func gaps() []Case {
	gap := func(scenario, controller, want string, tests ...string) Case {
		return Case{Scenario: scenario, Controller: controller, Want: want, Tests: tests, Why: "tested"}
	}
	return []Case{
		gap("gate and ramp reset", "the ramp stays", "the ramp is cleared", "internal/plan TestParity", "test/e2e TestRevertedAndAskedForAgain"),
		gap("rollback of a version that was stable for long", "goes through gate and steps", "current at once", "internal/plan TestParity", "internal/plan TestRollbackInTheWindow"),
		gap("rollback under Progressive, end to end", "would pass without the feature", "one call, no steps", "test/e2e TestRollbackAfterPromotion"),
		gap("Manual with another manager never attempts a write", "not tested", "no call with any strategy; the server's refusal is tested beside it", "internal/plan TestForeign", "test/temporal TestRaiseWithAnotherManager", "test/e2e TestPeer"),
		gap("another API-key Secret, another kind of credentials", "pods keep the old ones", "all pairs of connections render as new", "render TestReconnectIsRender"),
		gap("temporalNamespace changed", "waits for pollers for ever", "InvalidSpec, with the way to do it", "internal/plan TestTargetRows"),
		gap("target at 0 replicas", "counts as healthy", "workers have to poll first", "internal/plan TestParity", "internal/plan TestWorkersComeAndGo"),
		gap("limit of versions", "says nothing", "VersionLimitReached, with names", "internal/plan TestTargetRows", "test/e2e TestVersionLimit"),
		gap("gate of a worker of activities only", "never passes", "GateFailed, and why", "test/e2e TestGateOfActivitiesOnly"),
		gap("retention against gates", "a run that is gone starts again, and the ramp stands still", "a first gate is not asked about after the first traffic", "internal/plan TestParity"),
		gap("collision of hashes", "the change is never deployed", "more of the hash is taken", "internal/rollout TestBuildIDCollision"),
		gap("collision of names", "creating fails for ever", "the hashed form is taken", "internal/rollout TestDeploymentName", "internal/plan TestNames"),
		gap("deletion with live pollers", "its tests hide a deadlock", "nothing is deleted that polls; the server's refusal is tested", "test/temporal TestDeleteVersion", "test/temporalenv TestFactDeletingIsRefusedWhileNeeded"),
		gap("drift of rendered resources", "not repaired", "put back", "test/e2e TestObjectsOfTemplates"),
		gap("drift of a version's files", "not applicable", "put back, from history if need be", "test/e2e TestManifestsEditedByHand"),
		gap("event of a failed gate", "no unit test", "a condition of its own", "internal/plan TestParity", "test/e2e TestGateFails"),
		gap("claiming", "no unit test", "before the first call, and not otherwise", "internal/plan TestClaim", "test/temporal TestRaiseWithAnotherManager"),
		gap("counting unversioned pollers", "no unit test", "three answers: yes, no, not known", "temporal TestKindOf", "internal/plan TestTargetRows"),
		gap("waiting after a refusal", "no unit test of its 10s", "refused deletions rest, longer each time", "internal/plan TestOtherRows"),
		gap("replicas of versions that are not deprecated", "not checked", "checked with every plan", "internal/plan TestVersionsInTheRecord", "internal/plan TestProperties"),
	}
}
