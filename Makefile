# Two commands do everything on a fresh machine with Python 3.10 or newer, Node.js and make:
#   make demo   runs the quickstart notebook on two ranks, through a real Jupyter server
#   make test   runs linters, type checkers and all tests
# Both set up what is missing first, and are quick the second time. Further targets:
#   make lab    opens JupyterLab with the examples
#   make lab-fake   opens it on a pretend machine with 8 GPUs, whose load follows the ranks
#   make lint types py-test ts-test ui-test   the parts of `make test`
#   make test-under-load   runs all tests while two other programs use the processors
#   make chaos   kills and stops 208 processes of notebooks, ranks and servers, 500 of the queue and 400 of pools that are parked or resized, and checks all each time
#   make soak   lets faults happen to a server, a notebook and its ranks, for an hour; best as root
#   make bench  compares pools with plain kernels
#   make bench-peers   compares them with other packages too, each in an environment of its own in .bench
#   make bench-telemetry   measures what it costs to watch eight GPUs, which are pretended
#   make bench-front-end   measures in a browser what the timeline and long outputs cost
#   make bench-cluster   measures ranks on one node and on two, beside Ray and ipyparallel; needs root and Slurm
#   make bench-queue   measures the queue of batch jobs, beside those peers that are installed
#   make demo-queue   shows the queue on four pretend GPUs, in a minute
#   make demo-cluster   runs the quickstart on two hosts with Slurm and Ray; needs root, and what is installed of them
#   make screenshots   takes the pictures in docs/images
#   make animation   takes the README's moving picture
#   make test-oldest   runs the tests in Python with the oldest versions allowed; needs Python 3.10
#   make test-colab   installs the wheel in a running kernel with the releases of Colab's and Kaggle's images, and runs tests there
#   make test-ipykernel   runs the tests of ranks with five other releases of ipykernel
#   make ui-test-oldest   runs the browser tests in the oldest JupyterLab allowed; needs Python 3.10
#   make fuzz   sends 10,000 made-up requests and 2,000 hostile frames to a server, and shows what holds it up
#   make gpu-test   tests what needs an NVIDIA GPU, on a machine that has one
#   make gpu-check   does on a GPU what needs one, in 10 minutes, and writes gpu-check.md with figures
#   make ray-test   installs Ray, and tests pools on several nodes of it; needs root
#   make test-hub   installs JupyterHub, and tests the servers of two local users; needs root
#   make test-libraries   installs Accelerate, Transformers, Lightning, JAX and so on, and tests them on ranks
#   make docs   builds the site of the documentation in the folder site; needs Python 3.11
#   make check-release   builds in dist what a release publishes, and checks it as PyPI does
#   make wheel-test   builds the wheel, and tries it in an environment without Node.js and torch
#   make clean  removes all that was built or installed here

PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?= constraints.txt
OLDEST_PYTHON ?= python3.10
PYTEST_OPTIONS ?=
# Tests wait for processes most of the time, so that each core has one, and one more runs.
PYTEST_WORKERS ?= $(shell echo $$(( $$(nproc 2> /dev/null || getconf _NPROCESSORS_ONLN) + 1 )))
PLAYWRIGHT_OPTIONS ?=
LAB_OPTIONS ?=
BENCH_OPTIONS ?=
SOAK_OPTIONS ?=
GPU_CHECK_OPTIONS ?=

# A shell other than the default one makes every recipe see the PATH below, on macOS too.
SHELL := /bin/bash
BIN := $(abspath $(VENV))/bin
export PATH := $(BIN):$(PATH)
# Each of the hundreds of processes of a test run would compile the package anew otherwise.
unexport PYTHONDONTWRITEBYTECODE

