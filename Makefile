# make help lists the targets.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-builtin-rules --no-print-directory

# Where cargo puts what it builds; a relative CARGO_TARGET_DIR counts from here in all of them.
TARGET := $(abspath $(or $(CARGO_TARGET_DIR),target))
ifdef CARGO_TARGET_DIR
export CARGO_TARGET_DIR := $(TARGET)
BENCH_TARGET := $(TARGET)
ZARR_TARGET := $(TARGET)
else
BENCH_TARGET := benches/compare/target
ZARR_TARGET := benches/zarr/target
endif

# The shared test material (a corpus of HDF5 files with what a reference program says of each, and that program).
# What needs it is skipped where it is not there.
export H5LIVE_SHARED ?= $(abspath ..)/shared
# Python with h5py, for the tests that let libhdf5 stand in for one side.
export H5LIVE_PYTHON ?= $(CURDIR)/.venv/bin/python
# The files that make_corpus.py makes.
export H5LIVE_CORPUS ?= $(TARGET)/corpus

# Python compiles h5py when a test first needs it, and keeps that: to do it for each test takes three times as long as the test.
unexport PYTHONDONTWRITEBYTECODE

export PATH := $(CURDIR)/.deps/bin:$(CURDIR)/.venv/bin:$(PATH)

CARGO_DENY_VERSION := 0.20.2
CARGO_FUZZ_VERSION := 0.13.2
GARAGE_VERSION := 2.5.0
LOOM_MAX_PREEMPTIONS ?= 3
export LOOM_MAX_PREEMPTIONS
# Programs as the tests build them, too: an example, as a test, has the features that only tests need, so that nothing is
# built a second time with others.
AS_TESTED = cargo build --quiet --workspace --example walk
DEBUG_LAB = $(AS_TESTED) --bin h5live-lab
STRESS_SECONDS ?= 5
STRESS_READERS ?= 2

##@ Use
.PHONY: build demo install
build: ## the program, as target/release/h5live
	cargo build --release -p h5live-cli

demo: ## ten seconds of this machine's metrics, written live, followed by two other processes, and drawn in the browser
	@echo "building the program, which takes some minutes the first time"
	@cargo build --release --quiet -p h5live-cli
	@$(TARGET)/release/h5live demo

install: ## the program, into cargo's bin folder
	cargo install --locked --profile dist --path tools/cli

##@ Check
.PHONY: test lint unit unit-without-shared large-files test-slatedb test-hsds test-objects cluster doc-test loom stress stress-clock prove prove-cut live walk bench bench-objects bench-slatedb bench-own counts counts-cut counts-write python-env h5tools corpus
.PHONY: attack attack-cut fuzz house sanitize
test: setup corpus ## every test; sets up what they need by itself
	@# Two at a time, for some of them wait much.
	@$(MAKE) --no-print-directory --jobs 2 --output-sync=target doc-test loom stress live-matrix-cut attack-cut python-cut
	@$(MAKE) --no-print-directory unit

lint: .deps/bin/cargo-deny python-env house ## format, clippy, rules of the house, documentation, dependencies, spelling; no warning passes
	cargo fmt --all --check
	cargo fmt --check --manifest-path benches/compare/Cargo.toml
	cargo fmt --check --manifest-path verify/fuzz/Cargo.toml
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	@# Clouds, SlateDB and TLS, whose tests are commands of their own.
	cargo clippy --workspace --all-targets --all-features --quiet -- -D warnings
	cargo clippy -p h5live-kv --no-default-features --quiet -- -D warnings
	@# They stand outside the workspace, so nothing else would see that they no longer build. The fuzzer itself, in C++, is not
	@# needed for that: the path of one that is there already keeps it from being built.
	CARGO_TARGET_DIR=$(TARGET)/fuzz-check CUSTOM_LIBFUZZER_PATH=./none.a cargo check --quiet --manifest-path verify/fuzz/Cargo.toml
	RUSTDOCFLAGS=-Dwarnings cargo doc --workspace --no-deps --quiet
	@# What only we read: links that lead to nothing tell of names that are gone.
	RUSTDOCFLAGS="-Arustdoc::all -Drustdoc::broken_intra_doc_links" cargo doc --workspace --no-deps --document-private-items --quiet
	@if cargo tree -e features,normal -p h5live-cli | grep -q mutants; then echo 'the program has the switches of mutants'; exit 1; fi
	cargo deny --log-level error check bans licenses sources
	typos

# What breaks a rule is in .ci/house-exceptions.txt, with the reason. `python3 .ci/house.py --list` lists it with details.
house: ## the length of files and functions, where unsafe code stands, import cycles, type names that mean two things, what is written twice, documents that lead nowhere
	@python3 .ci/house.py
	@python3 .ci/house_numbers.py
	@python3 .ci/references.py

