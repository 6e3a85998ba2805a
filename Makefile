# Two commands do everything on a fresh machine with Python 3.11+, git and make:
#   make demo        sets up, then runs a study of agents, replays what a language model proposed
#                    for a slow project, and compares four ways to optimize it
#   make test        sets up, then lint, types and tests
# and one more, which needs the package registry and a quiet machine:
#   make test-real   judges candidates for well-known projects by their own tests, lets command-line
#                    agents propose (where npm can fetch them), then all that needs a real clock or
#                    many processes: cheats that must not win, kill -9, ...
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# One more than there are cores: many tests wait for processes.
WORKERS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PYTEST := $(BIN)/python -m pytest
# once_more,WHICH: tests that failed beside others (1 is pytest's word for that alone) run again, by
# themselves. What fails again is broken; what passes hangs on whatever else the machine does, which
# is a mistake too: it is named, and wants mending.
once_more = { test $$? -eq 1 && echo "--- failed beside others; once more, by themselves ---" && \
  $(PYTEST) -vv --last-failed --last-failed-no-failures none --maxfail 1 $(1); }

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
	@echo "--- optimizing a small project whose working tree has a change that isn't committed ---"
	rm -rf artifacts/tidy artifacts/tidy-study artifacts/tidy-replayed
	mkdir -p artifacts
	cp -R examples/tidy artifacts/tidy
	git init --quiet artifacts/tidy
	git -C artifacts/tidy add --all
	git -C artifacts/tidy -c user.name=demo -c user.email=demo@localhost -c commit.gpgsign=false commit --quiet --message base
	echo '__version__ = "2, not committed"' >> artifacts/tidy/src/tidy/__init__.py
	@echo "--- what a language model answered, replayed: candidates are judged and timed anew ---"
	$(BIN)/fairtrial optimize artifacts/tidy/problem.yaml --agent replay --option path=recorded.jsonl --lineages 2 --max-candidates 6 --parallel-candidates 4 --unsandboxed --output artifacts/tidy-replayed
	@echo "--- does repair help, do combinations? two by two optimisations, each twice ---"
	$(BIN)/fairtrial run artifacts/tidy/study.yaml --output artifacts/tidy-study
	$(BIN)/fairtrial report artifacts/tidy-study
	$(BIN)/python artifacts/tidy/winner.py artifacts/tidy-study
	git -C artifacts/tidy status --short
	@echo "Nothing but that one change of ours has touched the project: the replay's best is in artifacts/tidy-replayed/best.patch."
	@echo "Reports: artifacts/tidy-study/report.md and artifacts/demo/report.md; beside them runs.csv, the other tables, and all of it in ledger.sqlite"

test: lint types check

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready
	$(BIN)/mypy

check: $(VENV)/.ready
	@$(PYTEST) -n $(WORKERS) --dist worksteal -m "not slow" || $(call once_more,-m "not slow")

test-real: $(VENV)/.ready
	@$(PYTEST) tests/real -n 2 --dist loadfile -rs || $(call once_more,tests/real)
	@$(PYTEST) tests -n 2 --dist loadfile -m slow || $(call once_more,tests -m slow)

bench: $(VENV)/.ready
	$(BIN)/python benchmarks/plan.py
	$(BIN)/python benchmarks/startup.py
	$(BIN)/python benchmarks/running.py
	$(BIN)/python benchmarks/arena.py
	$(BIN)/python benchmarks/statistics.py
	$(BIN)/python benchmarks/timing.py
	$(BIN)/python benchmarks/optimize.py

clean:
	rm -rf $(VENV) artifacts dist
