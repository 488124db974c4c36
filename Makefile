# What a newcomer runs: make demo, make test. What CI runs: .ci/run.

GO       ?= go
BIN      := bin
LINT     := v2.15.0
GITEA    := v1.25.2
GOTESTSUM := v1.13.0
VULN     := v1.9.0
KUBERNETES := v1.37.2
GORELEASER := v2.16.0
CYCLONEDX := v1.10.0
COSIGN   := v3.1.1
CONTROLLER := $(shell sed -n 's|^[[:space:]]*sigs.k8s.io/controller-tools v|v|p' test/kubernetes/go.mod)
KO       := $(shell sed -n 's|^[[:space:]]*github.com/google/ko v|v|p' test/kubernetes/go.mod)
# The oldest Temporal that is supported, as the temporal CLI brings it: server 1.29.1.
OLDEST   := v1.5.1
# What GitHub publishes of its API, as npm packages. Their digests are in test/githubtest/extract.
OPENAPI  := octokit-openapi-23.0.2.tgz
GRAPHQL  := octokit-graphql-schema-15.26.1.tgz
PACKAGES := ./...

# The linter, the tests and the programs that they start are compiled in one way, so that each package is compiled once: from nothing, that is most of the time.
# Only the race detector and Gitea's SQLite need cgo. Without debug information compiling takes a twelfth less; what is released is as go build makes it.
export CGO_ENABLED := 0
export GOFLAGS := -trimpath -gcflags=all=-dwarf=false
release release-snapshot: export GOFLAGS := -trimpath
# make lint runs go vet's analyzers. go test would run some of them again over every dependency: longer than it takes to compile Temporal.
# Without debug information a test binary links in half the time.
TEST     := $(GO) test -vet=off -ldflags=-w
# A race-enabled test binary needs cgo and a C compiler.
RACE     ?= -race
# Leaves gRPC's xDS and Envoy's API, 145 packages that nothing here runs, out of the storage client that comes with Temporal's server and with Flux.
NESTED   := -tags disable_grpc_modules

# Tests start hundreds of short processes and a whole Temporal, and a compiler or a linter ends before its memory does: a quarter of their time went to collecting memory that
# there is enough of.
test test-all test-root test-nested test-long test-times race soak mutate lint gitea kubernetes flux argocd demo-cluster: export GOGC := 400

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-12s %s\n", $$1, $$2}'

.PHONY: build
build: ## the rampart binary, in bin/
	$(GO) build -o $(BIN)/rampart ./cmd/rampart

.PHONY: demo
demo: ## a real Temporal, a real Git repository, three rollouts: about a minute, and some minutes to build it the first time
	@echo "The demo starts a whole Temporal server in its own process. Building that for the first time takes six minutes on two cores,"
	@echo "most of them for what the server can store its data in: AWS, Google Cloud, Cassandra, SQL. Needed: Go, git, 3 GB of disk."
	test/build.sh $(BIN)/rampart ./cmd/rampart
	cd test && ./build.sh ../$(BIN)/demo ./demo $(NESTED)
	cd test && ../$(BIN)/demo

# Two tests of test-cluster, which tell what they do.
.PHONY: demo-cluster
demo-cluster: ## the same in a real Kubernetes, by Flux and kubectl: two minutes, and half an hour to build it once
	@echo "The demo runs a whole Kubernetes with Flux, Gitea, Temporal and Prometheus, as processes on loopback and"
	@echo "without containers. Building them for the first time takes half an hour on two cores. Needed: Go, git,"
	@echo "a C compiler, etcd and Prometheus (Debian: etcd-server, prometheus), 15 GB of disk."
	$(MAKE) kubernetes flux gitea
	cd test && $(TEST) -c $(NESTED) -o ../$(BIN)/demo-cluster ./cluster
	cd test/cluster && RAMPART_DEMO=1 RAMPART_TEST_ALL=1 ../../$(BIN)/demo-cluster -test.run '^(TestFlux|TestKubectlApplies)$$'

# The tests of the root module, then those of the nested one, on an in-process Temporal: end to end first, the others beside them. -tags faults adds the places at which
# the bot can be told to die, and their tests, so that each package is compiled once.
.PHONY: test
test: TESTFLAGS := -short
test: test-root test-nested ## every test but the long ones, the end-to-end ones on a real Temporal included: ten minutes

.PHONY: test-all
test-all: test-root test-nested ## every test

