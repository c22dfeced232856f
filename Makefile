# Everything a developer does. `make run` and `make test` install what they need, pinned, into .venv and .venv-clients.

FIND_PYTHON = for python in python3.13 python3.12 python3.11 python3 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $$python && exit; \
	done; echo "Python 3.11 or newer is needed" >&2; exit 1
PYTHON ?= $(shell $(FIND_PYTHON))
PIP = pip --quiet --disable-pip-version-check --no-input
BIN = .venv/bin

.PHONY: run test lint types check-format fmt bench lock clean

run: .venv/core.stamp
	$(BIN)/apiserver serve

test: lint check-format types .venv-clients/stamp
	$(BIN)/python -m pytest

lint: .venv/dev.stamp
	$(BIN)/ruff check .

check-format: .venv/dev.stamp
	$(BIN)/ruff format --check .

types: .venv/dev.stamp
	$(BIN)/mypy

fmt: .venv/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# `make bench FLAGS=--quick` only shows that it runs.
bench: .venv/dev.stamp
	$(BIN)/python -m benchmarks.server $(FLAGS)
	$(BIN)/python -m benchmarks.embedded_store $(FLAGS)
	$(BIN)/python -m benchmarks.documents $(FLAGS)

# Pin anew everything that is installed here: the versions are those of requirements/*.txt, by their hashes.
LOCK = $(BIN)/pip-compile --quiet --upgrade --strip-extras --allow-unsafe --no-annotate --generate-hashes \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links
lock: .venv/dev.stamp
	$(BIN)/$(PIP) install pip-tools
	$(LOCK) --output-file requirements/build.txt requirements/build.in
	$(LOCK) --output-file requirements/core.txt pyproject.toml
	$(LOCK) --output-file requirements/dev.txt --extra dev --constraint requirements/core.txt pyproject.toml
	$(LOCK) --output-file requirements/clients.txt requirements/clients.in

clean:
	rm -rf .venv .venv-clients build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/core.stamp: requirements/build.txt requirements/core.txt pyproject.toml setup.py | .venv/bin/python
	$(BIN)/$(PIP) install --require-hashes -r requirements/build.txt -r requirements/core.txt
	$(BIN)/$(PIP) install --no-deps --no-build-isolation --editable .
	touch $@

.venv/dev.stamp: requirements/dev.txt .venv/core.stamp
	$(BIN)/$(PIP) install --require-hashes -r requirements/dev.txt
	touch $@

# The real ClearML SDK, which the tests of tests/clients drive, has an environment of its own.
.venv-clients/stamp: requirements/clients.txt
	$(PYTHON) -m venv .venv-clients
	.venv-clients/bin/$(PIP) install --require-hashes -r requirements/clients.txt
	touch $@