INSTALLED := $(VENV)/.installed
LINKED := $(VENV)/.linked
LIBRARIES := $(VENV)/.libraries
COLAB := .venv-colab/.installed
COLAB_TESTS := tests/rank tests/notebook \
  $(foreach page,magics magics-cells magics-check values,"tests/test_docs.py::test_cells_of_a_page_run_in_order[docs/$(page).md]") \
  $(foreach how,with without,"tests/test_examples.py::test_$(how)_a_server[quickstart]")
MODULES := node_modules/.yarn-state.yml
UI_MODULES := ui-tests/node_modules/.yarn-state.yml
FRONT_END := jupyter_dist_server/labextension/package.json
FRONT_END_SOURCES := $(shell find src style schema -type f -not -path '*/__tests__/*')

.PHONY: help environment demo lab lab-fake fuzz gpu-test gpu-check ray-test test-hub test-libraries bench bench-peers bench-telemetry bench-front-end bench-cluster bench-queue demo-queue demo-cluster screenshots animation test test-under-load chaos soak test-oldest test-colab test-ipykernel ui-test-oldest lint types py-test ts-test ui-test check-release wheel-test docs clean
.DELETE_ON_ERROR:

help:
	@sed -n 's/^# \{0,1\}//p; /^$$/q' Makefile

demo: $(LINKED)
	python -m tools.demo

lab: $(LINKED)
	jupyter lab --ServerApp.root_dir=examples $(LAB_OPTIONS)

lab-fake: $(LINKED)
	python -m tests.fake_nvml.machine jupyter lab --ServerApp.root_dir=examples $(LAB_OPTIONS)

# The tests in Python take longest, and wait for processes most of the time: the others run beside them.
test:
	$(MAKE) --jobs=2 py-test lint types ts-test ui-test

# All that the tests need.
environment: $(LINKED) $(FRONT_END) $(MODULES) $(UI_MODULES)

test-under-load:
	tools/under_load.sh $(MAKE) --jobs=2 py-test ts-test ui-test

chaos: $(INSTALLED)
	JUPYTER_DIST_CHAOS=208 pytest -n $(PYTEST_WORKERS) $(PYTEST_OPTIONS) tests/notebook/test_chaos.py
	JUPYTER_DIST_CHAOS=500 pytest --timeout 3600 $(PYTEST_OPTIONS) tests/jobs/test_queue_chaos.py
	JUPYTER_DIST_CHAOS=200 pytest --timeout 3600 $(PYTEST_OPTIONS) tests/pools/test_park.py tests/pools/test_resize.py

soak: $(INSTALLED)
	pytest -m slow tests
	python -m tests.soak $(SOAK_OPTIONS)

lint: $(INSTALLED) $(MODULES) $(UI_MODULES)
	ruff check .
	ruff format --check .
	lint-imports --no-logo --no-cache
	jlpm stylelint:check
	jlpm prettier:check
	jlpm eslint:check

types: $(INSTALLED) $(MODULES) $(UI_MODULES)
	mypy
	jlpm types:check
	cd ui-tests && jlpm types:check

# Tests wait for processes most of the time. The order is kept, as the longest files come early.
# Where CI is set, files in which a test failed have a second try in new processes: tests of a file may
# go on from one another, and the first try left nothing to these.
py-test: $(INSTALLED) $(FRONT_END)
	pytest -n $(PYTEST_WORKERS) --dist loadfile --no-loadscope-reorder --durations 10 $(PYTEST_OPTIONS) \
	  || { [ $$? = 1 ] && [ -n "$$CI" ] && failed=$$(python -m tools.failed_files) && pytest $(PYTEST_OPTIONS) $$failed; }

# In an environment of its own, with the oldest versions that pyproject.toml allows.
test-oldest:
	$(MAKE) py-test PYTHON=$(OLDEST_PYTHON) VENV=.venv-oldest CONSTRAINTS=constraints-oldest.txt

