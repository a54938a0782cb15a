# Two commands do all the set-up on a machine with git, make and Python 3.11 or newer:
#   make demo    the embedded graph: three facts, the run that comes with hynt, then train, ask and evaluate
#   make test    every check: ruff, mypy, pytest

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/installed
EXTRAS := create,dev,hub,mcp,mlflow,onnx,plot,rdf,serve,spark,sweep,tensorboard,wandb
TYPED := src $(wildcard benchmarks tools)

.DEFAULT_GOAL := help
.PHONY: help setup demo test lint types unit test-slow test-gpu docs clean

help:
	@echo "make demo       set up, then train, ask and evaluate on the embedded graph"
	@echo "make test       set up, then run every check (ruff, mypy, pytest)"
	@echo "make test-slow  the long fuzz and crash tests"
	@echo "make test-gpu   the tests that need CUDA"
	@echo "make docs       build the documentation into site/"
	@echo "make clean      remove the environment and everything built"

setup: $(STAMP)

# Installed again whenever the dependencies or their pins change. hatchling and setuptools come first: they build hynt and
# pyspark, pinned like the rest.
$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "hynt needs Python 3.11 or newer, but '$(PYTHON)' is" "$$($(PYTHON) --version 2>&1)."; \
		echo "Name a newer one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { \
		echo "Python could not make a virtual environment. On Debian and Ubuntu: apt install python3-venv"; exit 2; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt hatchling setuptools
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt --no-build-isolation -e '.[$(EXTRAS)]'
	@touch $@

demo: setup
	$(BIN)/hynt data show world "Japan" --limit 3
	$(BIN)/hynt demo --out runs/world

test: lint types unit

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: setup
	$(BIN)/mypy $(TYPED)

unit: setup
	$(BIN)/python -m pytest -n 3 -q

test-slow: setup
	$(BIN)/python -m pytest -n 2 -q -m slow --timeout 3600

test-gpu: setup
	$(BIN)/python -m pytest -q -m gpu

docs: setup
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

clean:
	rm -rf $(VENV) build dist site .mypy_cache .pytest_cache .ruff_cache .hypothesis
