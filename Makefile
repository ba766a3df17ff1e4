# Needs Python 3.11+ and make. Takes uv where it is on the PATH, and venv with pip where it is not.
#
# PYTHON=python3.13 picks the interpreter; each version has its own environment in .venv/.
# ARGS="..." goes to the program that the target runs.

ifndef PYTHON
PYTHON := $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$python && break; done)
endif
VERSION := $(if $(PYTHON),$(shell $(PYTHON) -c \
	'import sys; v = sys.version_info; v < (3, 11) or print("%d.%d" % v[:2])' 2>/dev/null))

VENV := .venv/$(VERSION)
BIN := $(VENV)/bin
RUNTIME := $(VENV)/.runtime
DEV := $(VENV)/.dev

# Two makes started at once take turns at the environment, where flock exists.
TURN := $(if $(shell command -v flock 2>/dev/null),flock .venv/.turn)

ifneq ($(shell command -v uv 2>/dev/null),)
UV := uv
CREATE := $(PYTHON) -m venv --without-pip $(VENV)
INSTALL := uv pip install --quiet --python $(BIN)/python
else
UV := .venv/uv/bin/uv
CREATE := $(PYTHON) -m venv $(VENV)
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check
endif

# Three more than there are processors, up to five: tests wait for half of their time, for servers, for locks that run out
# and for processes that start. Without restarts: xdist 3.8 can hang after replacing a worker that crashed.
PROCESSES := $(if $(VERSION),$(shell $(PYTHON) -c 'import os; print(min((os.cpu_count() or 1) + 3, 5))'))
PARALLEL := -n $(PROCESSES) --dist loadgroup --max-worker-restart 0

COMPILE := $(UV) pip compile pyproject.toml --quiet --no-config --universal --python-version 3.11 \
	--generate-hashes --no-emit-index-url --no-emit-find-links --custom-compile-command 'make lock'

.DEFAULT_GOAL := help
.PHONY: help run test test-deep check format docs bench picture lock clean

help: ## Print this
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile
	@echo
	@sed -n 's/^# \([A-Z]*=\)/\1/p' Makefile

run: $(RUNTIME) ## Run the example application on the embedded store, with the live view
	$(BIN)/python -m examples.tour $(ARGS)

test: $(DEV) ## Run the tests; ARGS="-n 0 -k claim" narrows them down
	$(BIN)/python -m pytest $(PARALLEL) $(ARGS)

test-deep: export ROPEWAY_DEEP ?= 1
test-deep: export ROPEWAY_EXAMPLES ?= 300
# A search of this length may take longer than a test that hangs in an ordinary run.
test-deep: PARALLEL += -o faulthandler_timeout=1800
test-deep: test ## Run every test on every store, search longer, and kill more

check: $(DEV) ## Check format, lint and types
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/python -m tools.twins --check
	$(BIN)/python -m tests.typing.check

format: $(DEV) ## Format the code, and mend what the linter can mend
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

docs: $(DEV) ## Build the documentation into site/; ARGS=serve shows it in a browser, and follows changes
	$(BIN)/python -m docs.derived
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs $(or $(ARGS),build --strict)

bench: $(DEV) ## Run the benchmarks
	$(BIN)/python -m benchmarks $(ARGS)

picture: $(DEV) ## Draw the pictures of the live view and the dashboard anew
	$(BIN)/python -m tests.cli.live.image
	$(BIN)/python -m tests.browser.image

lock: $(filter .venv/%,$(UV)) ## Lock the dependencies anew; ARGS=--upgrade takes the newest
	$(COMPILE) --extra cli --extra server --group build --output-file requirements.lock $(ARGS)
	$(COMPILE) --extra cli --extra server --group dev --constraints requirements.lock --output-file requirements-dev.lock $(ARGS)

clean: ## Remove environments, caches and builds
	rm -rf .venv .hypothesis .mypy_cache .pytest_cache .ruff_cache benchmarks/.venvs dist site
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(RUNTIME): pyproject.toml requirements.lock
	$(if $(VERSION),,$(error $(or $(PYTHON),python3) is not Python 3.11 or newer: name one, as in PYTHON=python3.13))
	@echo "Setting up $(VENV)"
	@mkdir -p .venv
	@$(TURN) $(CREATE)
	@$(TURN) $(INSTALL) --require-hashes -r requirements.lock
	@$(TURN) $(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): $(RUNTIME) requirements-dev.lock tests/browser/package-lock.json
	@echo "Setting up $(VENV) for development"
	@$(TURN) $(INSTALL) --require-hashes -r requirements-dev.lock
	@$(TURN) $(BIN)/python -m tests.browser.install
	@touch $@

.venv/uv/bin/uv:
	$(PYTHON) -m venv .venv/uv
	.venv/uv/bin/python -m pip install --quiet --disable-pip-version-check uv
