# The commands of the project. `make serve` and `make test` need Python >= 3.11, pip and make, nothing else.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory --no-builtin-rules
# Tests and tools start hundreds of processes: without compiled files each would compile all that it imports again.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin
INSTALL := PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 $$(cat $(VENV)/.pip) install --quiet
ARGS ?=
DATA ?=
TWO := -n 2 --dist loadgroup
FORMATS := tests/unit/dialects
# Random tests draw less often than in `make test`, and what starts processes or tries thousands is left to it.
QUICK := TESTS=quick $(BIN)/python -m pytest -q -m "not soak and not slow"

# The cheapest per request first. A name may exist and not work (version managers leave such shims), so each is tried.
# An interpreter in one piece goes before all whose core is a shared library: those take a fifth to a third more CPU.
CANDIDATES := python3.11 python3.12 python3.13 python3.14 python3 python /usr/bin/python3
WORKS := import sys, venv; sys.exit(sys.version_info < (3, 11))
WHOLE := import sys, venv; sys.exit(sys.version_info < (3, 11) or "libpython" in open("/proc/self/maps").read())
PYTHON ?=

.PHONY: help serve test soak coverage check unit unit-formats unit-others lint types layers fix format bench bench-cache bench-peers lock clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

serve: $(VENV)/.runtime ## Start the gateway (ARGS="--config PATH --port 4000")
	@exec $(BIN)/gateway serve $(ARGS)

test: $(VENV)/.dev ## All tests, two at a time (ARGS="-k name")
	@exec $(BIN)/python -m pytest $(TWO) $(ARGS)

soak: $(VENV)/.dev ## The long runs at full length: an hour or more (ARGS="-k name")
	@exec $(BIN)/python -m pytest -m soak -p no:randomly -n 0 $(ARGS)

coverage: $(VENV)/.dev ## All tests, and the lines and branches that none of them reaches
	@$(BIN)/coverage erase
	@$(BIN)/coverage run -m pytest $(ARGS)
	@$(BIN)/coverage combine --quiet
	@$(BIN)/coverage report

check: $(VENV)/.dev ## Everything fast, two at a time: format, lint, types, layers, unit tests
	@$(MAKE) -j 2 $(if $(filter 3.%,$(MAKE_VERSION)),,--output-sync) types unit-others unit-formats lint layers format

fix: $(VENV)/.dev ## Put format and imports right
	@$(BIN)/ruff format --quiet .
	@$(BIN)/ruff check --quiet --fix .

format: $(VENV)/.dev
	@$(BIN)/ruff format --check --quiet .

lint: $(VENV)/.dev
	@$(BIN)/ruff check --quiet .
	@$(BIN)/vulture
	@$(BIN)/codespell
	@$(BIN)/yamllint --strict .
	@$(BIN)/deptry .

types: $(VENV)/.dev
	@NODE_OPTIONS=--max-semi-space-size=128 $(BIN)/pyright

layers: $(VENV)/.dev
	@$(BIN)/lint-imports --no-logo --no-cache

unit: $(VENV)/.dev
	@$(BIN)/python -m pytest -q $(wildcard tests/unit tests/architecture) $(ARGS)

# The same in two halves: two runs at once find half of the tests each, two workers of one run find all of them twice.
unit-formats: $(VENV)/.dev
	@$(QUICK) $(FORMATS) $(ARGS)

unit-others: $(VENV)/.dev
	@$(QUICK) $(wildcard tests/unit tests/architecture) $(FORMATS:%=--ignore=%) $(ARGS)

bench: $(VENV)/.dev ## Measure this gateway
	@exec $(BIN)/python -m benchmarks $(ARGS)

bench-peers: $(VENV)/.dev ## Measure other gateways with the same load (installs them)
	@$(BIN)/python -m benchmarks install
	@exec $(BIN)/python -m benchmarks run --peers $(ARGS)

bench-cache: $(VENV)/.dev ## Measure what the semantic cache serves (DATA=FOLDER, ARGS="pairs")
	@[ -n "$(DATA)" ] || { echo 'Name a folder with pairs/, conversations/, streams/: make bench-cache DATA=FOLDER' >&2; exit 2; }
	@exec $(BIN)/python -m benchmarks.cache "$(DATA)" $(ARGS)

# ---------------------------------------------------------------- set-up

# A distribution may ship venv without its bundled pip: then the pip beside the interpreter fills the environment.
$(VENV)/.pip:
	@if $(BIN)/python -m pip --version >/dev/null 2>&1; then echo '$(BIN)/python -m pip' >$@; exit 0; fi; \
	for test in '$(WHOLE)' '$(WORKS)'; do for name in $(or $(PYTHON),$(CANDIDATES)); do \
	  "$$name" -c "$$test" >/dev/null 2>&1 || continue; \
	  if "$$name" -m venv --clear $(VENV) >/dev/null 2>&1; then pip='$(BIN)/python -m pip'; \
	  elif "$$name" -m pip --python "$$name" --version >/dev/null 2>&1 && "$$name" -m venv --clear --without-pip $(VENV); then \
	    pip="$$name -m pip --python $(BIN)/python"; \
	  else continue; fi; \
	  echo "$$pip" >$@; exit 0; \
	done; done; \
	rm -rf $(VENV); \
	echo "No working Python >= 3.11 with pip among: $(or $(PYTHON),$(CANDIDATES)). Name one: make PYTHON=/path/to/python3 ..." >&2; exit 1

$(VENV)/.runtime: requirements/build.lock requirements/runtime.lock pyproject.toml | $(VENV)/.pip
	@echo "installing the runtime into $(VENV), once" >&2
	@$(INSTALL) --no-deps --require-hashes -r requirements/build.lock -r requirements/runtime.lock
	@$(INSTALL) --no-deps --no-build-isolation --config-settings editable_mode=compat -e .
	@touch $@

$(VENV)/.dev: requirements/dev.lock $(VENV)/.runtime
	@echo "installing the test tools into $(VENV), once" >&2
	@$(INSTALL) --no-deps --no-compile --require-hashes -r requirements/dev.lock
	@touch $@

# ---------------------------------------------------------------- upkeep

COMPILE = $(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-emit-index-url \
  --system-certs --custom-compile-command 'make lock' $(LOCK_ARGS)

lock: | $(VENV)/.pip ## Compile the hash locks anew (LOCK_ARGS=--upgrade for newer versions)
	@$(BIN)/python -c 'import uv' 2>/dev/null || $(INSTALL) uv
	@mkdir -p requirements
	@echo 'setuptools>=84,<85' | $(COMPILE) --output-file requirements/build.lock -
	@$(COMPILE) --output-file requirements/runtime.lock pyproject.toml
	@$(COMPILE) --output-file requirements/dev.lock --constraints requirements/runtime.lock --group dev pyproject.toml

clean: ## Remove the environment and every cache
	@rm -rf $(VENV) build dist ./*.egg-info .pytest_cache .ruff_cache .import_linter_cache .hypothesis htmlcov .coverage
	@find gateway tests benchmarks -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
