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
COMPLETIONS := bash-completion/completions zsh/site-functions fish/vendor_completions.d
RELEASE_FLAGS := -c release --static-swift-stdlib
FORMATTED := Package.swift Sources Tests
# Tests at the same time: most of them wait more than they work.
TEST_WIDTH ?= 24
# What `make check` and `make check-all` have in common.
CHECKS := check-shape check-docc check-unit check-binary check-library check-monitoring check-counts check-entered
# The pages that name tests.
PAGES := $(shell find Documentation -name "*.md") $(wildcard Sources/*/*.docc/*.md) SECURITY.md

# Scenarios whose length DRYDOCK_SOAK_SECONDS sets.
LOAD_SCENARIOS := Standstills

.PHONY: help run test check check-all build install lint format bench clean uninstall deb dist check-shape check-deb check-systemd check-unit check-binary check-library check-counts check-entered check-docc check-api check-soak check-load check-monitoring check-tracing check-browser check-clients check-sanitizers check-mutants soak fuzz sanitize sanitize-thread sanitize-address

help: ## this list
	@sed -nE 's/^([a-z-]+):.*## (.*)/\1|\2/p' $(MAKEFILE_LIST) | while IFS='|' read -r name text; do \
	    printf '    make %-16s  %s\n' "$$name" "$$text"; done

run: ## installs what is missing, builds, starts the daemon on config/demo.yaml, prints the lines to try
	@.ci/need run
	@swift build $(RELEASE_FLAGS) --product drydock
	@.ci/run-demo $(RELEASE)

test: ## installs what is missing, and runs every functional test
	@.ci/phase installation .ci/need test
	@.ci/phase format $(MAKE) lint
	@.ci/phase documentation .ci/documentation
	@.ci/phase tables .ci/tables --check
	.ci/phase 'release build' swift build $(RELEASE_FLAGS) --product drydock
	.ci/phase 'build of the tests' swift build --build-tests
	@.ci/phase 'public symbols' .ci/api-list --check
	@.ci/phase tests .ci/tests .build/tests --experimental-maximum-parallelization-width $(TEST_WIDTH)
	@.ci/phase 'tests of the pages' .ci/named-tests .build/tests*-swift-testing.xml $(PAGES)

check: ## what every change is looked at for besides: shape, documentation of the library, unit, binary, library, counts, sanitizers of what has changed, a browser, a minute of soak; CI runs it after the tests
	@.ci/phase installation .ci/need test
	@for step in $(CHECKS) check-browser check-sanitizers check-soak; do .ci/phase $$step $(MAKE) $$step; done

check-all: ## everything there is, which takes an hour and a half: the tests with all their repetitions, the checks, real programs, the package and its service, both sanitizers whole, ten minutes of soak, ten of fuzzing, the mutants
	@DRYDOCK_THOROUGH=1 $(MAKE) test
	@SECONDS_OF_LOAD=300 $(MAKE) check-monitoring
	@for step in $(CHECKS) check-tracing check-clients check-deb check-systemd sanitize check-load soak fuzz check-mutants; do .ci/phase $$step $(MAKE) $$step; done

build: ## the release binary, .build/release/drydock
	@.ci/need run
	swift build $(RELEASE_FLAGS) --product drydock

$(RELEASE):
	@$(MAKE) build

install: $(RELEASE) ## into DESTDIR: binary, unit, default configuration, log rotation, schema, manual, pages, completions (PREFIX=/usr)
	@.ci/need install
	install -D -m 0755 $(RELEASE) "$(DESTDIR)$(PREFIX)/bin/drydock"
	strip --strip-all "$(DESTDIR)$(PREFIX)/bin/drydock"
	install -d "$(DESTDIR)$(PREFIX)/lib/systemd/system" "$(DESTDIR)$(SYSCONFDIR)/drydock"
	sed -e 's|/usr/bin/drydock|$(PREFIX)/bin/drydock|' -e 's|/etc/drydock|$(SYSCONFDIR)/drydock|' -e 's|/usr/share/doc|$(PREFIX)/share/doc|' \
	    systemd/drydock.service > "$(DESTDIR)$(PREFIX)/lib/systemd/system/drydock.service"
	chmod 0644 "$(DESTDIR)$(PREFIX)/lib/systemd/system/drydock.service"
	install -D -m 0644 config/drydock.schema.json "$(DESTDIR)$(PREFIX)/share/drydock/drydock.schema.json"
	install -D -m 0644 packaging/grafana.json "$(DESTDIR)$(PREFIX)/share/drydock/grafana.json"
	@rotation="$(DESTDIR)$(SYSCONFDIR)/logrotate.d/drydock"; if [ -e "$$rotation" ]; then echo "$$rotation is there already: left as it is"; \
	else install -D -m 0644 packaging/logrotate "$$rotation"; fi
	install -D -m 0644 packaging/alerts.yaml "$(DESTDIR)$(PREFIX)/share/drydock/alerts.yaml"
	install -D -m 0644 THIRD-PARTY-NOTICES "$(DESTDIR)$(PREFIX)/share/doc/drydock/THIRD-PARTY-NOTICES"
	install -m 0644 LICENSE "$(DESTDIR)$(PREFIX)/share/doc/drydock/LICENSE"
	packaging/pages "$(DESTDIR)$(PREFIX)/share/doc/drydock" >/dev/null
	packaging/man-pages $(RELEASE) "$(DESTDIR)$(PREFIX)/share/man/man1"
	install -d $(COMPLETIONS:%="$(DESTDIR)$(PREFIX)/share/%")
	$(RELEASE) --generate-completion-script bash | sed 1d > "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/drydock"
	$(RELEASE) --generate-completion-script zsh > "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_drydock"
	$(RELEASE) --generate-completion-script fish > "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/drydock.fish"
	@config="$(DESTDIR)$(SYSCONFDIR)/drydock/drydock.yaml"; \
	if [ -e "$$config" ]; then echo "$$config is there already: left as it is"; \
	else sed -E -e '1s|(\$$schema=).*|\1$(PREFIX)/share/drydock/drydock.schema.json|' -e 's|Documentation/|$(PREFIX)/share/doc/drydock/|' config/drydock.yaml > "$$config"; \
	    chmod 0644 "$$config"; fi

uninstall: ## removes what install has put there; the configuration and what is stored stay
	rm -f "$(DESTDIR)$(PREFIX)/bin/drydock" "$(DESTDIR)$(PREFIX)/lib/systemd/system/drydock.service"
	rm -f "$(DESTDIR)$(PREFIX)/share/bash-completion/completions/drydock"
	rm -f "$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_drydock"
	rm -f "$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/drydock.fish"
	rm -f "$(DESTDIR)$(PREFIX)/share/man/man1/drydock.1" "$(DESTDIR)$(PREFIX)/share/man/man1"/drydock-*.1
	if cmp -s packaging/logrotate "$(DESTDIR)$(SYSCONFDIR)/logrotate.d/drydock"; then rm -f "$(DESTDIR)$(SYSCONFDIR)/logrotate.d/drydock"; fi
	rm -rf "$(DESTDIR)$(PREFIX)/share/drydock" "$(DESTDIR)$(PREFIX)/share/doc/drydock"

deb: $(RELEASE) ## a Debian package, in .build/dist
	@.ci/need package
	@packaging/make-deb $(RELEASE) .build/dist

dist: $(RELEASE) ## a tarball that runs on a Debian without Swift, in .build/dist
	@.ci/need install
	@packaging/make-dist $(RELEASE) .build/dist

check-shape: ## how many files a folder has, how long they are, and how many need one another in a circle
	@.ci/check-shape

check-deb: $(RELEASE) ## builds the package, and installs, uses, upgrades and purges it in a bare Debian
	@.ci/need package
	@packaging/check-deb $(RELEASE)

check-systemd: $(RELEASE) ## the package in a Debian that systemd has booted: reloads, watchdog, sockets, rotation, upgrade, purge
	@.ci/need package
	@packaging/check-systemd $(RELEASE)

check-docc: ## the library's documentation as DocC makes it, without a warning; after the tests, whose build it reads
	@.ci/check-docc

check-api: ## that the list of the library's public symbols is as the sources are; .ci/api-list renews it
	@.ci/api-list --check

check-entered: $(RELEASE) ## how many files of Sources a hit and a miss enter, which must not grow
	@Benchmarks/bench --only entered >/dev/null

check-counts: $(RELEASE) ## allocations and instructions of hits, demo answers and what is passed on, which must not grow
	@Benchmarks/bench --only counts-1k,counts-mapped,counts-16k,counts-304,counts-log,counts-disk,counts-pass,counts-demo >/dev/null

check-unit: $(RELEASE) ## installs into a temporary tree and asks systemd-analyze about the unit
	@tree=$$(mktemp -d); trap 'rm -rf "$$tree"' EXIT; \
	$(MAKE) install DESTDIR="$$tree" PREFIX=/usr SYSCONFDIR=/etc >/dev/null; .ci/check-unit "$$tree"

check-binary: $(RELEASE) ## its size, and that it has no full Foundation
	@.ci/check-binary $(RELEASE)

check-library: ## builds and runs a fresh package that uses the library, and looks that nothing of the daemon was built for it
	@.ci/check-library

check-soak: $(RELEASE) ## a minute of the soak
	@Tests/Soak/soak --seconds 60

check-load: $(RELEASE) ## the scenarios of load for half a minute each; after the tests, whose build it runs
	DRYDOCK_SOAK_SECONDS=30 swift test --skip-build --filter '$(LOAD_SCENARIOS)'

check-browser: $(RELEASE) ## Chromium through the proxy, which reads its tunnels: a page of fifty resources, twice
	@.ci/need browser
	@Tests/Clients/clients --only chromium

check-clients: $(RELEASE) ## real programs through the proxy, which reads their tunnels: browser, Java, Go, Ruby, git, pip, apt
	@.ci/need clients
	@Tests/Clients/clients

check-monitoring: $(RELEASE) ## a real Prometheus asks a daemon under load all that dashboard, alerts and page ask
	@.ci/need monitoring
	@.ci/check-monitoring $(RELEASE)

check-tracing: $(RELEASE) ## a collector reads the spans of a daemon by the messages of OpenTelemetry, and refuses them
	@.ci/need tracing
	@.ci/check-tracing $(RELEASE)

check-mutants: ## a scenario notices each line that is broken on purpose in the caching rules: some twenty minutes
	@.ci/need test
	@Tests/Mutants/run

check-sanitizers: ## the sanitizers of the modules that have changed since they passed, as far as ten minutes reach
	@.ci/sanitize both --changed --seconds 600

fuzz: $(RELEASE) ## ten minutes of messages that nobody should send, to and from clients, origins and the admin API
	@Tests/Fuzz/fuzz --seconds 600

soak: $(RELEASE) ## ten minutes of bad origins, bad clients, reloads, purges and SIGKILL, with a look at every answer
	@Tests/Soak/soak --seconds 600

sanitize: ## the modules with threads and pointers of their own under both sanitizers
	@.ci/sanitize both

sanitize-thread: ## the same under ThreadSanitizer alone
	@.ci/sanitize thread

sanitize-address: ## the same under AddressSanitizer alone
	@.ci/sanitize address

lint: ## the format rules, strictly
	swift format lint --strict --recursive --parallel $(FORMATTED)

format: ## brings every file into form
	swift format format --in-place --recursive --parallel $(FORMATTED)

bench: ## beside a bare loop and Debian's caching proxies: speed, memory, allocations; writes Benchmarks/RESULTS.md; eviction orders; mapping beside jq; the library beside async-http-client
	@.ci/need bench
	@$(MAKE) build
	Benchmarks/eviction
	Benchmarks/mapping
	Benchmarks/library/measure
	Benchmarks/bench --write

clean: ## everything that was built
	rm -rf .build .build-tsan .build-asan .build-mutants Benchmarks/.build
