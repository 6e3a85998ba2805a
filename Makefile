# Two commands do everything on a fresh machine with Python 3.11+, git and make:
#   make demo        sets up, runs a study of agents, replays a language model's proposals for a slow
#                    project, and compares four ways to optimize it
#   make test        sets up, then lint, types and tests
# and one more, which needs the package registry and a quiet machine:
#   make test-real   judges candidates for well-known projects by their own tests, lets command-line
#                    agents propose (where npm can fetch them), then runs the slow tests: real clocks,
#                    cheats that must not win, kill -9
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One more than there are cores: many tests wait for processes.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PYTEST := $(BIN)/python -m pytest

.PHONY: demo test test-real real slow lint types check bench clean

$(VENV)/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "fairtrial needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@

demo: $(VENV)/.ready
	$(BIN)/fairtrial plan examples/search.yaml
	rm -rf artifacts/demo
	$(BIN)/fairtrial run examples/search.yaml --output artifacts/demo/search
	$(BIN)/fairtrial report artifacts/demo/search
	@echo "--- optimizing a small project with an uncommitted change ---"
	rm -rf artifacts/tidy artifacts/tidy-study artifacts/tidy-replayed
	mkdir -p artifacts
	cp -R examples/tidy artifacts/tidy
	git init --quiet artifacts/tidy
	git -C artifacts/tidy add --all
	git -C artifacts/tidy -c user.name=demo -c user.email=demo@localhost -c commit.gpgsign=false commit --quiet --message base
	echo '__version__ = "2, not committed"' >> artifacts/tidy/src/tidy/__init__.py
	@echo "--- recorded answers of a language model: candidates are judged and timed again ---"
	$(BIN)/fairtrial optimize artifacts/tidy/problem.yaml --agent replay --option path=recorded.jsonl --lineages 2 --max-candidates 6 --parallel-candidates 4 --unsandboxed --output artifacts/tidy-replayed
	@echo "--- a study: does repair help, do combinations? 2 x 2 optimizations, each twice ---"
	$(BIN)/fairtrial run artifacts/tidy/study.yaml --output artifacts/tidy-study
	$(BIN)/fairtrial report artifacts/tidy-study
	$(BIN)/python artifacts/tidy/winner.py artifacts/tidy-study
	git -C artifacts/tidy status --short
	$(BIN)/fairtrial report artifacts/demo/search --html
	$(BIN)/fairtrial report artifacts/tidy-replayed --html
	$(BIN)/fairtrial report artifacts/tidy-study --html
	@echo
	@echo "Done. The project is unchanged, except for the edit made above. Three things to look at:"
	@echo "  1. artifacts/demo/search/report.md         which search is better, and what that rests on"
	@echo "  2. artifacts/tidy-replayed/best.md         the faster code, its proof, and best.patch beside it"
	@echo "  3. artifacts/tidy-study/report.md          do repairs help, do combinations? (candidates.csv beside it)"
	@echo "Each folder has a page for the browser, report.html: a double click opens it, or on Linux"
	@echo "  xdg-open artifacts/tidy-replayed/report.html"
	@echo "All of them in a list, also while they run: $(BIN)/fairtrial view artifacts"

test: lint types check

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready
	$(BIN)/mypy

check: $(VENV)/.ready
	@$(PYTEST) -n $(WORKERS) --dist worksteal -m "not slow"

test-real: real slow

real: $(VENV)/.ready
	@$(PYTEST) tests/real -n 2 --dist loadfile -rs

slow: $(VENV)/.ready
	@$(PYTEST) tests -n 2 --dist loadfile -m slow

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/plan.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/running.py
	$(BIN)/python benchmarks/arena.py
	$(BIN)/python benchmarks/warm_starts.py
	$(BIN)/python benchmarks/statistics.py
	$(BIN)/python benchmarks/timing.py
	$(BIN)/python benchmarks/optimize.py

clean:
	rm -rf $(VENV) artifacts dist