# The last of `test`, so that the runner's own summary closes it.
unit: setup corpus ## unit and integration tests
	@[ -d "$$H5LIVE_SHARED" ] || echo "skipped: what needs the shared corpus ($$H5LIVE_SHARED is not there)"
	if cargo nextest --version >/dev/null 2>&1; then \
	    cargo nextest run --workspace --no-fail-fast --status-level fail --final-status-level fail; \
	else \
	    cargo test --workspace --lib --bins --tests --no-fail-fast; \
	fi

# In `.ci/run`. A clone alone has no shared material, and whoever works on the project has it.
unit-without-shared: ## the tests that read the shared material, without it: each of them is skipped
	@names=$$(python3 .ci/shared_tests.py); export H5LIVE_SHARED=$(TARGET)/no-shared-material; \
	if cargo nextest --version >/dev/null 2>&1; then \
	    cargo nextest run --workspace --no-fail-fast --status-level fail --final-status-level fail $$names; \
	else \
	    cargo test --workspace --lib --bins --tests --no-fail-fast --quiet -- $$names; \
	fi

# In `test`, what is the same for every file is tried without them, and each of these is read and copied once.
large-files: setup ## copies of every file of the corpus through every store and format, with those of 500 MiB and more (8 minutes)
	H5LIVE_LARGE_FILES=1 cargo test --workspace --test program -- every_sound_file files_that_the_layout_can_hold copies_

# Not in `test`: the libraries of SlateDB take minutes to build. The S3 server takes any keys.
test-slatedb: python-env ## key-value stores in SlateDB, in folders and on an S3 server of this machine (the first time 10 minutes)
	cargo clippy -p h5live-kv --features slatedb-tests --all-targets --quiet -- -D warnings
	AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test \
	    cargo test -p h5live-kv --features slatedb-tests --lib --test slate --test slate_kills -- --show-output

# Not in `test`: it installs HSDS from PyPI, and starts it, and the libraries of the clouds take minutes to build.
test-hsds: python-env ## HSDS both ways, also with the corpus, in folders and on an S3 server: h5pyd reads what h5live writes, and h5live what HSDS has written
	cargo build --quiet -p h5live-cli --features remote-tests
	tests/hsds/run.sh $(TARGET)/debug/h5live $(TARGET)/hsds-venv $(H5LIVE_PYTHON)
	@if [ ! -d "$(H5LIVE_SHARED)/corpus" ]; then echo 'skipped: HSDS and the shared corpus ($(H5LIVE_SHARED)/corpus is not there)'; \
	elif [ ! -x $(TARGET)/hsds-venv/bin/hsload ]; then echo 'skipped: HSDS and the shared corpus, without HSDS'; \
	else HDF5_PLUGIN_PATH=$$($(H5LIVE_PYTHON) -c 'import hdf5plugin; print(hdf5plugin.PLUGIN_PATH)') \
	    $(TARGET)/hsds-venv/bin/python -B tests/hsds/corpus.py $(TARGET)/debug/h5live $(TARGET)/hsds-venv $(H5LIVE_SHARED)/corpus; fi

# Not in `test`: it installs these programs from PyPI (1.5 GB), and takes minutes. FIELD has names of programs; without it, all are tried.
FIELD_VENV := $(TARGET)/field-venv
FIELD_PROGRAMS := pandas tables anndata netCDF4 xarray h5netcdf hdf5storage openpmd-api nexusformat hdf5plugin 'keras jax' pynwb astropy hickle
FIELD ?=
.PHONY: test-field
test-field: ## files of pandas, PyTables, anndata, netCDF4, xarray, MATLAB, openPMD, NeXus, Keras and others through all commands and stores
	cargo build --quiet -p h5live-cli
	@[ -x $(FIELD_VENV)/bin/python ] || python3 -m venv $(FIELD_VENV)
	@[ -f $(FIELD_VENV)/.done ] || { for program in pytest $(FIELD_PROGRAMS); do \
	    $(FIELD_VENV)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check $$program || \
	        echo "skipped: $$program (pip cannot install it)"; done; touch $(FIELD_VENV)/.done; }
	$(FIELD_VENV)/bin/python -B -W ignore tests/python/programs/run.py $(TARGET)/debug/h5live $(FIELD)

