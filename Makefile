# Every target first makes its own environment in .venv, with pip alone.
# PYTHON=python3.12 make test     chooses the interpreter (3.11 or later)
# TESTS=tests/cli make test       runs a part of the tests

PYTHON ?= python3
TESTS ?= tests
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
# What is installed: the extras `drive` and `view`, what the robot demo adds, or everything for tests and development.
READY := $(VENV)/.ready
READY_ROBOT := $(VENV)/.ready-robot
READY_DEV := $(VENV)/.ready-dev
# All tests of a file run in one worker, so that its test kernels are compiled once.
PYTEST := $(BIN)/python -m pytest -n auto --maxprocesses 8 --dist loadfile
DEMO := demo

.DEFAULT_GOAL := help
.PHONY: help demo demo-scenarios demo-robot test test-long bench lint format rows clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: $(READY) ## evaluate the shipped policy in twelve classes of situations and in towns; a report with videos
	@mkdir -p $(DEMO)
	$(BIN)/roadworthy evaluate examples/demo.toml --policy baseline:town --workers 2 \
	  --set eval.behaviors.episodes=4 --set eval.town.episodes=24 --out $(DEMO)/runs
	@echo
	@echo "Open $(DEMO)/runs/demo.html in a browser, or look at the runs and their episodes:"
	@echo "  $(BIN)/roadworthy view $(DEMO)/runs"

demo-scenarios: $(READY) ## generate towns with moving traffic, check them and draw them
	@mkdir -p $(DEMO)
	$(BIN)/roadworthy scenarios generate --count 24 --seed 7 -o $(DEMO)/town.pack
	$(BIN)/roadworthy scenarios validate $(DEMO)/town.pack
	$(BIN)/roadworthy scenarios sheet $(DEMO)/town.pack -o $(DEMO)/classes.png
	$(BIN)/roadworthy scenarios show $(DEMO)/town.pack 7-roundabout-0000 -o $(DEMO)/town.png --mp4 $(DEMO)/town.mp4
	@echo "Look at $(DEMO)/town.mp4 (a town with moving traffic), $(DEMO)/town.png and $(DEMO)/classes.png"

demo-robot: $(READY_ROBOT) ## a robot arm under varied light and objects: run a sweep, analyze what decides success
	@mkdir -p $(DEMO)/robot
	$(BIN)/roadworthy sweep examples/factors.yaml --base examples/job.toml --episodes 600 --design sobol \
	  --out $(DEMO)/robot --episode-summary $(DEMO)/robot/episodes.jsonl
	$(BIN)/roadworthy sensitivity $(DEMO)/robot/episodes.jsonl --factors examples/factors.yaml --outcome success \
	  --neural -o $(DEMO)/robot/report.html

test: lint ## lint, then run every test that is not marked long
	$(PYTEST) $(TESTS)

test-long: $(READY_DEV) ## run the tests that are marked long
	$(PYTEST) --hypothesis-profile=long -m long $(TESTS)

bench: $(READY_DEV) ## run the benchmarks; the last line is JSON
	$(BIN)/python -m benchmarks

lint: $(READY_DEV) ## check style, formatting and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/check_modules.py

format: $(READY_DEV) ## fix style and formatting in place
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

rows: $(READY_DEV) ## list the rows of docs/requirements.md, with and without a test
	@$(BIN)/python tools/rows.py

clean: ## remove the environment, the caches and the output of the demos
	rm -rf $(VENV) $(DEMO) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis

# torch is installed first: it decides which builds of the other packages fit.
$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(v < (3, 11) and "Roadworthy needs Python 3.11 or later, but $(PYTHON) is %d.%d; choose another one, as in PYTHON=python3.12 make test" % v[:2])'
	$(PYTHON) -m venv --clear $(VENV)
	$(PIP) torch
	$(PIP) -e '.[drive,view]'
	@touch $@

$(READY_ROBOT): $(READY)
	$(PIP) -e '.[robot,sensitivity]'
	-$(BIN)/python tools/graphics.py
	@touch $@

$(READY_DEV): $(READY)
	$(PIP) -e '.[dev]'
	-$(BIN)/python tools/graphics.py
	-$(BIN)/python tools/browser.py
	@touch $@
