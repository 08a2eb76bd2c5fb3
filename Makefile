# The two commands of the README are `make demo` and `make test`.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse --short HEAD 2>/dev/null || echo unknown)
LDFLAGS := -s -w \
	-X github.com/fairlead/fairlead/internal/version.Version=$(VERSION) \
	-X github.com/fairlead/fairlead/internal/version.Commit=$(COMMIT)

# Kubernetes takes its version from the linker; without one, Helm and kubectl take it for a pre-release.
KUBE_VERSION := $(shell awk '$$1 == "k8s.io/kubernetes" {print $$2; exit}' localkube/go.mod)
KUBE_LDFLAGS := -s -w \
	-X k8s.io/component-base/version.gitVersion=$(KUBE_VERSION) \
	-X k8s.io/client-go/pkg/version.gitVersion=$(KUBE_VERSION)

GO_TOOL := go tool -modfile=tools/go.mod
# Builds, tests and checks use the same flags, so that Go compiles Kubernetes once for all of them.
# Kustomize can load plugins, which nobody here does: a program that can has to keep all that a plugin might call. And
# what tells the commit is not the same after the next one, so that every test that runs localkube would run again.
TAGS := kustomize_disable_go_plugin_support
# Nobody debugs what is built here, and to describe it to a debugger is a quarter of the work of compiling it.
override GOFLAGS += -buildvcs=false -tags=$(TAGS) -gcflags=all=-dwarf=false
export GOFLAGS

# There is memory enough to collect garbage more rarely, which takes a tenth off what compilers and clusters need of the
# processor.
build localkube programs unit test e2e e2e-full one race race-unit flake lint alerts verify release publish: export GOGC ?= 400

# Each has a folder in internal/, and a role of its own in the chart.
PASSAGES := revision adoption rollout meshservice

# Each a module of its own, so that Kubernetes, Istio, cert-manager, Prometheus and what only a release needs stay out of
# Fairlead's dependencies.
MODULES := . localkube localkube/istiod test/certmanager test/install/tools hack/release hack/monitoring

BUILD := go run ./hack/build
FAIRLEAD := bin/fairlead . -ldflags "$(LDFLAGS)" ./cmd/fairlead
LOCALKUBE := bin/localkube localkube -ldflags "$(KUBE_LDFLAGS)" . \
	-- bin/localkube-istiod localkube/istiod -ldflags "-s -w" .

# bin/charts/.all is there once every version is: an interrupted download is completed.
CHARTS = test -f bin/charts/.all || { bin/localkube charts --dir bin/charts && touch bin/charts/.all; }

# go vet is part of `make lint`. What keeps a test waiting for ever, test/harness/wait ends long before the timeout does.
TEST := go run ./hack/test
# Without what a debugger reads, a test is linked in two thirds of the time, and there are more than a hundred.
patient_minutes = $(shell awk 'BEGIN {patience = ENVIRON["FAIRLEAD_PATIENCE"] + 0; print int($(1) * (patience > 1 ? patience : 1))}')m
TEST_FLAGS := -vet=off -ldflags=-w -timeout $(call patient_minutes,90)
UNIT_FLAGS := -vet=off -ldflags=-w -timeout $(call patient_minutes,15)
# Of localkube only what has tests: to build the rest is to compile Kubernetes.
LOCALKUBE_TESTED = tested=$$(cd localkube && go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./internal/...)
# The tests of a release read files of other modules, of which Go does not notice when they change.
UNIT = $(UNIT_FLAGS) ./api/... ./internal/... ./hack/... ./test/chart ./test/docs -- -C localkube $(UNIT_FLAGS) $$tested \
	-- -C hack/release $(UNIT_FLAGS) -count=1 ./...
# A test whose name begins so is part of `make test`; all others on a cluster are part of `make e2e`.
STORY := '^TestStory'

##@ Use

.PHONY: help
help: ## Show the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/fairlead
	@$(BUILD) -title Fairlead -- $(FAIRLEAD)

.PHONY: localkube
localkube: ## Build bin/localkube: a real Kubernetes (the first time takes minutes)
	@$(BUILD) -title "Kubernetes and Istio" -- $(LOCALKUBE)
	@$(CHARTS)

.PHONY: programs
programs:
	@cores=$$(getconf _NPROCESSORS_ONLN); test -x bin/localkube || \
		echo "building Fairlead, and Kubernetes and Istio to try it on, from their Go modules, once: about $$((2 + 24 / cores)) min with $$cores cores"
	@$(BUILD) -title "Fairlead, Kubernetes and Istio" -- $(FAIRLEAD) -- $(LOCALKUBE)
	@$(CHARTS)

.PHONY: bin/demo
bin/demo: programs
	@$(BUILD) -title "the demo" -- bin/demo . ./test/demo

.PHONY: demo
demo: bin/demo ## See Fairlead at work on a Kubernetes of its own
	@bin/demo

.PHONY: demo-rollout
demo-rollout: bin/demo ## See Fairlead roll an environment of Materialize out
	@bin/demo --story rollout