.PHONY: test-root
test-root:
	$(TEST) $(TESTFLAGS) -tags faults -timeout 20m $(PACKAGES)

# Packages in which something runs beside something else: the race detector has nothing to find in the others, and computes five times as long.
# Packages in which only tests run in parallel (t.Parallel) are among the others: they have no variables that tests could share.
CONCURRENT = $(sort $(dir $(shell git grep -lE '^\s+go [A-Za-z.]+[^ A-Za-z.]|\.Go[^a-z]|^\s+"net/http' -- '*.go' ':!test')))
SEQUENTIAL = $(filter-out $(CONCURRENT),$(sort $(dir $(shell git ls-files '*.go' ':!test' ':!examples'))))

# Only the tests of the root module that make race leaves out or runs in part: sequential packages, and of the others long tests, those that start processes, and
# random ones, but for the one that make soak runs. Without the race detector, and each package of them compiled once more.
.PHONY: test-long
test-long:
	$(TEST) -tags faults -timeout 20m $(addprefix ./,$(SEQUENTIAL))
	@partly='testneed\.(Long|Plain|Repeats)\(|rapid\.Check\('; files=$$(git grep -lE "$$partly" -- $(patsubst %,':(glob)%*_test.go',$(CONCURRENT))); \
	  names=$$(awk '/^func Test/ {split($$2, f, "("); name = f[1]} $$0 ~ partly && name != "TestProperties" {print name}' partly="$$partly" $$files | sort -u | paste -sd'|'); \
	  set -x; $(TEST) -tags faults -timeout 20m -run "^($$names)$$" $$(dirname $$files | sort -u | sed 's|^|./|')

# Without -count 1 go test notes each file that the tests look at, five million looks, and looks at all of them again afterwards.
.PHONY: test-nested
test-nested:
	cd test && $(TEST) -count 1 $(TESTFLAGS) $(NESTED) -timeout 30m -parallel 8 ./e2e ./forge/... ./bench ./demo ./giteatest \
	  ./githubtest/... ./metrics ./mutation ./temporal ./temporalenv ./workflows

# The end-to-end tests on the oldest server that is supported: those that are about nothing which it lacks, and one about what it does.
COMPATIBLE := TestOlderServer|TestFirstDeployment|TestAllAtOnce|TestProgressive|TestManual|TestGatePasses|TestGateFails|TestGateOnEachStep|TestExampleWorker|\
  TestRollbackInMidRamp|TestRollbackOfAPromotion|TestSpecRevertedInMidRamp|TestThirdVersionWhileSecondRamps|TestRampRaisedByHand|TestRampLoweredByHand|\
  TestSharedTaskQueue|TestDrainedVersionGoesInTwoCommits|TestRetireUnusedVersion|TestFailingCandidateIsTurnedBack|TestStepWaitsForSamples|TestAdoptAndRelease|TestHoldAndResume
.PHONY: test-compatibility
test-compatibility: $(BIN)/temporal-$(OLDEST) ## end-to-end tests on the oldest Temporal that is supported: ten minutes, and as long to build it once
	cd test && RAMPART_TEST_TEMPORAL_CLI=$(CURDIR)/$(BIN)/temporal-$(OLDEST) $(TEST) $(NESTED) -count 1 -timeout 40m -parallel 3 -run "^($$(echo '$(COMPATIBLE)' | tr -d ' '))$$" ./e2e

$(BIN)/temporal-$(OLDEST):
	GOBIN=$(CURDIR)/$(BIN) $(GO) install $(NESTED) github.com/temporalio/cli/cmd/temporal@$(OLDEST)
	mv $(BIN)/temporal $@

# make test-times SLOWER=10s TESTFLAGS= lists the tests of make test-all that take longer than ten seconds.
SLOWER ?= 3s
.PHONY: test-times
test-times: TESTFLAGS := -short
test-times: ## the slowest tests of make test, slowest first
	mkdir -p $(BIN)
	$(TEST) $(TESTFLAGS) -json -count 1 -tags faults -timeout 20m $(PACKAGES) > $(BIN)/test-times.json
	cd test && $(TEST) $(TESTFLAGS) -json -count 1 $(NESTED) -timeout 30m -p 1 -parallel 8 ./... >> ../$(BIN)/test-times.json
	$(GO) run gotest.tools/gotestsum@$(GOTESTSUM) tool slowest --threshold $(SLOWER) --jsonfile $(BIN)/test-times.json

.PHONY: check
check: format lint vuln race ## format, lint and vet, known vulnerabilities, import rules, Rego tests, unit tests of what is concurrent, but the long ones, under the race detector, fuzz seeds