# Not in `test`: it installs h5grove and h5pyd from PyPI, and Chromium with apt if it is not there. What cannot be had is skipped.
# H5GROVE_TESTS is the folder `src/tests` of h5grove's repository, which is not in its package.
SERVE_VENV := $(TARGET)/serve-venv
SERVE_FILES = "$(H5LIVE_CORPUS)" "$(H5LIVE_SHARED)/corpus"
CHROMIUM ?= chromium
H5PYD_VERSIONS := 1.0.0 0.24.0
.PHONY: test-serve attack-serve test-tls follow-serve bench-serve page page-check
test-serve: corpus ## `h5live serve` beside h5grove, by h5pyd beside h5py, and its page in a headless browser
	cargo build --quiet -p h5live-cli
	@[ -x $(SERVE_VENV)/bin/python ] || python3 -m venv $(SERVE_VENV)
	@$(SERVE_VENV)/bin/python -c 'import h5grove, hdf5plugin, pytest, websocket' 2>/dev/null || \
	    $(SERVE_VENV)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check \
	        'h5grove==4.0.0' hdf5plugin pytest pytest-benchmark websocket-client || \
	    echo 'skipped: h5grove and the browser (pip cannot install them)'
	$(SERVE_VENV)/bin/python -B tests/python/serve_h5grove.py $(TARGET)/debug/h5live $(SERVE_FILES)
	@if [ -f "$(H5GROVE_TESTS)/base_test.py" ]; then H5LIVE_PROGRAM=$(TARGET)/debug/h5live \
	    $(SERVE_VENV)/bin/python -B -m pytest -q -p no:cacheprovider --confcutdir=tests/python tests/python/serve_endpoints.py; \
	else echo "skipped: h5grove's own tests (H5GROVE_TESTS is not given)"; fi
	@for version in $(H5PYD_VERSIONS); do \
	    venv=$(TARGET)/h5pyd-venv-$$version; \
	    [ -x $$venv/bin/python ] || python3 -m venv $$venv; \
	    $$venv/bin/python -c 'import h5py, h5pyd, hdf5plugin' 2>/dev/null || $$venv/bin/python -m pip install --quiet --no-compile \
	        --disable-pip-version-check "h5pyd==$$version" h5py hdf5plugin || echo "skipped: h5pyd $$version (pip cannot install it)"; \
	    $$venv/bin/python -B tests/python/serve_h5pyd.py $(TARGET)/debug/h5live $(SERVE_FILES) || exit 1; \
	done
	@.ci/need $(CHROMIUM) chromium || echo 'skipped: $(CHROMIUM) cannot be installed'
	$(SERVE_VENV)/bin/python -B tests/python/serve_browser.py $(TARGET)/debug/h5live $(CHROMIUM) $(TARGET)/serve-pictures

# Not in `test`: it installs HSDS and h5pyd from PyPI, and takes half an hour. HSDS_TESTS is the folder `tests/integ` of HSDS's repository,
# H5PYD_TESTS and H5PYD_0_TESTS are folders `test/hl` of h5pyd's (1.0.0: branch h5json; 0.24.0: master). No package has them.
SUITES = $(if $(HSDS_TESTS),integ=$(HSDS_TESTS):$(TARGET)/hsds-venv) \
    $(if $(H5PYD_TESTS),1.0.0=$(H5PYD_TESTS):$(TARGET)/h5pyd-venv-1.0.0) \
    $(if $(H5PYD_0_TESTS),0.24.0=$(H5PYD_0_TESTS):$(TARGET)/h5pyd-venv-0.24.0)
.PHONY: test-suites
test-suites: ## the tests of HSDS and of h5pyd on HSDS, with `h5live serve` beside it: HSDS_TESTS, H5PYD_TESTS, H5PYD_0_TESTS are their folders
	@[ -n "$(strip $(SUITES))" ] || { echo 'which tests? HSDS_TESTS, H5PYD_TESTS, H5PYD_0_TESTS are folders of them'; exit 1; }
	cargo build --quiet -p h5live-cli
	@[ -x $(TARGET)/hsds-venv/bin/hsds ] || { python3 -m venv $(TARGET)/hsds-venv && \
	    $(TARGET)/hsds-venv/bin/python -m pip install --quiet hsds==1.0.2 h5pyd==1.0.0 h5py; }
	@for version in $(H5PYD_VERSIONS); do venv=$(TARGET)/h5pyd-venv-$$version; \
	    [ -x $$venv/bin/python ] || python3 -m venv $$venv; \
	    $$venv/bin/python -c 'import h5pyd, h5py' 2>/dev/null || $$venv/bin/python -m pip install --quiet "h5pyd==$$version" h5py hdf5plugin; done
	@for venv in hsds-venv $(H5PYD_VERSIONS:%=h5pyd-venv-%); do $(TARGET)/$$venv/bin/python -c 'import pytest' 2>/dev/null || \
	    $(TARGET)/$$venv/bin/python -m pip install --quiet pytest; done
	python3 -B tests/hsds/suites/run.py $(TARGET)/debug/h5live $(TARGET)/hsds-venv $(SUITES)

