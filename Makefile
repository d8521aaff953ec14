# Run `make` to see what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := help

GO ?= go
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT ?= $(shell git rev-parse HEAD 2>/dev/null)
COMMITTED ?= $(shell TZ=UTC git log -1 --date=format-local:%Y-%m-%dT%H:%M:%SZ --format=%cd 2>/dev/null)
ABOUT := github.com/tholehq/thole/internal/version
LDFLAGS := -s -w -X $(ABOUT).Version=$(VERSION) -X $(ABOUT).Commit=$(COMMIT) -X $(ABOUT).Date=$(COMMITTED)

# Packages whose tests run without the race detector. SQLite here is C turned into
# Go, which the detector slows about eighteen times: crash, model and power-loss
# tests on it would take most of an hour. RACED names their tests of concurrency,
# which run with it, as PACKAGE=EXPRESSION.
# The longest comes first, so that it does not run alone at the end.
NORACE ?= ./test/e2e/pipeline ./internal/executor/local ./internal/source/... ./test/redteam/keys ./internal/provider/opencode ./internal/store/... ./internal/testkit/... ./internal/tholetest/... ./internal/thread/... ./internal/delivery/... ./internal/artifact/... \
	./internal/workspace/... ./internal/dispatch/... ./internal/system/... ./internal/appserver/... ./internal/platform/... ./internal/channel/... \
	./test/... ./internal/attachment/... ./internal/provider/claude ./internal/provider/codex ./internal/daemon/... ./internal/cli/... ./client/... ./internal/executord/executorclient ./internal/sandbox/... ./internal/vault/... ./internal/budget/... ./internal/shelf ./internal/backup ./internal/identity ./internal/notify ./internal/threadjob
RACED ?= ./internal/executor/local=Lifecycle|HungExecutors ./internal/store=Group|GiveUp|HandsEachTurn|WhileTheOneBefore ./internal/thread=Subscriber|Reader|Replay|Watch|TwoProcesses|AnotherProcess|Refused \
	./internal/dispatch=ThroughEveryPhase|Human|Interrupt|Steers|AnotherDispatcher|Loses|Survives ./internal/appserver=Rejoin|Order|Asks|Joiner|Turn|ViewsAreExact \
	./internal/tholetest=. ./internal/daemon/...=Serve ./internal/workspace=LateWriters|NeverHoldsStill ./internal/vault=UnderLoad|AtOnce/sqlite ./internal/budget=FiftyTurns ./internal/shelf=CrowdedShelf|WaitingEnds|BrokeOff ./internal/identity=SetUpWorksOnce|TestDisable ./internal/notify=EndsAndAsks|Hangs|Hanging ./internal/threadjob=AnotherRunner|Sweep

# Tests that compare with the build without the guards (internal/unguarded): there the
# attack must succeed. They run in both.
UNGUARDED ?= ./internal/appserver=FilesStayInTheWorkspace|TestToolsOfTheTUI$$ ./test/redteam=PlanAfterAFullTurn ./internal/platform/preview=OnlyWhoWasLetIn|NothingOfOurs|StreamsUpgrades ./internal/platform/session=StolenSecret ./internal/platform/sso=ForgedLogins|OtherBrowsers|ForgedLogouts ./internal/platform/peer=OnlyServersReachEachOther ./internal/egress=NoServiceOfThisMachine ./internal/executor/local=KeysNextTo ./test/e2e/repository=EveryCommandMeetsATrap ./internal/workspace=LinksStay ./internal/thread=StrangersReadNothing ./internal/identity=LoginsAreThrottled ./internal/platform/httpapi=ScopesBoundMethods ./internal/cli=TestConnectListens$$ ./internal/mcp=TestJobs$$|TestPlan$$|TestThreads$$|TestFlood$$

# Parts that a full run has to use; with CI=true a row without tests fails it.
PARTS := postgresql,dockerd,versitygw,codex,claude,claude-old,opencode,chromium,tmux,bwrap,aisdk,acp,codex-sdk,octokit,oidc-provider

.PHONY: help
help: ## show this help
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: run
run: build ## build everything and start thole on this machine (ARGS="…" for flags)
	bin/thole up $(ARGS)

.PHONY: build
build: web ## build bin/thole, one static binary with the web UI in it
	@echo "building bin/thole"
	@CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/thole ./cmd/thole

# The targets of a release. Only go build, with the flags of a release, so that
# nothing is compiled twice.
TARGETS := linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

.PHONY: build-all
build-all: ## compile everything for every system of a release, into bin/OS-ARCH
	@set -e; for t in $(TARGETS); do os=$${t%/*}; arch=$${t#*/}; \
	  echo "building $$t"; \
	  CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) build -trimpath ./...; \
	  CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/$$os-$$arch/thole ./cmd/thole; \
	done

.PHONY: licenses
licenses: ## gather the licences of everything in the program, into bin/licenses
	@scripts/licenses bin/licenses

.PHONY: sbom
sbom: build ## list what the program is made of, in bin/thole.cdx.json
	@$(GO) run ./scripts/bom sbom -version '$(VERSION)' -o bin/thole.cdx.json bin/thole

.PHONY: web
web: ## build the web UI, if it is there
	@scripts/web build

.PHONY: setup
setup: ## get the real parts that tests run on (needs root for some)
	@scripts/lab install

# What set-up could not get is listed there; the tests that need it skip, or fail
# with CI=true.
.PHONY: test
test: ## set up, then run all tests and show the real parts they ran on
	@scripts/lab install || true
	@GO='$(GO)' NORACE='$(NORACE)' RACED='$(RACED)' UNGUARDED='$(UNGUARDED)' PARTS='$(PARTS)' scripts/test

.PHONY: lint
lint: ## look for mistakes with golangci-lint, and for words that readers stumble on
	@$(GO) run ./scripts/words
	$(GO) tool -modfile=tools.mod golangci-lint run

.PHONY: bench
bench: setup ## measure speed against peers and write test/bench/RESULTS.md
	THOLE_BENCH=1 $(GO) test -count=1 -timeout 60m -v ./test/bench/...

.PHONY: soak
soak: setup ## run the long tests
	THOLE_SOAK=1 $(GO) test -count=1 -p 1 -timeout 120m ./...
	THOLE_SOAK=1 scripts/web test

# What make test runs in part, because the detector slows SQLite.
SERVERS := ./internal/appserver/... ./internal/execserver/... ./internal/executord/... ./internal/dispatch/... ./internal/daemon/... ./internal/platform/...

.PHONY: recordings
recordings: setup ## type the guides into a terminal and write docs/guide/recordings
	THOLE_SHOTS=1 $(GO) test -count=1 -run TestGuides ./test/docs

.PHONY: race
race: setup ## run all tests of the servers with the race detector
	$(GO) test -race -count=1 -p 2 -timeout 120m $(SERVERS)

FUZZTIME ?= 10m

.PHONY: fuzz
fuzz: ## run every fuzz test for FUZZTIME (10m)
	@GO='$(GO)' scripts/fuzz run $(FUZZTIME)

.PHONY: mutants
mutants: ## break the rules of delivery one by one; a test must notice each
	THOLE_MUTANTS=1 $(GO) test -count=1 -timeout 60m -v ./test/mutants

.PHONY: gen
gen: ## regenerate generated files
	$(GO) generate ./...
	@scripts/web types

.PHONY: verify
verify: ## fail on stale generated files, unformatted code, untidy modules and bad workflows
	@GO='$(GO)' scripts/verify

.PHONY: clean
clean: ## remove what was built; the cache of parts stays
	rm -rf bin