.PHONY: format
format:
	@out=$$(gofmt -l $$(git ls-files '*.go')); if [ -n "$$out" ]; then echo "not formatted:"; echo "$$out"; exit 1; fi

.PHONY: lint
lint: $(BIN)/golangci-lint-$(LINT)
	$(TEST) -run '^TestWords' ./internal/archtest
	$(BIN)/golangci-lint-$(LINT) run $(PACKAGES)
	cd test && ../$(BIN)/golangci-lint-$(LINT) run --config ../.golangci.yaml $(PACKAGES)

$(BIN)/golangci-lint-$(LINT):
	GOBIN=$(CURDIR)/$(BIN) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(LINT)
	mv $(BIN)/golangci-lint $@

.PHONY: vuln
vuln: ## known vulnerabilities of dependencies, where their database can be reached
	test/vuln.sh $(CURDIR)/$(BIN)/govulncheck-$(VULN) $(VULN)

# The forge that tests run: once, some minutes. Its templates stay where its module is. Without it those tests are skipped.
.PHONY: gitea
gitea: $(BIN)/gitea-$(GITEA) ## the Gitea that tests of forges run, in bin/

$(BIN)/gitea-$(GITEA): test/gitea/go.mod
	mkdir -p $(BIN)
	cd test/gitea && $(GO) mod download code.gitea.io/gitea
	cd test/gitea && CGO_ENABLED=1 CGO_CFLAGS=-O0 $(GO) build -tags 'sqlite sqlite_unlock_notify netgo osusergo' -o $(CURDIR)/$@ \
	  -ldflags "-X main.Version=$(GITEA:v%=%) -X code.gitea.io/gitea/modules/setting.StaticRootPath=$$($(GO) list -m -f '{{.Dir}}' code.gitea.io/gitea)" \
	  code.gitea.io/gitea

# What that Gitea shows browsers, which is not in its module: its scripts and styles, once, a minute or two. They are made by a Node.js of
# their own, and kept as what a server of tests adds to its pages. Without it the test in a browser is skipped.
PAGES := $(BIN)/gitea-pages-$(GITEA)
.PHONY: gitea-pages
gitea-pages: $(PAGES)/assets/js/index.js ## the scripts and styles of that Gitea, in bin/

$(PAGES)/assets/js/index.js:
	rm -rf $(PAGES) $(PAGES).tmp && mkdir -p $(BIN)
	cd test/gitea && $(GO) mod download code.gitea.io/gitea
	cp -r "$$(cd test/gitea && $(GO) list -m -f '{{.Dir}}' code.gitea.io/gitea)" $(PAGES).tmp && chmod -R u+w $(PAGES).tmp
	npm install --silent --no-progress --prefix $(PAGES).tmp/.tools node@22.23.3 pnpm@10.0.0
	cd $(PAGES).tmp && export PATH="$$PWD/.tools/node_modules/.bin:$$PATH" && pnpm install --silent --frozen-lockfile && \
	  BROWSERSLIST_IGNORE_OLD_DATA=true pnpm exec webpack --disable-interpret --stats errors-only
	mv $(PAGES).tmp/public $(PAGES) && rm -rf $(PAGES).tmp

# Mermaid's own parsers, which read every diagram of reports: needs node and npm. Without them that test is skipped.
.PHONY: mermaid
mermaid: test/mermaid/node_modules/.package-lock.json ## the parsers of Mermaid that tests of diagrams use

test/mermaid/node_modules/.package-lock.json: test/mermaid/package-lock.json
	cd test/mermaid && npm ci --no-progress

# Tests of GitHub's adapter are held to a part of these, which is kept in test/githubtest/testdata; where these are, a test looks
# whether it is that.
.PHONY: octokit
octokit: $(BIN)/$(OPENAPI) $(BIN)/$(GRAPHQL) ## what GitHub publishes of its API, in bin/

$(BIN)/octokit-%.tgz:
	mkdir -p $(BIN)
	npm pack --silent --pack-destination $(BIN) $$(echo $* | sed -E 's|^(.*)-([0-9.]+)$$|@octokit/\1@\2|')

.PHONY: github-api
github-api: octokit ## the part of GitHub's API that tests are held to, made anew
	cd test && $(GO) run ./githubtest/extract ../$(BIN)/$(OPENAPI) ../$(BIN)/$(GRAPHQL) githubtest/testdata