# In `test`, a cut of it: 4,000 requests and 200 clients. ATTACK_SEED is the number of the first request, which a failure names.
ATTACK_REQUESTS ?= 200000
ATTACK_CLIENTS ?= 4000
ATTACK_SEED ?= 1
# Requests that schemathesis makes of /openapi.json.
SCHEMATHESIS_REQUESTS ?= 10000
SCHEMATHESIS := $(TARGET)/schemathesis-venv/bin
attack-serve: ## `h5live serve` under requests that were changed at random, also by schemathesis, and 500 hostile clients of each kind (some minutes)
	ulimit -n $$((2 * $(ATTACK_CLIENTS) + 500)); \
	H5LIVE_ATTACK_REQUESTS=$(ATTACK_REQUESTS) H5LIVE_ATTACK_CLIENTS=$(ATTACK_CLIENTS) H5LIVE_ATTACK_SEED=$(ATTACK_SEED) \
	    cargo test -p h5live-serve --test http hostile -- --nocapture --test-threads 1
	cargo build --quiet -p h5live-cli
	@[ -x $(SCHEMATHESIS)/schemathesis ] || { python3 -m venv $(TARGET)/schemathesis-venv && $(SCHEMATHESIS)/python -m pip install \
	    --quiet --no-compile --disable-pip-version-check 'schemathesis==4.32.5' h5py; } || echo 'skipped: schemathesis (pip cannot install it)'
	[ ! -x $(SCHEMATHESIS)/schemathesis ] || \
	    python3 -B tests/python/serve_schemathesis.py $(TARGET)/debug/h5live $(SCHEMATHESIS)/schemathesis $(SCHEMATHESIS_REQUESTS)

# Not in `test`: its libraries take a minute to build.
test-tls: ## `h5live serve` with TLS, and h5live's own client by `h5live+https:`
	cargo clippy -p h5live-serve --features tls-tests --all-targets --quiet -- -D warnings
	cargo test -p h5live-serve --features tls-tests --test http tls
	cargo test -p h5live-cli --features serve-tls,served-tls --test program serve_tls

follow-serve: ## ten clients of all APIs of `h5live serve` that read a growing dataset for a minute
	H5LIVE_FOLLOW_SECONDS=60 cargo test -p h5live-serve --test http ten_clients -- --nocapture

BENCH_SERVE ?=
bench-serve: ## `h5live serve` beside HSDS, h5grove, nginx and in Chromium: docs/serve-benchmarks.md (ten minutes); BENCH_SERVE has rows, --seconds S, --scale F
	cargo build --release --quiet -p h5live-cli
	[ -x $(SERVE_VENV)/bin/python ] || python3 -m venv $(SERVE_VENV)
	$(SERVE_VENV)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check \
	    'h5grove[fastapi]==4.0.0' uvicorn websocket-client
	@.ci/need nginx nginx-light || echo 'nginx cannot be installed: the server of Python takes its place'
	@.ci/need $(CHROMIUM) chromium || echo 'skipped: $(CHROMIUM) cannot be installed'
	@[ -x $(TARGET)/hsds-venv/bin/hsds ] || { python3 -m venv $(TARGET)/hsds-venv && $(TARGET)/hsds-venv/bin/python -m pip install \
	    --quiet --disable-pip-version-check hsds==1.0.2 h5pyd==1.0.0 h5py; } || echo 'skipped: HSDS (pip cannot install it)'
	$(SERVE_VENV)/bin/python -B benches/serve.py $(TARGET)/release/h5live --hsds $(TARGET)/hsds-venv --chromium $(CHROMIUM) \
	    $(if $(BENCH_SERVE),$(BENCH_SERVE),--out docs/serve-benchmarks.md)

PAGE_PACKAGES = npm ci --prefix web --no-audit --no-fund --silent --fetch-retries 1 --fetch-timeout 60000
PAGE_BUILD = cd web && npm run --silent build -- --logLevel warn && node pack.mjs
page: ## the page of `h5live serve`, built from web/ (needs npm)
	$(PAGE_PACKAGES)
	$(PAGE_BUILD) ../serve/page

# In `.ci/run`. Compared as it was before it was compressed: versions of Node do that in ways of their own.
page-check: ## whether the page that is committed is the one that web/ gives; skipped where npm or its packages are not there
	@if ! command -v npm >/dev/null; then echo 'skipped: the page of `h5live serve` is not built again (there is no npm)'; \
	elif ! $(PAGE_PACKAGES); then echo 'skipped: the page of `h5live serve` is not built again (npm cannot get its packages)'; \
	else ($(PAGE_BUILD) $(TARGET)/page >/dev/null); for part in serve/page/*.gz; do \
	    cmp <(gzip -dc $$part) <(gzip -dc $(TARGET)/page/$${part##*/}) || { echo "$$part is not what web/ gives: make page"; exit 1; }; \
	done; fi

# Not in `test`: the libraries of the clouds take minutes to build. The S3 server takes any keys.
OBJECTS_KEYS = AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
test-objects: python-env ## object stores, and files on them, with an S3 server of this machine (the first time 10 minutes)
	cargo clippy -p h5live-objects --features aws,azure,gcp,http,testing --all-targets --quiet -- -D warnings
	$(OBJECTS_KEYS) cargo test -p h5live-objects --features aws,testing --lib --test s3 -- --show-output
	cargo clippy -p h5live-hsds --features clouds-tests --all-targets --quiet -- -D warnings
	$(OBJECTS_KEYS) cargo test -p h5live-hsds --features clouds-tests --lib --test bucket -- --show-output
	cargo clippy -p h5live-cli --features remote-tests --all-targets --quiet -- -D warnings
	$(OBJECTS_KEYS) cargo test -p h5live-cli --features remote-tests --test program remote:: -- --show-output

