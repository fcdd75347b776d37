# `make demo`, `make check` and `make test` work from a fresh clone with nothing but Python >= 3.11 and pip.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# The installed metadata hold the version, so a new version is a new stamp.
VERSION := $(shell sed -n 's/^__version__ = "\(.*\)"$$/\1/p' src/cascada/__init__.py)
STAMP := $(VENV)/.installed-$(VERSION)

# `benchmarks` may not be there; mypy refuses a path that is not.
SOURCES := $(wildcard src tests benchmarks examples)

# One thread per process: the matrices are small, and results do not depend on the number of cores.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes: without byte code each of them compiles the whole library again.
unexport PYTHONDONTWRITEBYTECODE

# $(call install,packages,what needs them): system packages, where this may be done.
define install
if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
  echo 'Installing $(1) ...'; \
  apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y $(1) >/dev/null; \
else \
  echo 'Not installed: $(1). So $(2) are skipped. (On Debian and Ubuntu: apt install $(1))'; \
fi
endef

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: demo check test suite simulators simulators-torch postgresql compiler chromium lint docs links soundness fuzz bench reproduce release-check clean help

help: ## list the targets
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | \
	  while IFS='|' read -r target text; do printf '%-18s %s\n' "$$target" "$$text"; done
	@echo 'Choose the interpreter with PYTHON=..., for example: make test PYTHON=python3.12'

demo: $(STAMP) ## run the main job on a small built-in process
	@$(BIN)/cascada demo --out build/demo

# Three workers for two cores, because some tests wait; one that has nothing left to do takes tests from the others.
TESTS := $(BIN)/python -m pytest -n 3 --dist worksteal -q

check: lint ## lint, types and the quick tests (80 seconds)
	$(TESTS) -m 'not slow'

# Types are checked beside the tests, by one core for half a minute. Both run to their end, and both must succeed.
# What the tests need is installed meanwhile.
test: $(STAMP) ## lint, types and every test (five to six minutes)
	@$(MAKE) --no-print-directory --jobs=2 --keep-going lint suite

suite: $(STAMP) chromium
	$(TESTS)

# One after the other: installing locks the packages of the system.
chromium: compiler
compiler: postgresql

# The server that some tests start for themselves, on a port of their own.
postgresql:
	@ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || command -v initdb >/dev/null || \
	  { $(call install,postgresql,the tests of PostgreSQL stores); }

# For the example with a stage in C.
compiler:
	@command -v cc >/dev/null || { $(call install,gcc libc6-dev,the tests of an example with a stage in C); }

# For the pages: they are looked at in a real browser.
chromium:
	@command -v chromium >/dev/null || command -v chromium-browser >/dev/null || \
	  { $(call install,chromium,the tests of pages); }

lint: $(STAMP) ## ruff, ruff format --check, mypy --strict
	$(BIN)/ruff check $(SOURCES)
	$(BIN)/ruff format --check $(SOURCES)
	$(BIN)/mypy $(SOURCES)

# -E reads every page anew: a warning about a page that did not change would not be repeated.
docs: $(STAMP) ## build the documentation site into build/docs; a warning is an error
	@rm -rf build/docs
	$(BIN)/sphinx-build -q -E -W --keep-going docs build/docs
	@echo 'The site is build/docs/index.html.'

# Links within the site are checked by `make docs`, and those of all Markdown files by `make test`; neither needs a network.
links: $(STAMP) ## check that links to other sites lead somewhere (needs the internet)
	$(BIN)/sphinx-build -q -E -b linkcheck docs build/links

# Modules of tests that do less in `make test`: fewer examples of a property, fewer processes or seeds (tests/thorough.py).
THOROUGH = $(shell grep -rlE '^from (hypothesis|tests.thorough) import|^from tests import thorough' --include='test_*.py' tests)

soundness: $(STAMP) ## check that every bound contains the truth (docs/soundness.md), and that 700 kills lose nothing
	$(BIN)/python -m tests.soundness --jobs 2 --write docs/soundness.md
	CASCADA_KILLS=200 $(BIN)/python -m pytest -q tests/study/test_kill.py
	$(BIN)/python -m tests.kills --kills 500
	CASCADA_THOROUGH=1 $(BIN)/python -m pytest -q $(THOROUGH)

fuzz: $(STAMP) ## try 10,000 generated inputs of the command line
	$(BIN)/python -m tests.fuzz --count 10000 --jobs 2

