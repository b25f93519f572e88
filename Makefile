# The two commands most people need: `make demo` and `make test`. `make help` lists the others.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What CI asks of `make test`: with PROFILE=checks the Python module shares what the Rust tests have compiled.
export PROFILE ?= release
export VIRTUAL_ENV := $(CURDIR)/$(VENV)
export CARGO_TERM_COLOR ?= auto
# An x86 processor from before AVX2 cannot run what .cargo/config.toml asks for.
CPUINFO ?= /proc/cpuinfo
ifeq ($(shell uname -sm),Linux x86_64)
ifeq ($(shell grep -cm1 avx2 $(CPUINFO)),0)
export RUSTFLAGS ?= -C target-cpu=x86-64
endif
endif

rust_sources := Cargo.toml Cargo.lock pyproject.toml $(shell find crates -name '*.rs' -o -name Cargo.toml)

.PHONY: help
help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  %-12s %s\n", $$1, $$2}'

.PHONY: build
build: $(VENV)/.built ## install into .venv and build what changed

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "hostnet needs Python 3.10 or newer; set PYTHON=." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { echo "$(PYTHON) cannot make virtual environments; install its venv package (python3-venv)." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.installed: requirements.txt | $(VENV)/.made
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.txt
	@touch $@

$(VENV)/.built: $(VENV)/.installed $(rust_sources)
	@echo "building (a minute or two the first time) ..."
	PIP_QUIET=1 $(BIN)/maturin develop --profile $(PROFILE)
	@touch $@

$(VENV)/.wheels: $(VENV)/.installed .ci/requirements-wheels.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r .ci/requirements-wheels.txt
	@touch $@

.PHONY: wheels
wheels: $(VENV)/.wheels ## make wheels for x86-64 and aarch64, and a source package, in dist/ (ten minutes)
	$(BIN)/python .ci/wheels.py

.PHONY: demo
demo: build ## replay a memcached capture under DMA, DDIO and DDIO + Sweeper, write an HTML report
	@$(BIN)/hostnet demo

.PHONY: test
test: build test-rust test-python ## run every test, Rust and Python

.PHONY: test-rust
test-rust:
	cargo test --profile checks --workspace --exclude hostnet-python

.PHONY: test-python
test-python: build
	$(BIN)/python -m pytest -n auto --dist worksteal

.PHONY: same
same: ## compare every metric of short scenarios with the committed table, bit for bit
	cargo test --profile checks -p hostnet --test same

.PHONY: same-write
same-write: ## write that table anew, after a change of results that is meant
	cargo test --profile checks -p hostnet --test same -- --write

.PHONY: bench
bench: ## measure the simulator's speed (medians over runs)
	cargo bench --profile release -p hostnet --bench '*'

.PHONY: pgo
pgo: llvm-profdata $(VENV)/.installed ## build with a profile of the scenarios, collected first (needs llvm-profdata; ten minutes)
	PIP_QUIET=1 CARGO_TARGET_DIR=target/pgo $(BIN)/maturin develop --pgo
	@touch $(VENV)/.built

# maturin looks for it in the same two places.
.PHONY: llvm-profdata
llvm-profdata:
	@"$$(rustc --print sysroot)/lib/rustlib/$$(rustc -vV | sed -n 's/^host: //p')/bin/llvm-profdata" --version >/dev/null 2>&1 \
	    || llvm-profdata --version >/dev/null 2>&1 \
	    || { echo "make pgo needs llvm-profdata (LLVM $$(rustc -vV | sed -n 's/^LLVM version: //p')): rustup component add llvm-tools." >&2; exit 1; }

.PHONY: flags
flags: ## print the flags that the compiler gets beside Cargo.toml's
	@echo "$${RUSTFLAGS-those of .cargo/config.toml}"

# What a change must pass before its tests are worth running; each part can be run by itself, and `make -k gate` runs them all.
.PHONY: gate
gate: gate-format gate-rust gate-docs gate-python gate-dependencies ## check formatting, lints, types, documentation and dependencies

# Every file that is tracked, because cargo fmt does not see the modules that a macro declares.
rustfmt := git ls-files -z '*.rs' | xargs -0 rustfmt --edition $(shell sed -n 's/^edition = "\(.*\)"/\1/p' Cargo.toml)

.PHONY: gate-format
gate-format: $(VENV)/.installed
	$(rustfmt) --check
	$(BIN)/ruff format --check

.PHONY: gate-rust
gate-rust:
	cargo clippy --locked --profile checks --workspace --all-targets -- -D warnings

.PHONY: gate-docs
gate-docs:
	RUSTDOCFLAGS="-D warnings" cargo doc --locked --profile checks --workspace --no-deps

.PHONY: gate-types
gate-types: $(VENV)/.installed
	$(BIN)/ruff check
	$(BIN)/mypy

.PHONY: gate-python
gate-python: gate-types build
	$(BIN)/stubtest --mypy-config-file pyproject.toml hostnet._core

.PHONY: gate-dependencies
gate-dependencies: $(VENV)/.installed cargo-deny
	cargo deny --locked check licenses bans sources
	cargo deny --locked --manifest-path fuzz/Cargo.toml --config deny.toml check licenses bans sources
	$(BIN)/python .ci/dependencies.py licences
	$(BIN)/python .ci/dependencies.py advisories

# Unoptimised it is built in a minute, and is quick enough.
.PHONY: cargo-deny
cargo-deny:
	@cargo deny --version >/dev/null 2>&1 || cargo install cargo-deny --version 0.20.2 --locked --debug

.PHONY: format
format: $(VENV)/.installed ## format every Rust and Python file
	$(rustfmt)
	$(BIN)/ruff check --fix-only --quiet
	$(BIN)/ruff format

.PHONY: stubs
stubs: build ## rewrite the typed face of scenarios after the schema has changed
	$(BIN)/python -m hostnet._stubs

.PHONY: scoreboard
scoreboard: build ## check the claims of the modelled papers, rewrite docs/boards/scoreboard.md and the figures beside it
	$(BIN)/hostnet scoreboard --md docs/boards/scoreboard.md
	$(BIN)/python -m hostnet.scoreboard.pages docs/boards/scoreboard.md docs/fidelity/*.md

# The plots that documentation shows; sweeper's searches are the long ones and measure fewer requests.
.PHONY: pictures
pictures: build ## run the studies whose plots docs show, rewrite docs/img (half an hour, needs Chromium)
	for figure in fig2 fig3 fig18 fig19; do $(BIN)/hostnet study hostnetwork $$figure --out results/pictures/$$figure -q; done
	$(BIN)/hostnet study sweeper fig5 --out results/pictures/sweeper -q
	$(BIN)/hostnet study ccnic fig2 --out results/pictures/ccnic -q
	$(BIN)/hostnet study real library --out results/pictures/library -q
	$(BIN)/hostnet study idio policies --quick --out results/pictures/policies -q
	$(BIN)/hostnet study real ddio --quick --out results/pictures/ddio -q
	$(BIN)/hostnet explain quadrant3 --out results/pictures/explain -q
	cp results/pictures/explain/explain.svg docs/img/explain_quadrant3.svg
	$(BIN)/hostnet run quadrant3 --out results/pictures/run -q
	$(BIN)/hostnet report results/pictures/run
	$(BIN)/python python/tests/chromium.py results/pictures/run/report.html docs/img/report.png 1200 880
	for plot in $$(ls docs/img/*.svg | grep -v explain_); do cp results/pictures/*/$$(basename $$plot) $$plot; done

$(VENV)/.docs: $(VENV)/.installed .ci/requirements-docs.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r .ci/requirements-docs.txt
	@touch $@

.PHONY: docs
docs: $(VENV)/.docs ## build the site of documentation in build/site (needs npm the first time); warnings are errors
	$(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going --fresh-env -c .ci/site -d build/doctrees . build/site
	@echo "build/site/index.html"

include crates/ccnic/ccnic.mk

.PHONY: clean
clean: ## remove everything that was built or computed
	cargo clean
	rm -rf $(VENV) build dist results .pytest_cache .ruff_cache .hypothesis
	find python -name __pycache__ -type d -prune -exec rm -rf {} +
	find python -name '*.so' -delete
