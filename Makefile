# Everything a developer or the CI runs. `make` without a target lists the targets.
# Needs python3 (3.11 or later) with venv, and make; the rest comes from the lock files.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SRC    := agentci tests scripts entrypoint.py $(wildcard benchmarks)
SH     := .ci/run $(wildcard scripts/*.sh)
UNITS  := $(addprefix tests/,_util model recordings evaluators config gate reports judges result_files)
IMAGE  ?= agentci
EXAMPLE ?= agentevals
SECONDS ?= 60
# More than cores, as tests also wait for processes, servers and the disk.
WORKERS = $(shell $(PYTHON) -c "import os; print(2 * os.cpu_count())")
SLOW_WORKERS = $(shell $(PYTHON) -c "import os; print(3 * os.cpu_count())")

.DEFAULT_GOAL := help
# With it, every run of pytest and every worker would compile and rewrite all tests anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help demo test test-fast test-slow attacks lint format types tests fuzz bench docs schemas page pictures site lock dist image clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(VENV)/.demo ## evaluate examples/agentevals as GitHub would, and show the comment (EXAMPLE=agentevals-failing: a failed gate)
	@scripts/demo.sh examples/$(EXAMPLE)

test: ## lint, types and tests
	@+$(MAKE) --no-print-directory --jobs 2 lint types tests # mypy beside the tests

lint: $(VENV)/.dev ## ruff, the Dockerfile, the workflows, the shell scripts
	$(BIN)/ruff check --quiet $(SRC)
	$(BIN)/ruff format --check --quiet $(SRC)
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-actions action.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/zizmor --quiet --offline .
	$(BIN)/hadolint Dockerfile
	$(BIN)/shellcheck $(SH)

format: $(VENV)/.dev ## fix and format with ruff
	$(BIN)/ruff check --quiet --fix-only $(SRC)
	$(BIN)/ruff format --quiet $(SRC)

types: $(VENV)/.dev ## mypy, strict
	$(BIN)/mypy

test-fast: $(VENV)/.dev ## the tests of single packages, in under a minute
	$(BIN)/python -m pytest -q -n $(WORKERS) $(UNITS)

test-slow: $(VENV)/.dev $(VENV)/.services ## browsers, attacks, installers, workflows of several jobs, repeated faults and changes
	$(BIN)/python -m pytest -n $(SLOW_WORKERS) --dist worksteal -m slow --timeout 900

attacks: $(VENV)/.dev ## the attacks of a hostile pull request: `N of M refused`
	$(BIN)/python -m pytest -q -n $(WORKERS) -m slow tests/attacks

tests: $(VENV)/.dev $(VENV)/.services ## the tests in parallel (COVERAGE=1: with coverage of pure packages, which takes half as long again)
ifdef COVERAGE
	@rm -f .coverage .coverage.*
	$(BIN)/coverage run -m pytest -n $(WORKERS)
	@$(BIN)/coverage combine --quiet
	$(BIN)/coverage report
else
	$(BIN)/python -m pytest -n $(WORKERS)
endif

fuzz: $(VENV)/.fuzz ## fuzz the loaders of foreign input for SECONDS=60, guided by coverage (Linux on x86-64, Python 3.11 to 3.13)
	$(VENV)/fuzz/bin/python -m scripts.fuzz $(SECONDS)

bench: $(VENV)/.dev ## measure speed and memory
	$(BIN)/python -m benchmarks

docs: schemas ## write the generated parts of action.yml, README.md and docs/
	$(BIN)/python -m scripts.docs

schemas: $(VENV)/.dev ## write schemas/ from the code
	@for name in config cases evalfile results lock; do \
	  $(BIN)/python -m agentci schema $$name > .schema.new && mv .schema.new schemas/$$name.schema.json || exit 1; \
	done

page: $(VENV)/.services ## write the script of report.html from its sources
	$(BIN)/python -m scripts.page

pictures: $(VENV)/.dev ## docs/pictures from the examples; needs Chromium
	$(BIN)/python -m scripts.pictures

site: $(VENV)/.site ## build/site: README.md and docs/ as a web site, every link and anchor checked
	NO_MKDOCS_2_WARNING=1 $(VENV)/site/bin/mkdocs build

lock: $(VENV)/.dev ## write the lock files from pyproject.toml (UPGRADE=1: the newest versions)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install -qq --disable-pip-version-check uv
	@scripts/lock.sh $(BIN)/uv $(if $(UPGRADE),--upgrade)

dist: $(VENV)/.dev ## dist/: wheel and source distribution, reproducible
	rm -rf dist
	$(BIN)/python -m hatchling build

image: ## build the container image (BASE_IMAGE=... for another base)
	docker build $(if $(BASE_IMAGE),--build-arg BASE_IMAGE=$(BASE_IMAGE)) --tag $(IMAGE) .

clean: ## remove everything that the other targets made, with the virtual environment
	rm -rf $(VENV) .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .hypothesis agentci-results build dist .fuzz

# One virtual environment: first for the demo, then for all targets.
# The stamps make a second `make` instant; a changed lock file installs again.
$(VENV)/.demo: requirements-evaluators.lock
	@scripts/venv.sh $(PYTHON) $(VENV) $<
	@touch $@

$(VENV)/.dev: requirements-dev.lock
	@scripts/venv.sh $(PYTHON) $(VENV) $<
	@touch $@

$(VENV)/.services: tests/services/package-lock.json | $(VENV)/.dev
	@scripts/services.sh $(VENV)
	@touch $@

$(VENV)/.fuzz: requirements-fuzz.lock
	@scripts/venv.sh $(PYTHON) $(VENV)/fuzz $<
	@touch $@

$(VENV)/.site: requirements-docs.lock
	$(PYTHON) -m venv --clear $(VENV)/site
	$(VENV)/site/bin/python -m pip install -qq --disable-pip-version-check --require-hashes --requirement $<
	@touch $@