.PHONY: demo-adoption
demo-adoption: bin/demo ## See Fairlead take over what runs in two clusters
	@bin/demo --story adoption

.PHONY: demo-mesh
demo-mesh: bin/demo ## See Fairlead take a mesh to MeshServices while it is called
	@bin/demo --story mesh

##@ Develop

.PHONY: test
test: programs ## Unit tests, and the main stories of every passage on real clusters
	@echo "unit tests, then the stories of every passage on real clusters: about 6 min on 2 quiet cores, more the first time"
	@$(LOCALKUBE_TESTED) && $(TEST) -- $(UNIT) -- $(TEST_FLAGS) -run $(STORY) ./test/...

.PHONY: unit
unit: ## Unit tests: no cluster
	@$(LOCALKUBE_TESTED) && $(TEST) -- $(UNIT)

.PHONY: e2e
e2e: programs ## All other behaviour on real clusters
	@echo "all other behaviour on real clusters: about 10 min on 2 quiet cores"
	@$(TEST) -- $(TEST_FLAGS) -skip $(STORY) ./test/...

.PHONY: e2e-full
e2e-full: programs ## Everything on real clusters: also a crash at every write, cert-manager, Node, an installation; and two equal releases
	@FAIRLEAD_TESTS=full $(TEST) -- $(TEST_FLAGS) -count=1 ./test/... -- -C hack/release $(TEST_FLAGS) -count=1 -run TestSameReleaseTwice ./...

RACE_LOGS := $(CURDIR)/bin/logs/race

.PHONY: race
race: race-unit programs ## Unit tests and main stories under the race detector, which needs a C compiler
	@command -v $$(go env CC) >/dev/null || exit 0; \
		CGO_ENABLED=1 $(BUILD) -title "Fairlead with the race detector" -- bin/race/fairlead . -race -ldflags "$(LDFLAGS)" ./cmd/fairlead; \
		rm -rf $(RACE_LOGS); mkdir -p $(RACE_LOGS); \
		FAIRLEAD_BIN=$(CURDIR)/bin/race GORACE="log_path=$(RACE_LOGS)/report" $(TEST) -- $(TEST_FLAGS) -count=1 -run $(STORY) ./test/... || failed=1; \
		if [ -n "$$(ls $(RACE_LOGS))" ]; then cat $(RACE_LOGS)/*; echo "the operator has data races: $(RACE_LOGS)"; exit 1; fi; \
		exit $${failed:-0}

# Short, for random worlds are told by one goroutine: in the two hundredth there is no other race than in the first. All is
# compiled for this alone.
.PHONY: race-unit
race-unit:
	@if command -v $$(go env CC) >/dev/null; then $(LOCALKUBE_TESTED) && CGO_ENABLED=1 $(TEST) -- $(TEST_FLAGS) -race -short ./api/... ./internal/... -- -C localkube $(TEST_FLAGS) -race -short $$tested; \
		else echo "skipped: the race detector needs a C compiler, and there is no $$(go env CC)"; fi

PKG ?= ./test/...
RUN ?= .

.PHONY: one
one: programs ## Run the tests RUN of the packages PKG: make one PKG=./test/e2e/operator RUN=TestStoryLeaders
	@$(TEST) -- $(TEST_FLAGS) -count=1 -run '$(value RUN)' $(PKG)

COUNT ?= 5
LOAD ?= 8
LATENCY ?=

.PHONY: flake
flake: programs ## Run the tests RUN of the packages PKG COUNT times while LOAD busy loops take the processor, with operators delayed by up to LATENCY
	@FAIRLEAD_LATENCY=$(LATENCY) $(TEST) -repeat $(COUNT) -load $(LOAD) -- $(TEST_FLAGS) -run '$(value RUN)' $(PKG)

.PHONY: slowest
slowest: programs ## Run the packages PKG and report where their time goes, wall and processor
	@$(TEST) -report -- $(TEST_FLAGS) $(PKG)

.PHONY: bench
bench: programs ## Measure how fast it is, as ratios against a bare client
	go test -run '^$$' -bench . -benchmem ./internal/...
	go test -run '^$$' -bench . -timeout 60m ./test/scale

# To analyse a package is to analyse all that it imports: those that hold all of Kubernetes are left out.
LOCALKUBE_LINT := go list -f '{{if not (or (eq .Name "main") (eq .Name "program"))}}{{.ImportPath}}{{end}}' ./...

.PHONY: lint
lint: ## gofmt, go vet, staticcheck, and govulncheck where its database can be reached
	@unformatted=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); \
		test -z "$$unformatted" || { echo "gofmt these: $$unformatted"; exit 1; }
	go vet ./...
	$(GO_TOOL) staticcheck ./...
	@go run ./hack/vulncheck ./...
	cd localkube && packages=$$($(LOCALKUBE_LINT)) && go vet $$packages && go tool -modfile=../tools/go.mod staticcheck $$packages
	cd hack/release && go vet ./... && go tool -modfile=../../tools/go.mod staticcheck ./...

# Promtool finds the targets of a Prometheus as well, by the libraries of every cloud there is. Nobody needs these here.
PROMETHEUS_TAGS := -tags=$(TAGS),remove_all_sd
PROMTOOL := go run $(PROMETHEUS_TAGS) github.com/prometheus/prometheus/cmd/promtool

.PHONY: alerts
alerts: ## Test the chart's alerts with promtool, and the queries of alerts and dashboards (the first time takes minutes)
	cd hack/monitoring && go vet $(PROMETHEUS_TAGS) ./... && go test -vet=off -count=1 $(PROMETHEUS_TAGS) ./...
	cd hack/monitoring && $(PROMTOOL) check rules --lint=all --lint-fatal ../../charts/fairlead/monitoring/alerts.yaml
	cd hack/monitoring && $(PROMTOOL) test rules alerts_test.yaml

.PHONY: vulncheck
vulncheck: ## Known vulnerabilities in what is called; GOVULNDB names another database, such as file:///DIR
	@go run ./hack/vulncheck -required ./...

FUZZTIME ?= 10m

.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME, one after the other
	@hack/fuzz.sh $(FUZZTIME)

.PHONY: generate
generate: generated ## Regenerate deepcopy, CRDs, RBAC and golden files
	go generate ./internal/...
	go test ./test/chart -update
	go test ./internal/passage ./internal/revision/workload ./internal/rollout ./internal/rollout/objects ./internal/meshservice/consumers ./internal/adoption -run 'Story|Objects' -update

# What no test compares with what is committed.
.PHONY: generated
generated:
	$(GO_TOOL) controller-gen object crd paths=./api/... output:crd:dir=internal/crds/manifests
	$(GO_TOOL) controller-gen rbac:roleName=fairlead $(patsubst %,paths=./internal/%/...,$(filter-out $(PASSAGES),$(notdir $(patsubst %/,%,$(wildcard internal/*/))))) \
		output:rbac:dir=charts/fairlead/generated
	for passage in $(PASSAGES); do \
		$(GO_TOOL) controller-gen rbac:roleName=fairlead-$$passage,fileName=$$passage-role.yaml paths=./internal/$$passage/... \
			output:rbac:dir=charts/fairlead/generated || exit 1; \
	done
	$(GO_TOOL) controller-gen rbac:roleName=fairlead-istiod,fileName=istiod-role.yaml paths=./charts/grants output:rbac:dir=charts/fairlead/generated
	$(GO_TOOL) controller-gen rbac:roleName=fairlead-mesh,fileName=serving-role.yaml paths=./charts/grants/serving output:rbac:dir=charts/fairlead/generated
	cp internal/revision/admission/policies.yaml charts/fairlead/generated/deletion-warnings.yaml
	go run ./hack/chartvalues charts/fairlead/values.yaml docs/chart-values.md

