# The commands of the project. `make serve` and `make test` need Python >= 3.11, pip and make, nothing else.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory --no-builtin-rules

VENV := .venv
BIN := $(VENV)/bin
PIP := PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1 $(BIN)/python -m pip
ARGS ?=

# The cheapest per request first. A name may exist and not work (version managers leave such shims), so each is tried.
CANDIDATES := python3.11 python3.12 python3.13 python3.14 python3 python /usr/bin/python3
WORKS := import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))
PYTHON ?=

.PHONY: help serve test check unit lint types layers format bench bench-peers lock clean

help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

serve: $(VENV)/.runtime ## Start the gateway (ARGS="--config PATH --port 4000")
	@exec $(BIN)/gateway serve $(ARGS)

test: $(VENV)/.dev ## All tests (ARGS="-k name")
	@exec $(BIN)/python -m pytest $(ARGS)

check: format lint types layers unit ## Everything fast: format, lint, types, layers, unit tests

format: $(VENV)/.dev
	@$(BIN)/ruff format --check --quiet .

lint: $(VENV)/.dev
	@$(BIN)/ruff check --quiet .
	@$(BIN)/vulture
	@$(BIN)/codespell
	@$(BIN)/yamllint --strict .
	@$(BIN)/deptry gateway

types: $(VENV)/.dev
	@$(BIN)/pyright

layers: $(VENV)/.dev
	@$(BIN)/lint-imports --no-logo --no-cache

unit: $(VENV)/.dev
	@$(BIN)/python -m pytest -q $(wildcard tests/unit tests/architecture) $(ARGS)

bench: $(VENV)/.dev ## Measure this gateway
	@exec $(BIN)/python -m bench $(ARGS)

bench-peers: $(VENV)/.dev ## Measure other gateways with the same load (installs them)
	@exec $(BIN)/python -m bench.peers $(ARGS)

# ---------------------------------------------------------------- set-up

$(BIN)/python:
	@for name in $(or $(PYTHON),$(CANDIDATES)); do \
	  if "$$name" -c '$(WORKS)' >/dev/null 2>&1; then python=$$name; break; fi; \
	done; \
	if [ -z "$${python:-}" ]; then \
	  echo "No working Python >= 3.11 with venv among: $(or $(PYTHON),$(CANDIDATES)). Name one: make PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	"$$python" -m venv --clear $(VENV)

$(VENV)/.runtime: requirements/build.lock requirements/runtime.lock pyproject.toml | $(BIN)/python
	@$(PIP) install --quiet --require-hashes -r requirements/build.lock -r requirements/runtime.lock
	@$(PIP) install --quiet --no-deps --no-build-isolation --config-settings editable_mode=compat -e .
	@touch $@

$(VENV)/.dev: requirements/dev.lock $(VENV)/.runtime
	@$(PIP) install --quiet --require-hashes -r requirements/dev.lock
	@touch $@

# ---------------------------------------------------------------- upkeep

COMPILE = $(BIN)/uv pip compile --quiet --universal --generate-hashes --python-version 3.11 --no-emit-index-url \
  --system-certs --custom-compile-command 'make lock' $(LOCK_ARGS)

lock: | $(BIN)/python ## Compile the hash locks anew (LOCK_ARGS=--upgrade for newer versions)
	@$(BIN)/python -c 'import uv' 2>/dev/null || $(PIP) install --quiet uv
	@mkdir -p requirements
	@echo 'setuptools>=84,<85' | $(COMPILE) --output-file requirements/build.lock -
	@$(COMPILE) --output-file requirements/runtime.lock pyproject.toml
	@$(COMPILE) --output-file requirements/dev.lock --constraints requirements/runtime.lock --group dev pyproject.toml

clean: ## Remove the environment and every cache
	@rm -rf $(VENV) build dist ./*.egg-info .pytest_cache .ruff_cache .import_linter_cache .hypothesis htmlcov .coverage
	@find gateway tests bench -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