# A kernel of the image installs the wheel, with which the other tests then run there.
test-colab: $(COLAB) $(FRONT_END)
	pytest -m colab -s tests/colab
	.venv-colab/bin/pytest -n $(PYTEST_WORKERS) --dist loadfile --no-loadscope-reorder $(PYTEST_OPTIONS) $(COLAB_TESTS) \
	  || { [ $$? = 1 ] && [ -n "$$CI" ] && .venv-colab/bin/pytest --last-failed --last-failed-no-failures none $(PYTEST_OPTIONS) $(COLAB_TESTS); }

# Between the oldest release, in `test-colab`, and the newest, in `py-test`.
IPYKERNELS := 6.29.5 6.30.1 7.0.1 7.1.0 7.2.0
test-ipykernel: $(INSTALLED)
	for release in $(IPYKERNELS); do \
	  pip install -q --no-compile --no-deps --upgrade --target .bench/ipykernel-$$release ipykernel==$$release && \
	  PYTHONPATH=$(abspath .bench)/ipykernel-$$release pytest -n $(PYTEST_WORKERS) --dist loadfile $(PYTEST_OPTIONS) tests/rank || exit 1; \
	done

# The browser tests in JupyterLab 4.2 and Notebook 7.2, which that environment has.
ui-test-oldest:
	$(MAKE) ui-test PYTHON=$(OLDEST_PYTHON) VENV=.venv-oldest CONSTRAINTS=constraints-oldest.txt

fuzz: $(INSTALLED)
	FUZZ_CASES=10000 FUZZ_FRAMES=2000 pytest -rP --timeout 3600 $(PYTEST_OPTIONS) tests/server/test_fuzz.py

gpu-test: $(INSTALLED)
	pytest -m gpu $(PYTEST_OPTIONS) tests/gpus tests/pools

gpu-check: $(INSTALLED)
	python -m tools.gpu_check $(GPU_CHECK_OPTIONS)

# Ray is no dependency of ours.
ray-test: $(INSTALLED)
	pip install -q --no-compile -c $(CONSTRAINTS) "ray==2.60.*"
	pytest $(PYTEST_OPTIONS) tests/cluster/test_ray.py

# JupyterHub is no dependency of ours either. This is the newest proxy whose dependencies allow Node.js 20.
test-hub: $(INSTALLED)
	pip install -q --no-compile -c $(CONSTRAINTS) "jupyterhub==6.1.*"
	npm install --loglevel error --no-audit --no-fund --prefix .bench/hub configurable-http-proxy@5.2.0
	pytest $(PYTEST_OPTIONS) tests/hub

test-libraries: $(LIBRARIES)
	pytest -m "libraries or not libraries" --durations 0 $(PYTEST_OPTIONS) tests/libraries

ts-test: $(MODULES)
	jlpm test || { [ -n "$$CI" ] && jlpm test --onlyFailures; }

ui-test: $(LINKED) $(UI_MODULES)
	source tools/chromium.sh && cd ui-tests && jlpm playwright test $(PLAYWRIGHT_OPTIONS)

bench: $(INSTALLED)
	python -m benchmarks $(BENCH_OPTIONS)

bench-peers: $(INSTALLED)
	python -m benchmarks --peers $(BENCH_OPTIONS)

bench-telemetry: $(INSTALLED)
	python -m benchmarks.telemetry $(BENCH_OPTIONS)

bench-cluster: $(INSTALLED)
	python -m benchmarks.cluster $(BENCH_OPTIONS)

bench-queue: $(INSTALLED)
	python -m benchmarks.queue_speed $(BENCH_OPTIONS)

demo-queue: $(INSTALLED)
	python -m tools.demo_queue

demo-cluster: $(INSTALLED)
	python -m tools.demo_cluster

bench-front-end: $(LINKED) $(UI_MODULES)
	source tools/chromium.sh && cd ui-tests && jlpm playwright test --config benchmarks/playwright.config.ts $(PLAYWRIGHT_OPTIONS)

screenshots: $(LINKED) $(UI_MODULES)
	source tools/chromium.sh && cd ui-tests && jlpm screenshots

