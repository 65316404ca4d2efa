# Reasonix. `make help` lists the targets.
SHELL := /bin/bash
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)
STORY   := ./internal/flow/... ./internal/agent/... ./internal/run/... ./internal/session/... ./internal/store/... ./internal/approval/... ./internal/task/... ./internal/tui/...
FUZZTIME ?= 60s
export CGO_ENABLED ?= 0

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

.PHONY: build
build: ## build ./reasonix
	go build -trimpath -ldflags "$(LDFLAGS)" -o reasonix ./cmd/reasonix

.PHONY: demo
demo: ## see it work: a page, a task, an approval, a fixed test
	@bash scripts/need.sh bwrap || echo "Without bubblewrap the demo tries the reduced box." >&2
	@$(MAKE) -s build
	./reasonix demo

.PHONY: demo-check
demo-check: ## the demo's path without a browser; exits 0 or 1
	@bash scripts/need.sh bwrap || echo "Without bubblewrap the demo tries the reduced box." >&2
	@$(MAKE) -s build
	./reasonix demo --check

.PHONY: check
check: ## quick: format, vet, layout, changed packages (about 3 minutes)
	@bash scripts/check.sh

.PHONY: test
test: ## everything; installs what it lacks where it can
	@bash scripts/test.sh

.PHONY: fmt
fmt: ## format the code
	gofmt -w $$(git ls-files '*.go')

.PHONY: vet
vet: ## go vet
	go vet ./...

.PHONY: lint
lint: ## the linter; staticcheck.conf gives the reason beside each rule that is off
	@bash scripts/lint.sh

.PHONY: race
race: ## the race detector on the story's packages (needs gcc)
	CGO_ENABLED=1 go test -race -short -count=1 $(STORY)

.PHONY: cross
cross: ## build for linux, darwin and windows on amd64 and arm64 (built, not run)
	@for os in linux darwin windows; do for arch in amd64 arm64; do \
	  echo "build $$os/$$arch"; ext=; [ $$os = windows ] && ext=.exe; \
	  CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch go build -trimpath -ldflags "$(LDFLAGS)" -o dist/reasonix-$$os-$$arch$$ext ./cmd/reasonix || exit 1; done; done

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME each
	@bash scripts/fuzz.sh $(FUZZTIME)

.PHONY: mutants
mutants: ## plant one fault per invariant and see its test turn red
	@bash scripts/mutants.sh

.PHONY: bench
bench: ## the benchmark report
	@bash scripts/bench.sh

.PHONY: clean
clean: ## remove what was built
	rm -rf reasonix dist
