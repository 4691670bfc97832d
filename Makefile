# Python 3.11 or newer and PyPI are all that is needed. Everything goes into .venv.
PYTHON ?= python3
BIN := .venv/bin
# uv takes seconds where pip takes a minute: where it is found, it installs. `make lab UV=` goes without it.
ifeq ($(origin UV),undefined)
UV := $(shell command -v uv 2>/dev/null)
endif
# PyPI's PyTorch brings CUDA on Linux, several gigabytes: `make lab CPU=1` takes PyTorch's own CPU build.
ifneq ($(UV),)
INSTALL := $(UV) pip install -q --python $(BIN)/python -c constraints.txt $(if $(CPU),--torch-backend cpu)
LEAN := $(INSTALL)
else
INSTALL := $(BIN)/python -m pip install --disable-pip-version-check -q -c constraints.txt \
	$(if $(CPU),--extra-index-url https://download.pytorch.org/whl/cpu)
# Python compiles what is imported, when it is: to compile all of it first takes longer than the rest together.
LEAN := $(INSTALL) --no-compile
endif

.PHONY: help setup lab quick test nightly portable questions-check build check pictures site colab bench clean

help:
	@echo "make lab       open the course in JupyterLab (CPU=1: with PyTorch's CPU build)"
	@echo "make quick     ruff, mypy, and the tests of what changed"
	@echo "make test      all that guards a commit; of what is large, a sample that the commit draws"
	@echo "make nightly   the whole suite with 1,000 kills, and all answers as on other processors"
	@echo "make portable  run lessons, masters and answers as on other processors"
	@echo "make questions-check TORCH=2.15.0  list what answers to questions change on another PyTorch"
	@echo "make build     execute lessons and masters, release the exercises"
	@echo "make check     the same, but only report what would change"
	@echo "make pictures  make the pictures of README and TEACHING anew, from live runs"
	@echo "make site      the course as web pages that need no server, in the folder site"
	@echo "make colab     copies of the notebooks for Google Colab, in the folder colab"
	@echo "make bench     print the benchmark table"
	@echo "make setup     create .venv; the others do this when it is needed"

setup: .venv/test-ready

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "The course needs Python 3.11 or newer; $(PYTHON) is `$(PYTHON) --version`. Try: make PYTHON=python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv .venv

.venv/ready: pyproject.toml constraints.txt | .venv/bin/python
	$(LEAN) -e .
	@touch $@

.venv/test-ready: pyproject.toml constraints.txt | .venv/bin/python
	$(INSTALL) -e '.[test]'
	@touch .venv/ready $@

lab: .venv/ready
	@$(BIN)/course lab

quick: .venv/test-ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m tests.selection

# The environment's commands must be found: nbgrader, for one, starts others by name.
test: .venv/test-ready
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n 2 --sample

nightly: .venv/test-ready
	KILLS=1000 PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m pytest -n 2
	$(BIN)/python -m tests.portable --all

portable: .venv/test-ready
	$(BIN)/python -m tests.portable

questions-check: .venv/test-ready
	$(BIN)/python -m tests.versions $(or $(TORCH),$(error say which version, as in make questions-check TORCH=2.15.0))

build: .venv/ready
	$(BIN)/course build

check: .venv/ready
	$(BIN)/course build --check

pictures: .venv/test-ready
	$(BIN)/python -m docs.pictures

site: .venv/test-ready
	$(BIN)/python -m docs.site

colab: .venv/ready
	$(BIN)/python -m docs.colab

bench: .venv/test-ready
	$(BIN)/python -m benchmarks

clean:
	rm -rf .venv