animation: $(LINKED) $(UI_MODULES)
	source tools/chromium.sh && cd ui-tests && jlpm animation
	python -m tools.animation

# Twine is no dependency of ours.
check-release: $(INSTALLED) $(FRONT_END)
	pip install -q --no-compile "twine==7.*"
	rm -rf dist
	PIP_CONSTRAINT=$(abspath $(CONSTRAINTS)) python -m build
	twine check --strict dist/*

wheel-test: $(INSTALLED) $(FRONT_END)
	pytest -m wheel $(PYTEST_OPTIONS) tests/test_wheel.py

# A link or anchor that leads nowhere is an error.
docs: .venv-docs/.installed
	.venv-docs/bin/zensical build --clean --strict

clean:
	rm -rf $(VENV) .venv-oldest .venv-colab .venv-docs .cache site node_modules ui-tests/node_modules .yarn ui-tests/.yarn lib build dist tsconfig.tsbuildinfo
	rm -rf jupyter_dist_server/labextension ui-tests/test-results ui-tests/playwright-report
	rm -rf .bench .mypy_cache .pytest_cache .ruff_cache .eslintcache .stylelintcache

# The front end is built below, by one and the same rule for all targets, so pip must not build it.
# That also spares an isolated build environment with a second JupyterLab in it. The link to the
# front end goes first, as pip would write through it. Python compiles what it imports: pip would
# compile all of torch and JupyterLab, of which most is never imported.
$(INSTALLED): pyproject.toml package.json $(CONSTRAINTS)
	@$(PYTHON) -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 10))' || \
	  { echo "$(PYTHON) must be Python 3.10 or newer with venv (on Debian: python3-venv)." >&2; exit 1; }
	@command -v node > /dev/null || { echo "Node.js is missing." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	pip install -q --no-compile -c $(CONSTRAINTS) editables hatchling hatch-fancy-pypi-readme hatch-jupyter-builder hatch-nodejs-version jupyter-builder
	rm -rf $(VENV)/share/jupyter/labextensions/jupyter-dist-server
	SKIP_JUPYTER_BUILDER=1 pip install -q --no-compile -c $(CONSTRAINTS) --no-build-isolation -e ".[torch,test]"
	touch $@

# torch stays as it is: the constraints name its version, which is there already.
$(LIBRARIES): tests/libraries/requirements.txt $(INSTALLED)
	pip install -q --no-compile -c $(CONSTRAINTS) -r tests/libraries/requirements.txt
	touch $@

# What the image has of ours and of the tests', but not our package and what only that needs. The file lists
# all of it, so that a test can tell what our package adds.
$(COLAB): constraints-colab.txt tests/colab/requirements.txt | $(INSTALLED)
	$(PYTHON) -m venv .venv-colab
	.venv-colab/bin/pip install -q --no-compile -c constraints-colab.txt -r tests/colab/requirements.txt
	.venv-colab/bin/pip list --format json > $@

.venv-docs/.installed: requirements-docs.txt
	$(PYTHON) -m venv .venv-docs
	.venv-docs/bin/pip install -q --no-compile -r requirements-docs.txt
	touch $@

$(MODULES): package.json yarn.lock .yarnrc.yml | $(INSTALLED)
	jlpm install
	touch $@

$(UI_MODULES): ui-tests/package.json ui-tests/yarn.lock | $(INSTALLED)
	cd ui-tests && PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD=1 jlpm install
	touch $@

$(FRONT_END): $(FRONT_END_SOURCES) package.json tsconfig.json $(MODULES)
	jlpm build:prod
	touch $@

# JupyterLab then loads the front end from this folder, so that a new build needs no new install.
$(LINKED): $(INSTALLED) | $(FRONT_END)
	jupyter-builder develop --overwrite .
	touch $@

demo lab lab-fake ui-test bench-front-end screenshots animation: $(FRONT_END)