# Not in `test`: Garage, the S3 server, takes 10 minutes to build.
cluster: .deps/bin/garage ## an object store on three nodes, one of which is killed while data is written and read (the first time 20 minutes)
	cargo build --quiet -p h5live-cli --features remote-tests
	python3 tests/python/cluster.py .deps/bin/garage $(TARGET)/debug/h5live

# The Python package as the tests build everything: its compiled part is one more library of the workspace, so that nothing
# is built twice. numpy and pytest are in a venv without h5py. Where they cannot be had, it is skipped.
PYTHON_VENV := $(TARGET)/python-venv
PYTHON_RUN = PYTHONPATH=$(CURDIR)/python H5LIVE_PROGRAM=$(TARGET)/debug/h5live $(PYTHON_VENV)/bin/python
PYTHON_READY = $(PYTHON_VENV)/bin/python -c 'import numpy, pytest' 2>/dev/null
PIP = $(PYTHON_VENV)/bin/python -m pip install --quiet --no-compile --disable-pip-version-check
.PHONY: long-runs python python-cut python-venv python-extension python-sequences python-kills h5py-tests h5grove-tests wheel bench-python
python-venv:
	@if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
	    echo 'skipped: the Python package (it needs Python 3.11)'; \
	elif [ -x $(PYTHON_VENV)/bin/python ] || python3 -m venv $(PYTHON_VENV); then \
	    $(PYTHON_READY) || $(PIP) numpy pytest || echo 'skipped: the Python package (pip cannot install numpy and pytest)'; \
	    $(PYTHON_VENV)/bin/python -c 'import hypothesis, mypy' 2>/dev/null || $(PIP) hypothesis mypy || \
	        echo 'skipped: stubs and random sequences of the Python package (pip cannot install mypy and hypothesis)'; \
	fi

python-extension: python-venv
	@if $(PYTHON_READY); then \
	    $(AS_TESTED) --lib --bin h5live && install -m 755 $(TARGET)/debug/lib_h5live.so python/h5live/_h5live.abi3.so; \
	fi

python: python-env python-extension ## the Python package, in a venv of its own: its tests, and h5py's with it in h5py's place
	@if $(PYTHON_READY); then $(PYTHON_RUN) -m pytest -q -p no:cacheprovider python/tests; fi
	@$(MAKE) --no-print-directory h5py-tests

# In `test`.
python-cut: python-env python-extension ## the same without what takes minutes
	@if $(PYTHON_READY); then $(PYTHON_RUN) -m pytest -q -p no:cacheprovider -m 'not slow' python/tests; fi
	@$(MAKE) --no-print-directory h5py-tests

# h5py is in another venv, so that it is not importable where its tests run.
h5py-tests: python-env python-extension ## h5py's own tests with h5live in h5py's place; one that newly fails is an error
	@if $(PYTHON_READY); then \
	    $(PYTHON_RUN) python/tests/run_h5py_tests.py \
	        $$($(H5LIVE_PYTHON) -c 'import h5py.tests, os; print(os.path.dirname(h5py.tests.__file__))'); \
	fi

