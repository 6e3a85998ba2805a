# Two commands do everything on a fresh machine with Python 3.11+, git and make:
#   make demo        sets up, then plans, runs and reports a study, and judges and times patches
#   make test        sets up, then lint, types and tests
# and one more, which needs the package registry:
#   make test-real   judges candidates for well-known projects by their own tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test test-real lint types check bench clean

$(VENV)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fairtrial needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/.ready
	$(BIN)/fairtrial plan examples/search.yaml
	rm -rf artifacts/demo
	$(BIN)/fairtrial run examples/search.yaml --output artifacts/demo
	$(BIN)/fairtrial report artifacts/demo
	rm -rf artifacts/toposort
	cp -r examples/toposort artifacts/toposort
	git init --quiet artifacts/toposort
	$(BIN)/fairtrial evaluate artifacts/toposort/toposort.yaml artifacts/toposort/candidates/* --unsandboxed
	@echo "The study's results are in artifacts/demo: runs.csv and the other tables, report.md, and all of it in ledger.sqlite"

test: lint types check

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready
	$(BIN)/mypy

check: $(VENV)/.ready
	$(BIN)/python -m pytest -n auto --dist worksteal

test-real: $(VENV)/.ready
	$(BIN)/python -m pytest tests/real -n 2 --dist loadfile -rs

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/plan.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/running.py
	$(BIN)/python benchmarks/arena.py
	$(BIN)/python benchmarks/statistics.py
	$(BIN)/python benchmarks/timing.py

clean:
	rm -rf $(VENV) artifacts dist