.PHONY: capture
capture: programs ## Before a release: write the objects of a move in the middle, for tests of later upgrades: make capture VERSION=v0.1.0
	go test -count=1 -timeout 60m -v ./test/upgrade -run TestCapture -capture "$(VERSION)"

.PHONY: docs
docs: programs ## Run the commands in docs/ and write what they print into the pages
	FAIRLEAD_TESTS=full go test -count=1 -timeout 60m ./test/docs -update

.PHONY: verify
verify: ## Fail when what is committed differs from what is generated
	@hack/verify.sh

.PHONY: tidy
tidy: ## Tidy every module
	for module in $(MODULES) tools; do (cd $$module && go mod tidy); done

##@ Release

# The repository of the image, with its registry, that the chart and install.yaml name.
IMAGE ?= fairlead

.PHONY: release
release: ## Fill dist/: make release VERSION=v0.1.0 [IMAGE=REGISTRY/fairlead] [COSIGN_KEY=cosign.key]
	@go -C hack/release run . -version "$(VERSION)" -root $(CURDIR) -dist $(CURDIR)/dist -tags $(TAGS) -image "$(IMAGE)" \
		$(if $(PLATFORMS),-platforms $(PLATFORMS)) $(if $(DOWNLOADS),-downloads $(DOWNLOADS))

CRANE_AND_HELM := go -C test/install/tools tool

.PHONY: publish
publish: ## Push image and chart of dist/ to the registry of IMAGE, and draft a release on GitHub with the files of dist/ (needs gh)
	@case $$(gh release view "$(VERSION)" --json isDraft --jq .isDraft 2>/dev/null) in \
		false) echo "$(VERSION) is published, and stays as it is" >&2; exit 1;; \
		true) ;; \
		*) gh release create "$(VERSION)" --verify-tag --draft --title "Fairlead $(VERSION)" --notes "See CHANGELOG.md.";; \
	esac
	$(CRANE_AND_HELM) crane push $(CURDIR)/dist/image "$(IMAGE):$(VERSION:v%=%)"
	$(CRANE_AND_HELM) helm push $(CURDIR)/dist/fairlead-$(VERSION:v%=%).tgz "oci://$(patsubst %/,%,$(dir $(IMAGE)))/charts"
	find dist -maxdepth 1 -type f | sort | xargs gh release upload "$(VERSION)" --clobber

.PHONY: clean
clean: ## Delete what was built
	rm -rf bin dist
