# `make demo` shows what probe does, `make test` checks all of it. Both make their own environment in .venv.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO := build/demo
# A file's tests stay together and in order: those of the README follow each other. Nothing asserts a time.
# The longest files come first (tests/conftest.py), which xdist would order by their numbers of tests.
# Two workers more than there are processors: tests that wait for a budget, a lock or a child use none.
WORKERS := -n $(shell echo $$(( $$(getconf _NPROCESSORS_ONLN) + 2 ))) --dist loadfile --no-loadscope-reorder
# Each worker imports all tests, whose assertions pytest rewrites: workers share the files that it writes.
PYTEST := env -u PYTHONDONTWRITEBYTECODE $(BIN)/python -m pytest
PROBE := cd $(DEMO) && "$(abspath $(BIN))/probe"

.PHONY: demo test quick quick-unit lint unit env check-tools clean docs screens notebooks fixtures compat test-gpu

demo: env
	@rm -rf $(DEMO) && mkdir -p $(DEMO)
	@echo '$$ probe dump check_hflip.py --case channels_last'
	@$(PROBE) dump check_hflip.py --case channels_last
	@echo; echo '$$ probe layouts arg0_1'
	@$(PROBE) layouts arg0_1
	@echo; echo '$$ probe layouts buf0'
	@$(PROBE) layouts buf0
	@echo; echo '$$ probe bench-kernel'
	@$(PROBE) bench-kernel
	@echo
	@echo 'What to try next, in $(DEMO):'
	@echo '  edit cpp_fused_flip_0_v2 in the output_code_bench.py named above, then run probe bench-kernel again:'
	@echo '      your edit is kept, checked, and timed if it is right'
	@echo '  probe dump check_interpolate_bilinear_aa.py --case separable_channels_last && probe layouts'
	@echo '      which buffer is not channels-last, and what that costs'
	@echo '  probe dump your_script.py        any script that calls torch.compile'
	@echo '(probe is $(BIN)/probe; put $(BIN) on your PATH, or activate the environment)'

test: lint unit

lint: env
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# While you write: all that compiles nothing, with the static checks beside it.
quick: env
	@$(MAKE) --no-print-directory --jobs=2 lint quick-unit

quick-unit: env
	$(PYTEST) -q -m "not compiles" $(WORKERS)

unit: env
	$(PYTEST) $(WORKERS)

env: $(VENV)/.made-from-constraints

# Pinned versions come from constraints.txt; anything that changes them makes the environment again.
$(VENV)/.made-from-constraints: pyproject.toml constraints.txt | check-tools
	@echo "making the environment in $(VENV): this installs torch and takes a few minutes the first time"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade pip --constraint constraints.txt
	@$(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt \
		--build-constraint constraints.txt --editable ".[triton]" --group dev
# pip compiles on one core. Where Python may not write bytecode, each start would compile what is not done here.
# Some packages hold files that are no Python of this version: they are left out, as pip leaves them.
	@$(BIN)/python -m compileall -qq -j 0 $(abspath $(VENV)/lib inductor_probe) || true
	@touch $@

check-tools:
	@command -v $(PYTHON) >/dev/null || { echo "error: no $(PYTHON): install Python 3.10 or later (Debian: apt-get install python3 python3-venv)" >&2; exit 2; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { echo "error: $(PYTHON) is older than 3.10: install a later one, or say make PYTHON=python3.12 (Debian: apt-get install python3 python3-venv)" >&2; exit 2; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { echo "error: $(PYTHON) cannot make environments: install its venv package (Debian: apt-get install python3-venv)" >&2; exit 2; }
	@$(PYTHON) -c 'import os, sysconfig, sys; sys.exit(not os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h")))' || { echo "error: Python.h is missing, which inductor's C++ kernels include: install Python's headers (Debian: apt-get install python3-dev)" >&2; exit 2; }
	@command -v $${CXX:-g++} >/dev/null || { echo "error: no C++ compiler: inductor needs one (Debian: apt-get install g++)" >&2; exit 2; }

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache

# The documentation as a site, build/site/index.html, with the pages that are made from the code.
docs: env
	$(BIN)/python docs/make_site.py

screens: env
	$(BIN)/python docs/make_screens.py

# Run the notebooks, and write what they show as HTML into build/notebooks.
notebooks: env
	$(BIN)/python notebooks/render.py

# The dumps of the installed torch that tests read: after a new torch, make them again and read the diff.
fixtures: env
	$(BIN)/python tests/fixtures/make_dumps.py

# Another release of torch, in an environment of its own below build/compat: make compat TORCH=2.14.1
compat: env
	$(BIN)/python -m benchmarks.project.releases $(or $(TORCH),$(error which release? make compat TORCH=2.14.1))

# On a machine with a GPU, with the Python that has torch and triton: make test-gpu PYTHON=python3
# All run side by side, as most of their time is compiling, and processes take turns at timing on a GPU; but for
# those that hold one time against another themselves, or need all of a budget: 7 minutes on an H100 and 16 cores.
# pytest-benchmark, where it is installed, would warn that xdist is in use, which is an error here.
test-gpu: export PYTHONPATH := $(CURDIR)$(if $(PYTHONPATH),:$(PYTHONPATH))
test-gpu:
	$(PYTHON) -m pytest -p no:benchmark tests/gpu -m "not alone" -n 12 --dist worksteal -rfEs
	$(PYTHON) -m pytest -p no:benchmark tests/gpu -m alone -rA -s
