# Everything runs in a local .venv, made from python3 and made again when pyproject.toml or constraints.txt changes.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SERVER := .venv-server
BROWSERS := chromium chromium-browser google-chrome
STAMP := $(VENV)/installed
WORKERS ?= auto
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 4
PURE := loopscope/engine/*,loopscope/recording/*,loopscope/session/*,loopscope/views/*

.PHONY: help demo test test-slow test-browser test-server lint coverage bench clean install

help:
	@echo "make demo       open the debugger on a stuck sample run"
	@echo "make test       run the tests (minutes)"
	@echo "make test-slow  run the tests that install, drive terminals or take long"
	@echo "make test-server  follow a real LangGraph server, which is installed apart (200 MB)"
	@echo "make test-browser  run the tests of the notebook in a browser"
	@echo "make lint       ruff, mypy, pyright, import contracts"
	@echo "make coverage   branch coverage of engine, recording, session and views, which must be whole"
	@echo "make bench      measure, each figure beside its yardstick"
	@echo "make install    make or refresh .venv; the others do it when it is needed"
	@echo "make clean      remove what the other targets made"

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo "loopscope needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1). Name another: make $(MAKECMDGOALS) PYTHON=python3.13" >&2; exit 1; }
	$(PYTHON) -m venv --clear $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev]'
	@touch $@

install: $(STAMP)

demo: $(STAMP)
	@$(BIN)/loopscope attach sample:sql-retry-storm

test: $(STAMP)
	$(PYTEST) -m "not slow and not browser and not server"

test-slow: $(STAMP)
	$(BIN)/python -m pytest -m "slow and not browser and not server"

$(VENV)/browser: $(STAMP)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[dev,browser]'
	@touch $@

test-browser: $(VENV)/browser
	@for name in $(BROWSERS); do command -v $$name >/dev/null && exit 0; done; \
	  echo "test-browser needs Chromium: apt-get install chromium" >&2; exit 1
	$(BIN)/python -m pytest -m browser tests/browser

# In an environment of its own: the server brings other versions along, under a licence of its own.
$(SERVER)/installed:
	$(PYTHON) -m venv --clear $(SERVER)
	$(SERVER)/bin/python -m pip install --quiet 'langgraph-cli[inmem]>=0.4,<0.5' 'langchain>=1.5,<2'
	@touch $@

test-server: $(STAMP) $(SERVER)/installed
	LOOPSCOPE_LANGGRAPH=$(CURDIR)/$(SERVER)/bin/langgraph $(BIN)/python -m pytest -m server

lint: $(STAMP)
	@failed=; for check in "ruff check ." "ruff format --check ." "mypy" "pyright --pythonpath $(BIN)/python" "lint-imports"; do \
	  echo "$$check"; $(BIN)/$$check || failed="$$failed $${check%% *}"; \
	done; [ -z "$$failed" ] || { echo "failed:$$failed" >&2; exit 1; }

coverage: $(STAMP)
	$(PYTEST) -q --cov --cov-report= tests/engine tests/recording tests/session tests/views tests/test_settings.py
	$(BIN)/coverage report --include='$(PURE)' --fail-under=100

bench: $(STAMP)
	$(BIN)/python -m benchmarks.run

clean:
	rm -rf $(VENV) $(SERVER) build dist .coverage .coverage.* .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
