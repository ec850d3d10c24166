# The commands of a working day; `make help` lists them.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.NOTPARALLEL:
MAKEFLAGS += --no-print-directory

PREFIX ?= /usr
SYSCONFDIR ?= /etc
DESTDIR ?=

RELEASE := .build/release/drydock
RELEASE_FLAGS := -c release --static-swift-stdlib
FORMATTED := Package.swift Sources Tests
# Tests at the same time: most of them wait, but more than a thousand at once keep one another waiting beyond their limits.
TEST_WIDTH ?= 12

.PHONY: help run test build install lint format bench clean check-unit check-counts sanitize sanitize-thread sanitize-address

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do \
	    printf '    make %-16s  %s\n' "$$name" "$$text"; done

run: ## installs what is missing, builds, starts the daemon on config/demo.yaml, prints the lines to try
	@.ci/need run
	@swift build $(RELEASE_FLAGS) --product drydock
	@.ci/run-demo $(RELEASE)

test: ## installs what is missing, and runs every test that CI runs
	@.ci/need test
	@$(MAKE) lint
	swift build $(RELEASE_FLAGS) --product drydock
	@$(MAKE) check-unit check-counts sanitize
	swift build --build-tests
	@rm -f .build/tests*.xml
	swift test --skip-build --xunit-output .build/tests.xml --experimental-maximum-parallelization-width $(TEST_WIDTH)
	@.ci/named-tests .build/tests-swift-testing.xml Documentation/*.md

build: ## the release binary, .build/release/drydock
	@.ci/need run
	swift build $(RELEASE_FLAGS) --product drydock

$(RELEASE):
	@$(MAKE) build

install: $(RELEASE) ## into DESTDIR: binary, unit, default configuration, schema (PREFIX=/usr)
	install -D -m 0755 $(RELEASE) "$(DESTDIR)$(PREFIX)/bin/drydock"
	install -d "$(DESTDIR)$(PREFIX)/lib/systemd/system" "$(DESTDIR)$(SYSCONFDIR)/drydock"
	sed -e 's|/usr/bin/drydock|$(PREFIX)/bin/drydock|' -e 's|/etc/drydock|$(SYSCONFDIR)/drydock|' \
	    systemd/drydock.service > "$(DESTDIR)$(PREFIX)/lib/systemd/system/drydock.service"
	chmod 0644 "$(DESTDIR)$(PREFIX)/lib/systemd/system/drydock.service"
	install -D -m 0644 config/drydock.schema.json "$(DESTDIR)$(PREFIX)/share/drydock/drydock.schema.json"
	@config="$(DESTDIR)$(SYSCONFDIR)/drydock/drydock.yaml"; \
	if [ -e "$$config" ]; then echo "$$config is there already: left as it is"; \
	else sed -E '1s|(\$$schema=).*|\1$(PREFIX)/share/drydock/drydock.schema.json|' config/drydock.yaml > "$$config"; \
	    chmod 0644 "$$config"; fi

check-counts: $(RELEASE) ## allocations and instructions of hits and of what is passed on, which must not grow
	@Benchmarks/bench --only counts-1k,counts-16k,counts-304,counts-log,counts-disk,counts-pass >/dev/null

check-unit: $(RELEASE) ## installs into a temporary tree and asks systemd-analyze about the unit
	@tree=$$(mktemp -d); trap 'rm -rf "$$tree"' EXIT; \
	$(MAKE) install DESTDIR="$$tree" PREFIX=/usr SYSCONFDIR=/etc >/dev/null; .ci/check-unit "$$tree"

sanitize: ## the rooms with threads and pointers of their own under both sanitizers
	@.ci/sanitize both

sanitize-thread: ## the same under ThreadSanitizer alone
	@.ci/sanitize thread

sanitize-address: ## the same under AddressSanitizer alone
	@.ci/sanitize address

lint: ## the format rules, strictly
	swift format lint --strict --recursive --parallel $(FORMATTED)

format: ## brings every file into form
	swift format format --in-place --recursive --parallel $(FORMATTED)

bench: ## beside a bare loop and Debian's caching proxies: speed, memory, allocations; writes Benchmarks/RESULTS.md; eviction orders
	@.ci/need bench
	@$(MAKE) build
	Benchmarks/eviction
	Benchmarks/bench --write

clean: ## everything that was built
	rm -rf .build .build-tsan .build-asan Benchmarks/.build
