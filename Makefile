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
KUBE_VERSION = $(shell cd localkube && go list -m -f '{{.Version}}' k8s.io/kubernetes)
KUBE_LDFLAGS = -s -w \
	-X k8s.io/component-base/version.gitVersion=$(KUBE_VERSION) \
	-X k8s.io/client-go/pkg/version.gitVersion=$(KUBE_VERSION)

GO_TOOL := go tool -modfile=tools/go.mod
# Builds, tests and checks use the same flags, so that Go compiles Kubernetes once for all of them.
# Kustomize can load plugins, which nobody here does: a program that can has to keep all that a plugin might call. And
# what tells the commit is not the same after the next one, so that every test that runs localkube would run again.
override GOFLAGS += -buildvcs=false -tags=kustomize_disable_go_plugin_support
export GOFLAGS

# Each a module of its own, so that Kubernetes, Istio and cert-manager stay out of Fairlead's dependencies.
MODULES := . localkube localkube/istiod test/certmanager

# The packages of localkube that do not link all of Kubernetes, so that they are quick to test and to check.
LOCALKUBE_LIGHT := ./internal/charts ./internal/clusterdir ./internal/component ./internal/egress ./internal/pki ./internal/supervisor

##@ Use

.PHONY: help
help: ## Show the targets
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: build
build: ## Build bin/fairlead
	@mkdir -p bin
	hack/build.sh bin/fairlead . -ldflags "$(LDFLAGS)" ./cmd/fairlead

.PHONY: localkube
localkube: ## Build bin/localkube: a real Kubernetes (the first time takes minutes)
	@mkdir -p bin
	@test -x bin/localkube || echo "building Kubernetes and Istio from their Go modules: about 10 minutes on 2 cores, once"
	hack/build.sh bin/localkube localkube -ldflags "$(KUBE_LDFLAGS)" .
	hack/build.sh bin/localkube-istiod localkube/istiod -ldflags "-s -w" .
	@test -d bin/charts || bin/localkube charts --dir bin/charts

.PHONY: demo
demo: build localkube ## See Fairlead at work on a Kubernetes of its own
	@go build -o bin/demo ./test/demo
	@bin/demo

.PHONY: demo-rollout
demo-rollout: build localkube ## See Fairlead roll an environment of Materialize out
	@go build -o bin/demo ./test/demo
	@bin/demo --story rollout

.PHONY: demo-adoption
demo-adoption: build localkube ## See Fairlead take over what runs in two clusters
	@go build -o bin/demo ./test/demo
	@bin/demo --story adoption

.PHONY: demo-mesh
demo-mesh: build localkube ## See Fairlead take a mesh to MeshServices while it is called
	@go build -o bin/demo ./test/demo
	@bin/demo --story mesh

##@ Develop

.PHONY: test
test: build localkube verify lint ## Run everything whose code, binaries or files have changed: lint, unit tests, tests against localkube
	cd localkube && go test $(LOCALKUBE_LIGHT)
	hack/test.sh ./...

.PHONY: unit
unit: ## Run only the tests that need no cluster
	go test ./api/... ./internal/passage ./internal/revision/istio ./internal/revision/controlplane \
		./internal/revision/tag ./internal/revision/upkeep ./internal/migration/... ./internal/rollout/... \
		./internal/version ./internal/cli ./internal/operator

.PHONY: e2e-full
e2e-full: build localkube ## Run also the tests that take many minutes: a crash at every write, and cert-manager built from its module
	FAIRLEAD_TESTS=full go test -count=1 -p 1 -timeout 40m ./test/e2e ./test/revision ./test/migration ./test/rollout ./test/certs ./test/adoption ./test/mesh/...

.PHONY: bench
bench: build localkube ## Measure
	go test -run '^$$' -bench . -benchmem ./internal/...
	go test -run '^$$' -bench . -timeout 60m ./test/scale

.PHONY: lint
lint: ## gofmt, go vet and staticcheck
	@unformatted=$$(git ls-files -co --exclude-standard '*.go' | xargs gofmt -l); \
		test -z "$$unformatted" || { echo "gofmt these: $$unformatted"; exit 1; }
	go vet ./...
	$(GO_TOOL) staticcheck ./...
	cd localkube/istiod && go vet ./...
	cd localkube && go vet ./... && go tool -modfile=../tools/go.mod staticcheck $(LOCALKUBE_LIGHT)

.PHONY: generate
generate: generated ## Regenerate deepcopy, CRDs, RBAC and golden files
	go generate ./internal/...
	go test ./internal/passage ./internal/migration ./internal/rollout ./internal/meshservice/switching -run 'Story|Objects' -update

# What no test compares with what is committed.
.PHONY: generated
generated:
	$(GO_TOOL) controller-gen object crd paths=./api/... output:crd:dir=internal/crds/manifests
	$(GO_TOOL) controller-gen rbac:roleName=fairlead $(patsubst %,paths=./internal/%/...,$(filter-out adoption meshservice,$(notdir $(wildcard internal/*)))) \
		output:rbac:dir=charts/fairlead/generated
	$(GO_TOOL) controller-gen rbac:roleName=fairlead-adoption,fileName=adoption-role.yaml paths=./internal/adoption/... output:rbac:dir=charts/fairlead/generated
	$(GO_TOOL) controller-gen rbac:roleName=fairlead-meshservice,fileName=meshservice-role.yaml paths=./internal/meshservice/... output:rbac:dir=charts/fairlead/generated
	$(GO_TOOL) controller-gen rbac:roleName=fairlead-istiod,fileName=istiod-role.yaml paths=./charts/grants output:rbac:dir=charts/fairlead/generated

.PHONY: verify
verify: ## Fail when what is committed differs from what is generated
	@hack/verify.sh

.PHONY: tidy
tidy: ## Tidy every module
	for module in $(MODULES) tools; do (cd $$module && go mod tidy); done

.PHONY: clean
clean: ## Delete what was built
	rm -rf bin
