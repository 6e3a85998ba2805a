# Two commands do everything on a fresh machine with Python 3.11+, git and make:
#   make demo   sets up, then checks, plans and prints the example study
#   make test   sets up, then lint, types and tests
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint types check bench clean

$(VENV)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fairtrial needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/.ready
	$(BIN)/fairtrial check examples/prompt-style.yaml
	$(BIN)/fairtrial plan examples/prompt-style.yaml --out artifacts/demo/conditions.csv

test: lint types check

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready
	$(BIN)/mypy

check: $(VENV)/.ready
	$(BIN)/python -m pytest -n auto

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/plan.py
	$(BIN)/python benchmarks/startup.py

clean:
	rm -rf $(VENV) artifacts dist
