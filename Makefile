# Everything here sets itself up, inside this folder: .venv for the project, .synapse for the homeserver that the demo
# and the live tests talk to, and where there is Node, node_modules for the tests' encrypted client.
# `make setup PYTHON=...` chooses the Python, 3.11 or newer.
.DEFAULT_GOAL := help
.PHONY: help setup demo test explore soak bench lint types borders check wheel clean

BIN := .venv/bin
ENVIRONMENT := sh scripts/environment.sh
JS_PERSON := tests/live/js_person
BENCHMARKS := rendering admission bridge_time question hostile_reply process open_questions default_limits long_journal
export PYTHON PIP_DISABLE_PIP_VERSION_CHECK := 1

help: ## this list
	@sed -n 's/^\([a-z]*\):.*## /\1\t/p' Makefile | expand -t 10

setup: .venv/.ready .synapse/.ready $(JS_PERSON)/node_modules/.ready ## make all environments, or bring them up to date

demo: .venv/.ready .synapse/.ready ## chat with the demo agent in this terminal (without a terminal: play one conversation)
	@if [ -t 0 ]; then $(BIN)/mindbridge demo; else $(BIN)/mindbridge demo --once; fi

test: setup ## all tests, on a real Synapse
	@$(BIN)/python -m pytest -n auto --maxprocesses 4 --dist worksteal

explore: setup ## the property tests with other examples than those of `make test`
	@$(BIN)/python -m pytest tests/unit tests/journal -n auto --maxprocesses 4 --hypothesis-profile=exploring

soak: setup ## ten minutes of people, kills and faults; fails when anything is lost or doubled (SOAK="--minutes 1")
	@$(BIN)/python -m tests.live.soak $(SOAK)

bench: setup ## the figures, each beside its target (benchmarks/README.md)
	@missed=; for name in $(BENCHMARKS); do $(BIN)/python benchmarks/$$name.py || missed="$$missed $$name"; echo; done; \
	  if [ "$$missed" ]; then echo "missed or broken:$$missed" >&2; exit 1; fi

lint: .venv/.ready ## ruff: faults and format
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: .venv/.ready ## mypy, strict
	@$(BIN)/mypy

borders: .venv/.ready ## import-linter: who may import whom
	@$(BIN)/lint-imports --no-logo

check: lint types borders ## lint, types and borders

wheel: .venv/.ready ## build the wheel into dist/
	@$(BIN)/python -m pip wheel -qq --no-deps --build-constraint constraints.txt --wheel-dir dist .

clean: ## take away everything made here, all environments too; journals stay
	rm -rf .venv .synapse $(JS_PERSON)/node_modules build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.venv/.ready: pyproject.toml constraints.txt scripts/environment.sh
	@$(ENVIRONMENT) .venv constraints.txt --group dev --editable .

.synapse/.ready: constraints-synapse.txt scripts/environment.sh
	@$(ENVIRONMENT) .synapse constraints-synapse.txt matrix-synapse

$(JS_PERSON)/node_modules/.ready: $(JS_PERSON)/package.json scripts/node_packages.sh
	@sh scripts/node_packages.sh $(JS_PERSON)
