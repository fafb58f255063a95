# Every target sets up its own virtual environment in .venv; all it needs is Python 3.11 or newer, pip and a C compiler.
# `make help` lists the targets: it prints the text after `##` on each target's line.

# The first Python that is new enough; `make PYTHON=/path/to/python` overrides.
PYTHON ?= $(shell for candidate in python3 python3.13 python3.12 python3.11 python3.14; do \
	"$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$candidate" && break; done)

BIN := .venv/bin
# (editable_mode=compat below: with the default, a script beside a clone called `loopwright` would find the empty shell of a
# package where the clone is.)
READY := .venv/.loopwright-ready
WORKERS ?= 2

.PHONY: help setup demo test lint fuzz bench sweep docs clean

help:  ## list the targets
	@sed -n 's/^\([a-z]*\):[^#]*## \(.*\)/  make \1@\2/p' $(MAKEFILE_LIST) | awk -F@ '{ printf "%-12s  %s\n", $$1, $$2 }'

setup: $(READY)  ## create .venv with Loopwright and its dependencies

# ONNX Runtime takes part in the race where it can be installed; the demo runs without.
demo: $(READY)  ## compile ResNet-50 from ONNX, check it, benchmark it: build/demo/report.html
	@$(BIN)/python -c 'import onnxruntime' 2>/dev/null || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check onnxruntime || \
		echo "ONNX Runtime cannot be installed: there will be no race." >&2
	$(BIN)/python examples/demo.py

test: $(READY)  ## run the test suite (WORKERS=2 processes)
	$(BIN)/python -m pytest -q -n $(WORKERS)

lint: $(READY)  ## run ruff and mypy
	$(BIN)/ruff check .
	$(BIN)/mypy

fuzz: $(READY)  ## damaged model files, random graphs, programs and schedules (SEED=0; about 25 minutes)
	$(BIN)/python -m benchmarks.fuzz_models --seconds 60 --seed $(or $(SEED),0)
	$(BIN)/python -m benchmarks.fuzz_graphs --count 200 --seed $(or $(SEED),0)
	$(BIN)/python -m benchmarks.fuzz_artifacts --count 800 --seed $(or $(SEED),0)
	LOOPWRIGHT_LONG=1 $(BIN)/python -m pytest -q -n $(WORKERS) tests/test_agreement.py tests/test_deep.py \
		tests/schedule/test_fuzz.py tests/schedule/test_lemmas.py tests/schedule/test_enumeration.py \
		tests/analysis/test_against_enumeration.py tests/arith/test_simplify_random.py \
		tests/analysis/test_commuting_updates.py tests/schedule/test_compute_inline.py tests/test_agreement_c.py \
		tests/test_dtypes.py tests/test_index_arithmetic.py tests/codegen tests/transform \
		tests/autosched tests/frontends tests/relay tests/topi
	LOOPWRIGHT_LONG=1 $(BIN)/python -m pytest -q -n $(WORKERS) -m "one_in or long" tests/schedule tests/script tests/te \
		tests/target tests/arith tests/analysis tests/cli tests/compat tests/model tests/tune tests/test_*.py

# matplotlib draws the picture. torch takes part where it is installed, and is never downloaded for this; without a
# network the benchmarks run with what is there.
bench: $(READY)  ## time our kernels beside numpy, torch and C loops (BENCH=--quick: under a minute)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat --editable ".[bench]" || \
		echo "matplotlib cannot be installed: there will be no picture." >&2
	$(BIN)/python -m benchmarks.bench $(BENCH)

sweep: $(READY)  ## time operators, shapes and types drawn at random beside numpy, torch, ONNX Runtime (SWEEP="--seed 1 --cases 200")
	$(BIN)/python -m benchmarks.sweep run $(or $(SWEEP),--cases 60)

# A link or an anchor that leads nowhere fails the build. ruff, which .venv has, formats the signatures.
docs: $(READY)  ## build the documentation site: build/site/index.html
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat --editable ".[docs]"
	@NO_MKDOCS_2_WARNING=1 PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/python -m mkdocs build --strict

$(READY): pyproject.toml
	@test -n "$(PYTHON)" && "$(PYTHON)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo "Loopwright needs Python 3.11 or newer; tried: $(or $(PYTHON),python3 python3.13 python3.12 python3.11 python3.14)." >&2; \
		echo "Install one, or name it: make $(or $(MAKECMDGOALS),test) PYTHON=/path/to/python3.12" >&2; exit 1; }
	@"$(PYTHON)" -c 'import venv, ensurepip' 2>/dev/null || { \
		echo "$(PYTHON) comes without venv and pip (on Debian and Ubuntu: apt install python3-venv)." >&2; exit 1; }
	test -x $(BIN)/python || "$(PYTHON)" -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --config-settings editable_mode=compat --editable ".[dev]"
	touch $@

clean:  ## remove build outputs and .venv
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find loopwright tests -name __pycache__ -type d -prune -exec rm -rf {} +