# No package has h5grove's tests: H5GROVE is a clone of it (version 4.0.0).
H5GROVE_VENV := $(TARGET)/h5grove-venv
h5grove-tests: python-extension ## h5grove's own tests with h5live in h5py's place: H5GROVE=folder of a clone
	@[ -d "$(H5GROVE)/src/tests" ] || { echo 'H5GROVE is to be the folder of a clone of h5grove'; exit 1; }
	@[ -x $(H5GROVE_VENV)/bin/python ] || python3 -m venv $(H5GROVE_VENV)
	$(H5GROVE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --requirement python/tests/h5grove_requirements.txt
	PYTHONPATH=$(CURDIR)/python $(H5GROVE_VENV)/bin/python python/tests/run_h5grove_tests.py $(H5GROVE)

SEQUENCES ?= 1000
python-sequences: python-env python-extension ## random sequences of operations with the package and with h5py (SEQUENCES)
	$(PYTHON_RUN) python/tests/random_sequences.py --peer $(H5LIVE_PYTHON) --count $(SEQUENCES)

LONG_RUNS ?=
long-runs: python-env python-extension ## what programs do for days, again and again on every store: memory, files, handles (half an hour; LONG_RUNS)
	$(PYTHON_RUN) python/tests/long_runs.py $(LONG_RUNS)

PYTHON_KILLS ?= 200
python-kills: python-env python-extension ## recorders in Python killed while Python, h5py and the program follow them (PYTHON_KILLS)
	$(PYTHON_RUN) python/tests/recorder_kills.py --peer $(H5LIVE_PYTHON) --program $(TARGET)/debug/h5live --kills $(PYTHON_KILLS)

# With stores of this machine, object stores and web servers. docs/release.md says what other systems get.
WHEELS := $(TARGET)/wheels
wheel: python-venv ## the Python package as a wheel, in target/wheels, tried in a new environment (the first time 10 minutes)
	$(PIP) 'maturin>=1.16,<2' auditwheel
	rm -rf $(WHEELS)
	CARGO_PROFILE_RELEASE_DEBUG=0 $(PYTHON_VENV)/bin/maturin build --release --strip --compression-level 9 --features remote \
	    --manifest-path python/Cargo.toml --out $(WHEELS)
	$(PYTHON_VENV)/bin/python python/tests/check_wheel.py $(WHEELS)/*.whl

BENCH_PYTHON ?=
bench-python: wheel ## the Python package, as in its wheel, beside h5py: BENCH_PYTHON has names of rows, --rounds N, --scale F
	[ -x $(TARGET)/bench-python-venv/bin/python ] || python3 -m venv $(TARGET)/bench-python-venv
	$(TARGET)/bench-python-venv/bin/python -m pip install --quiet --disable-pip-version-check h5py==3.16.0 deflate
	$(TARGET)/bench-python-venv/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps $(WHEELS)/*.whl
	$(TARGET)/bench-python-venv/bin/python benches/python.py $(BENCH_PYTHON)

doc-test: ## the examples in the documentation
	cargo test --workspace --doc --quiet

loom: ## every interleaving of the parts with interior concurrency
	RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$(TARGET)/loom CARGO_PROFILE_RELEASE_DEBUG=0 \
	    cargo test --release -p h5live-loom -- --nocapture

stress: ## a writer and its readers in processes of their own, every value checked, with kills, and with readers that stall
	$(DEBUG_LAB)
	$(TARGET)/debug/h5live-lab stress --readers $(STRESS_READERS) --seconds $(STRESS_SECONDS)
	$(TARGET)/debug/h5live-lab stress --readers $(STRESS_READERS) --seconds $(STRESS_SECONDS) --kill
	$(TARGET)/debug/h5live-lab stress --readers $(STRESS_READERS) --seconds $(STRESS_SECONDS) --restart
	$(TARGET)/debug/h5live-lab stress --readers $(STRESS_READERS) --seconds $(STRESS_SECONDS) --stall 1

stress-clock: python-env ## the same on every store while the wall clock jumps by seconds, days and years (libfaketime; three minutes)
	$(DEBUG_LAB)
	.ci/need faketime faketime
	$(H5LIVE_PYTHON) -B tests/python/clock_jumps.py --program $(TARGET)/debug/h5live-lab --seconds $(STRESS_SECONDS)

sanitize: ## the files with unsafe code under AddressSanitizer (needs a nightly toolchain) and Miri; the live demo under memcheck
	.ci/sanitize

prove: ## every schedule of a reader, every death of the writer, every missing flush dependency (one to two hours)
	cargo build --release --quiet -p h5live-prove -p h5live-prove-libhdf5
	$(TARGET)/release/prove
	$(TARGET)/release/prove-libhdf5

# As the tests build it, which costs less than it would gain by being optimised.
prove-cut: ## a moment of each exploration of it, and what it takes to find out each mutant (four minutes)
	$(AS_TESTED) --bin prove --bin prove-libhdf5
	$(TARGET)/debug/prove --quick
	$(TARGET)/debug/prove-libhdf5 --quick

# Rows of five datasets that one side writes, each flushed, and the other side follows; and their rate.
LIVE_ROWS ?= 60000
LIVE_RATE ?= 1000
LIVE_SECONDS ?= 60
live: setup ## minutes of libhdf5 following us, of us following libhdf5, and of killed writers (some 6 minutes)
	H5LIVE_ROWS=$(LIVE_ROWS) H5LIVE_RATE=$(LIVE_RATE) H5LIVE_RACE_SECONDS=$(LIVE_SECONDS) \
	    cargo test --release -p h5live-tests --test interop follow -- --nocapture --test-threads 1
	cargo build --release --quiet -p h5live-lab
	$(TARGET)/release/h5live-lab stress --readers 4 --seconds $(LIVE_SECONDS)
	$(TARGET)/release/h5live-lab stress --readers 4 --seconds $(LIVE_SECONDS) --kill \
	    --check "$(H5LIVE_PYTHON) tests/python/after_kill.py"

# What readers of h5live and of h5py see of every chunk index under every kind of change.
MATRIX = stress --matrix --readers 3 --peer $(H5LIVE_PYTHON) tests/python/matrix.py
MATRIX_SECONDS ?= 20
MATRIX_PARALLEL ?= 4
live-matrix: setup ## every chunk index x change x filter x type, followed by h5live and h5py, also by readers that stall (40 minutes)
	cargo build --release --quiet -p h5live-lab
	$(TARGET)/release/h5live-lab $(MATRIX) --seconds $(MATRIX_SECONDS) --parallel $(MATRIX_PARALLEL)
	$(TARGET)/release/h5live-lab $(MATRIX) --seconds 5 --stall 1 --parallel 8
	$(TARGET)/release/h5live-lab $(MATRIX) --seconds 16 --stall 6 --parallel 16
	$(TARGET)/release/h5live-lab $(MATRIX) --seconds 64 --stall 30 --parallel 24

live-matrix-cut: setup ## the same in three minutes, and writers killed and failing all over it
	$(DEBUG_LAB)
	$(TARGET)/debug/h5live-lab $(MATRIX) --seconds 0.4
	$(TARGET)/debug/h5live-lab $(MATRIX) --seconds 2.5 --stall 1 --parallel 8 --type fixed --work rewrite --work shrink --work append-rows
	$(TARGET)/debug/h5live-lab stress --kill --kills 132 --parallel 3 --peer $(H5LIVE_PYTHON) tests/python/matrix.py
	$(TARGET)/debug/h5live-lab stress --io-faults --kills 132 --parallel 3 --peer $(H5LIVE_PYTHON) tests/python/matrix.py

KILLS ?= 1000
kills: setup ## writers of elements, attributes and links killed, and writers whose storage fails; each time all that was flushed is there
	cargo build --release --quiet -p h5live-lab
	$(TARGET)/release/h5live-lab stress --kill --kills $(KILLS) --parallel 3 --peer $(H5LIVE_PYTHON) tests/python/matrix.py
	$(TARGET)/release/h5live-lab stress --io-faults --kills $(KILLS) --parallel 3 --peer $(H5LIVE_PYTHON) tests/python/matrix.py
	$(TARGET)/release/h5live-lab stress --names --kills $(KILLS) --peer $(H5LIVE_PYTHON) tests/python/names.py

# ATTACK: names of parts, --seed N, --count N; what each part does is in docs/attack.md.
ATTACK ?=
ATTACK_MINUTES ?= 10
# With overflow checks, as all that is built for tests. Optimised, unlike there: the time that it takes is looked at.
ATTACK_RUN = $(AS_TESTED) --bin h5live-attack --config profile.dev.package.h5live-cli.opt-level=1 && \
    $(H5LIVE_PYTHON) -B tests/python/attack --program $(TARGET)/debug/h5live-attack --keep $(TARGET)/attack/kept
attack: setup corpus ## what attackers did, again: hostile files, kills, files cut beneath readers, libhdf5's programs (10 minutes)
	$(ATTACK_RUN) --minutes $(ATTACK_MINUTES) $(ATTACK)

attack-cut: setup corpus ## a few hundred mutants, kills and cut files of it (under a minute)
	$(ATTACK_RUN) --minutes 0.15 --seed 1 mutants objects cut kills stores logs joined

# FUZZ: names of targets (verify/fuzz/fuzz_targets). Finds are kept in verify/fuzz/artifacts; each becomes a test.
FUZZ ?= log_entry log_file hsds_document hsds_chunk kv_value
FUZZ_SECONDS ?= 60
# The sanitizers are options that the stable compiler only takes so.
fuzz: .deps/bin/cargo-fuzz ## the fuzz targets FUZZ, a minute each (the first time some minutes more)
	cd verify/fuzz && cargo run --quiet --bin seeds
	for target in $(FUZZ); do \
	    RUSTC_BOOTSTRAP=1 cargo fuzz run --fuzz-dir verify/fuzz $$target -- -max_total_time=$(FUZZ_SECONDS) -timeout=20 -rss_limit_mb=2048 || exit 1; \
	done

walk: python-env ## a file of 100,000 groups and a million attributes: time beside h5py, and memory
	cargo build --release --quiet --example walk
	$(H5LIVE_PYTHON) tests/python/walk.py $(TARGET)/release/examples/walk $(TARGET)/walk

# BENCH: names of works (`h5live-compare --list`), --rounds N, --scale F. What is found is then only printed.
BENCH ?=
bench: python-env ## h5live beside libhdf5 and other crates: docs/BENCHMARKS.md and its plots (half an hour, the first time 10 minutes more)
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement benches/compare/requirements.txt
	cd benches/compare && cargo build --release --quiet
	HDF5_PLUGIN_PATH=$$(.venv/bin/python -c 'import hdf5plugin; print(hdf5plugin.PLUGIN_PATH)') \
	    $(BENCH_TARGET)/release/h5live-compare $(or $(BENCH),--out docs)

# HSDS is left out where `make test-hsds` has not made its environment.
BENCH_EXAMPLES = --example remote_read --example hsds_speed --example slow_proxy --example bare_get
bench-objects: .deps/bin/garage ## object stores: native files beside s3fs and bare requests, domains beside cp, HSDS and Zarr (the first time 35 minutes)
	[ -x $(TARGET)/bench-venv/bin/python ] || python3 -m venv $(TARGET)/bench-venv
	$(TARGET)/bench-venv/bin/pip install --quiet --disable-pip-version-check --requirement benches/requirements.txt
	cargo build --release --quiet -p h5live -p h5live-objects $(BENCH_EXAMPLES) \
	    --features h5live/remote,h5live/hsds,h5live-objects/aws,h5live-objects/testing
	$(TARGET)/bench-venv/bin/python benches/remote.py $(TARGET)/release/examples .deps/bin/garage
	$(TARGET)/bench-venv/bin/python benches/hsds.py $(TARGET)/release/examples 1000 \
	    $(if $(wildcard $(TARGET)/hsds-venv/bin/hsload),$(TARGET)/hsds-venv)
	cd benches/zarr && cargo build --release --quiet
	$(TARGET)/bench-venv/bin/python benches/zarr.py $(ZARR_TARGET)/release/h5live-zarr-speed .deps/bin/garage

bench-slatedb: ## key-value stores in SlateDB beside bare SlateDB (the first time 10 minutes)
	cargo build --release --quiet -p h5live -p h5live-kv --example slate_speed --example bare_slate \
	    --features h5live/kv-slatedb,h5live-kv/slatedb
	python3 benches/slate.py $(TARGET)/release/examples

bench-own: ## h5live by itself, with criterion (two minutes)
	cd benches/own && cargo bench --quiet

# What callgrind counts does not depend on what else the machine does.
counts: ## the instructions of hot paths as users build them, against benches/counts.txt (a minute, the first time 5 minutes more)
	cargo build --release --quiet -p h5live-hot
	@.ci/need valgrind valgrind
	python3 tests/python/counts.py $(TARGET)/release/hot benches/counts.txt $(COUNTS)

# What an algorithm does too much shows there, too; what the compiler has not optimised, only in `counts`.
counts-cut: ## the same as the tests build them, against benches/counts-dev.txt (two minutes)
	$(AS_TESTED) --bin hot
	@.ci/need valgrind valgrind
	python3 tests/python/counts.py $(TARGET)/debug/hot benches/counts-dev.txt $(COUNTS)

counts-write: ## takes the instructions of hot paths for what they are to be
	$(MAKE) --no-print-directory counts counts-cut COUNTS=--write

# STEPS, GROWTH: names of axes (`growth` without arguments lists them); GROWTH also --largest COUNT, --minutes M. What is found is
# then only printed.
.PHONY: steps steps-cut growth
steps: ## one thing doubled at a time, in instructions: nothing is looked through for each operation (ten minutes)
	cargo build --release --quiet -p h5live-growth
	@.ci/need valgrind valgrind
	python3 tests/python/steps.py $(TARGET)/release/growth $(STEPS)

steps-cut: ## the same for the smallest counts, as the tests build them (four minutes)
	$(AS_TESTED) --bin growth
	@.ci/need valgrind valgrind
	python3 tests/python/steps.py $(TARGET)/debug/growth --cut $(STEPS)

growth: python-env ## one thing grown at a time, to what this machine holds, beside libhdf5: docs/growth.md (two hours)
	.venv/bin/python -m pip install --quiet --disable-pip-version-check --requirement benches/growth/requirements.txt
	cargo build --release --quiet -p h5live-growth
	.venv/bin/python -B benches/growth.py $(TARGET)/release/growth $(or $(GROWTH),--out docs)

corpus: $(TARGET)/corpus/.done ## a small corpus made by h5py, in target/corpus

$(TARGET)/corpus/.done: tests/python/make_corpus.py .venv/.done
	rm -rf $(@D)
	$(H5LIVE_PYTHON) tests/python/make_corpus.py $(@D)
	@touch $@

##@ Set up
.PHONY: setup clean
setup: python-env h5tools ## what the tests need: h5py in .venv, h5dump

python-env: .venv/.done

.venv/.done: tests/requirements.txt
	.ci/need python3 python3 python3-venv
	python3 -c 'import ensurepip, venv' 2>/dev/null || .ci/need python3-venv-is-missing python3-venv
	python3 -m venv .venv
	.venv/bin/python -m pip install --quiet --no-compile --disable-pip-version-check --requirement tests/requirements.txt
	@touch $@

h5tools:
	@.ci/need h5dump hdf5-tools

# Unoptimised: it runs once, and builds in half a minute.
.deps/bin/cargo-deny:
	CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug --root .deps cargo-deny@$(CARGO_DENY_VERSION)

.deps/bin/garage:
	CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug --root .deps garage@$(GARAGE_VERSION)

.deps/bin/cargo-fuzz:
	CARGO_PROFILE_DEV_DEBUG=0 cargo install --quiet --locked --debug --root .deps cargo-fuzz@$(CARGO_FUZZ_VERSION)

clean: ## removes what was built, .venv and .deps
	cargo clean --quiet
	rm -rf .venv .deps

.PHONY: help
help: ## this
	@awk 'BEGIN { FS = ":.*## " } \
	    /^##@/ { printf "\n%s\n", substr($$0, 5) } \
	    /^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