bench: $(STAMP) ## measure speed and the runs to a proven gap, and write docs/performance.md (hours)
	$(BIN)/python -m benchmarks.posterior --write docs/performance.md
	$(BIN)/python -m benchmarks.asks --write docs/performance.md
	$(BIN)/python -m benchmarks.steps --write docs/performance.md
	$(BIN)/python -m benchmarks.ask_growth --write docs/performance.md
	$(BIN)/python -m benchmarks.proof --write docs/performance.md
	$(BIN)/python -m benchmarks.loose_norms --write docs/performance.md
	$(BIN)/python -m benchmarks.limits --write docs/performance.md
	$(BIN)/python -m benchmarks.revise --write docs/performance.md
	$(BIN)/python -m benchmarks.step_costs --write docs/performance.md
	$(BIN)/python -m benchmarks.step_values --records benchmarks/records/step_values.jsonl --write docs/performance.md
	$(BIN)/python -m benchmarks.errors --write docs/performance.md
	$(BIN)/python -m benchmarks.parallel --write docs/parallel.md
	$(BIN)/python -m benchmarks.batch --write docs/parallel.md
	$(BIN)/python -m benchmarks.live_page --write docs/reports.md

reproduce: $(STAMP) ## reproduce the paper's experiments, and write docs/reproduction.md (10 minutes)
	$(BIN)/cascada reproduce --out build/reproduction
	$(BIN)/python -m benchmarks.reproduction build/reproduction --write docs/reproduction.md

# An environment of its own: the pins of some simulators clash with those of `make test`.
SIMULATED := .venv-simulators
simulators: ## install the simulators in .venv-simulators, and try the problems that need them (a minute)
	@$(MAKE) --no-print-directory try-simulators EXTRAS=simulators
simulators-torch: ## the same with torch, several GB, and with the beamline
	@$(MAKE) --no-print-directory try-simulators EXTRAS=simulators,simulators-torch
.PHONY: try-simulators
try-simulators:
	@$(SIMULATED)/bin/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(SIMULATED)
	@echo 'Filling $(SIMULATED) ...'
	@$(SIMULATED)/bin/python -m pip install --quiet --constraint constraints-simulators.txt --editable '.[$(EXTRAS)]' pytest hypothesis
	CASCADA_SIMULATORS=$(EXTRAS) $(SIMULATED)/bin/python -m pytest -q --noconftest \
	  -p no:cacheprovider -W default tests/problems/test_simulators.py

# What the release workflow runs. Tests that need an extra are skipped: the wheel is installed without any.
WORKERS := 2
release-check: $(STAMP) ## build wheel and sdist, and run the quick tests on the wheel alone (WORKERS=2)
	rm -rf dist build/release
	$(BIN)/python -m hatchling build -d dist
	$(PYTHON) -m venv build/release
	build/release/bin/python -m pip install --quiet --constraint constraints.txt dist/*.whl
	build/release/bin/cascada run certified-chain --budget 5
	build/release/bin/python -m pip install --quiet --constraint constraints.txt hypothesis mpmath pytest pytest-xdist scikit-learn
	build/release/bin/python -m pip check
	CI= build/release/bin/python -m pytest -n $(WORKERS) -q -m 'not slow' tests

clean: ## remove the environment and everything generated
	rm -rf $(VENV) $(SIMULATED) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find $(SOURCES) -name __pycache__ -type d -prune -exec rm -rf {} +

# The build backend is installed first and used without isolation, so that it is pinned as well.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || { \
	  echo 'cascada needs Python 3.11 or newer; "$(PYTHON)" is' "$$($(PYTHON) --version 2>/dev/null || echo missing)."; \
	  echo 'Name a newer one: make PYTHON=python3.12 $(MAKECMDGOALS)'; exit 1; } >&2
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo '"$(PYTHON)" cannot create virtual environments: its venv or ensurepip module is missing.'; \
	  echo 'Install it (on Debian and Ubuntu: apt install python3-venv) or name another: make PYTHON=python3.12 $(MAKECMDGOALS)'; exit 1; } >&2
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@echo 'Filling $(VENV) ...'
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt hatchling editables
	@$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-build-isolation --editable '.[dask,dev,docs,images,optuna,paper,postgres,problems,report]'
	@rm -f $(VENV)/.installed-*
	@touch $@