# The custom resource definitions, and those that the schemas of other kinds are made of, by controller-gen from the Go types of test/definitions.
GENERATOR := $(BIN)/controller-gen-$(CONTROLLER)
CRDS = cd test && ../$(GENERATOR) crd:allowDangerousTypes=true,generateEmbeddedObjectMeta=true
$(GENERATOR):
	cd test/kubernetes && $(GO) build -o $(CURDIR)/$@ -ldflags '-X sigs.k8s.io/controller-tools/pkg/version.version=$(CONTROLLER)' sigs.k8s.io/controller-tools/cmd/controller-gen

.PHONY: crds
crds: $(GENERATOR) ## the custom resource definitions, the schemas and docs/reference.md, made anew from the Go types
	$(CRDS) paths=./definitions/crds output:crd:dir=../install/crds
	$(CRDS) paths=./definitions/schemas output:crd:dir=../install/schemas
	$(TEST) -run '^(TestGenerate|TestReference)$$' ./install/schemas -update

.PHONY: crds-current
crds-current: $(GENERATOR) # fails if they are not what the types make
	rm -rf $(BIN)/install
	$(CRDS) paths=./definitions/crds output:crd:dir=../$(BIN)/install/crds
	$(CRDS) paths=./definitions/schemas output:crd:dir=../$(BIN)/install/schemas
	@for f in install/crds/*.yaml install/schemas/*.yaml; do diff -u $$f $(BIN)/$$f || { echo "$$f is not what the types make: make crds"; exit 1; }; done

# The Kubernetes and the Flux that tests run: once, six minutes. They are of one module, so that what they share is compiled once.
KUBE := $(BIN)/kubernetes-$(KUBERNETES)
.PHONY: kubernetes flux argocd
kubernetes: $(KUBE)/kubectl ## the API server, the controllers and the kubectl that tests run, in bin/
argocd: $(KUBE)/argocd-manifests/argocd-cm.yaml ## the Argo CD that tests run, in bin/
flux: $(KUBE)/flux/source.toolkit.fluxcd.io_gitrepositories.yaml ## the Flux and the Helm 3 and 4 that tests run, in bin/

# Without a version the server calls itself v0.0.0, and clients misjudge it.
KUBE_BUILD = mkdir -p $(KUBE) && cd test/kubernetes && $(GO) build $(NESTED) -o $(CURDIR)/$(KUBE)/ \
  -ldflags "-s -w -X k8s.io/component-base/version.gitVersion=$(KUBERNETES) -X k8s.io/client-go/pkg/version.gitVersion=$(KUBERNETES)"

$(KUBE)/kubectl: test/kubernetes/go.mod
	$(KUBE_BUILD) k8s.io/kubernetes/cmd/kube-apiserver k8s.io/kubernetes/cmd/kube-controller-manager k8s.io/kubernetes/cmd/kubectl

$(KUBE)/flux/source.toolkit.fluxcd.io_gitrepositories.yaml: test/kubernetes/go.mod
	$(KUBE_BUILD) helm.sh/helm/v3/cmd/helm
	mv $(KUBE)/helm $(KUBE)/helm3
	$(KUBE_BUILD) $(addprefix github.com/fluxcd/,source-controller kustomize-controller helm-controller) \
	  helm.sh/helm/v4/cmd/helm
	mkdir -p $(KUBE)/flux
	cd test/kubernetes && for m in source kustomize helm; do cp -f "$$($(GO) list -m -f '{{.Dir}}' github.com/fluxcd/$$m-controller)"/config/crd/bases/*.yaml $(CURDIR)/$(KUBE)/flux/; done
	chmod u+w $(KUBE)/flux/* && touch $@

# The repo-server runs a script of the module's for each commit, whether commits are verified or not, and the kustomize in its PATH.
$(KUBE)/argocd-manifests/argocd-cm.yaml: test/kubernetes/go.mod test/kubernetes/argocd.sh
	test/kubernetes/argocd.sh $(CURDIR)/$(BIN)/argocd
	$(KUBE_BUILD) -modfile $(CURDIR)/$(BIN)/argocd/go.mod github.com/argoproj/argo-cd/v3/cmd sigs.k8s.io/kustomize/kustomize/v5
	mv $(KUBE)/cmd $(KUBE)/argocd
	rm -r $(BIN)/argocd
	mkdir -p $(@D)/crds
	cd test/kubernetes && dir="$$($(GO) list -m -f '{{.Dir}}' github.com/argoproj/argo-cd/v3)" && install -m 755 "$$dir"/hack/git-verify-wrapper.sh $(CURDIR)/$(KUBE)/ && \
	  cp -f "$$dir"/manifests/crds/*-crd.yaml $(CURDIR)/$(@D)/crds/ && cp -f "$$dir"/manifests/base/config/argocd-cm.yaml $(CURDIR)/$@
	chmod -R u+w $(@D) && touch $@

.PHONY: test-cluster
test-cluster: crds-current kubernetes flux argocd ko ## what reaches a cluster, on a real Kubernetes, by a real Flux, Argo CD and Helm; needs etcd, Redis, Prometheus
	cd test && RAMPART_TEST_ALL=1 $(TEST) $(NESTED) -count 1 -timeout 20m -parallel 4 ./cluster

.PHONY: race
race: export CGO_ENABLED := 1
race: # the slowest first
	$(TEST) -short $(RACE) -tags faults -timeout 30m ./policy $(addprefix ./,$(CONCURRENT))
	cd test && $(TEST) -short $(RACE) $(NESTED) -timeout 30m ./forge/...

# What makes a release: each tool by its version, once, some minutes.
RELEASERS := $(BIN)/goreleaser-$(GORELEASER)/goreleaser $(BIN)/cyclonedx-gomod-$(CYCLONEDX)/cyclonedx-gomod $(BIN)/ko-$(KO)/ko
SIGNER    := $(BIN)/cosign-$(COSIGN)/cosign
RELEASING = PATH="$$(printf '$(CURDIR)/%s:' $(dir $(RELEASERS) $(SIGNER)))$$PATH"
INSTALL   = GOBIN=$(CURDIR)/$(@D) GOGC=400 $(GO) install
.PHONY: release-tools ko
release-tools: $(RELEASERS)
ko: $(BIN)/ko-$(KO)/ko
$(BIN)/goreleaser-$(GORELEASER)/goreleaser:
	$(INSTALL) github.com/goreleaser/goreleaser/v2@$(GORELEASER)
$(BIN)/cyclonedx-gomod-$(CYCLONEDX)/cyclonedx-gomod:
	$(INSTALL) github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@$(CYCLONEDX)
$(BIN)/ko-$(KO)/ko:
	cd test/kubernetes && GOGC=400 $(GO) build -o $(CURDIR)/$@ github.com/google/ko
$(SIGNER):
	$(INSTALL) github.com/sigstore/cosign/v3/cmd/cosign@$(COSIGN)

# COSIGN_PRIVATE_KEY, with COSIGN_PASSWORD, signs a snapshot; COSIGN_SIGNING_CONFIG says which public services may hear
# of it.
.PHONY: release-snapshot
release-snapshot: $(RELEASERS) $(if $(COSIGN_PRIVATE_KEY),$(SIGNER)) ## a release in dist/ that is not published, signed only with COSIGN_PRIVATE_KEY
	$(RELEASING) goreleaser release --snapshot --clean $(if $(COSIGN_PRIVATE_KEY),,--skip=sign)

.PHONY: test-release
test-release: $(SIGNER) flux ## a release that is not published, signed with a key of its own, and the tests that look at it: ten minutes, as each platform is built
	rm -rf $(BIN)/signing && mkdir -p $(BIN)/signing
	cd $(BIN)/signing && export COSIGN_PASSWORD= && ../../$(SIGNER) generate-key-pair && ../../$(SIGNER) signing-config create --out nowhere.json
	COSIGN_PASSWORD= COSIGN_SIGNING_CONFIG=$(BIN)/signing/nowhere.json COSIGN_PRIVATE_KEY="$$(cat $(BIN)/signing/cosign.key)" $(MAKE) release-snapshot
	cd test && RAMPART_TEST_ALL=1 $(TEST) $(NESTED) -count 1 ./release
	cd test && RAMPART_TEST_ALL=1 RAMPART_TEST_PLATFORMS=linux/amd64,linux/arm64 $(TEST) $(NESTED) -count 1 -run '^TestImage$$' ./cluster

# IMAGE is where the image goes, with the tag TAG; its name with its digest is written into dist/image.
IMAGE := ghcr.io/rampart-gitops/rampart
.PHONY: image
image: $(BIN)/ko-$(KO)/ko ## the container image, pushed to IMAGE:TAG
	mkdir -p dist
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) KO_DOCKER_REPO=$(IMAGE) $(BIN)/ko-$(KO)/ko build ./cmd/rampart --bare --tags $(TAG) \
	  --image-user 65532:65532 --image-refs dist/image $(addprefix --image-label org.opencontainers.image.,title=rampart licenses=Apache-2.0 version=$(TAG) \
	  source=https://github.com/rampart-gitops/rampart revision=$(shell git rev-parse HEAD))

# CHARTS is the OCI registry that both charts go to; HELMFLAGS=--plain-http is for one on this machine.
CHARTS := oci://ghcr.io/rampart-gitops/charts
HELM   ?= helm
.PHONY: charts
charts: ## both charts, pushed to CHARTS by their version; their names with their digests are written into dist/charts/pushed
	rm -rf dist/charts
	$(HELM) package install/chart install/chart-crds --destination dist/charts
	set -e; for chart in dist/charts/*.tgz; do $(HELM) push $$chart $(CHARTS) $(HELMFLAGS) > dist/charts/said 2>&1 || { cat dist/charts/said; exit 1; }; \
	  awk '/^Pushed: / {sub(/:[^:]*$$/, "", $$2); ref = $$2} /^Digest: / {print ref "@" $$2}' dist/charts/said >> dist/charts/pushed; done
	cat dist/charts/pushed

# Everything that a tag publishes, signed by the identity of the workflow that runs it (.github/workflows/release.yaml). The
# release's page is made last, since it names the rest: what failed can be run again.
.PHONY: release
release: $(RELEASERS) $(SIGNER)
	@version=$$(sed -n 's/^version: //p' install/chart/Chart.yaml); tag=$$(git describe --exact-match --tags); \
	  [ "$$tag" = "v$$version" ] || { echo "make release: the tag is $$tag, and the charts are of $$version"; exit 1; }
	@git merge-base --is-ancestor HEAD origin/main || { echo "make release: the tag is not on main"; exit 1; }
	$(MAKE) image GOFLAGS=$(GOFLAGS) TAG=$$(git describe --exact-match --tags | sed 's/^v//')
	$(MAKE) charts
	$(SIGNER) sign --yes --recursive $$(cat dist/image dist/charts/pushed)
	$(RELEASING) goreleaser release --clean

# The seeds and the corpora of the fuzz targets run with every test. This looks further: make fuzz FUZZTIME=1m
# What is interesting is not made smaller for long, which else takes a minute each, and most of the time of slow targets.
FUZZTIME ?= 10s
.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME
	@set -e; for pkg in $$($(GO) list ./...); do \
	  for target in $$($(TEST) -list '^Fuzz' $$pkg | grep '^Fuzz' || true); do \
	    echo "fuzz $$pkg $$target"; $(TEST) -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 10x $$pkg; \
	  done; done

# How many random worlds make soak plays, a seventh from each start. make test plays a hundred of them. SEED=0 is another
# seed each time. From 2000 worlds on, it also requires that they came by every row and every place to die.
WORLDS ?= 100000
SEED   ?= 0
.PHONY: soak
soak: ## the planner's properties over WORLDS random worlds
	$(TEST) -run '^TestProperties$$' -v -timeout 0 ./internal/plan -rapid.checks=$$(( ($(WORLDS) + 6) / 7 )) -rapid.seed=$(SEED) -rapid.nofailfile

# One file, or mutants by a regular expression: make mutate MUTANTS="-file never.go -mutant 'never.ready'"; -list names them.
.PHONY: mutate
mutate: ## each row, condition and check of the planner broken once: a test has to notice
	cd test && $(GO) run ./mutation $(MUTANTS)

# On how many worker deployments whole cycles are measured, beside native git doing the same work. make bench SCALE=10000 takes 25
# minutes, SCALE_ONLY=namespaces,warm,reaction,restart,cold,nothing,first some of it. What Temporal namespaces wait for
# that are slow, or beside one that hangs, needs two minutes and no fleet: SCALE_ONLY=namespaces.
SCALE ?= 1000
.PHONY: bench
bench: ## whole cycles beside native git, with their targets; then single steps
	cd test && SCALE=$(SCALE) $(TEST) $(NESTED) -run '^TestScale$$' -count 1 -timeout 60m -v ./bench
	$(TEST) -run '^$$' -bench . -benchmem ./internal/... ./policy/... ./render/... ./gitops/...
	cd test && $(TEST) $(NESTED) -run '^$$' -bench . -benchmem -benchtime 20x ./bench/...

.PHONY: clean
clean:
	rm -rf $(BIN) dist
