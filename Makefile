# Every target sets up what it needs: a virtual environment in .venv, from Python 3.11 or newer alone.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
NODE   := $(BIN)/python web/build.py
PAGE   := src/nearcast/service/page/index.html
PYTEST := $(BIN)/python -m pytest -q -n 2 --dist loadgroup --no-loadscope-reorder
DAILY  := $(PYTEST) --ignore=tests/faults --cov --cov-report=

unexport PYTHONDONTWRITEBYTECODE  # tests start dozens of servers, commands and Spark workers: modules are kept compiled

.DEFAULT_GOAL := help
.PHONY: help demo spark-demo test test-cluster test-compiled test-faults test-kafka test-pipeline test-pure test-thorough test-web web wheel check format bench serve clean

help:  ## Show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit("nearcast needs Python 3.11 or newer, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@echo "Setting up $(VENV) (once) …"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

$(PAGE): $(READY) $(wildcard web/src/*) web/index.html web/basemap.mjs web/vite.config.js web/package-lock.json
	@$(NODE) --optional

web: $(PAGE)  ## Build the map page (Node from this machine or from PyPI)

demo: $(PAGE)  ## A server with a generated world and a live feed, and the map page to watch it
	@$(BIN)/nearcast demo

wheel: $(PAGE)  ## The package with the page in it, into dist/
	$(BIN)/python -m pip wheel -q --no-deps -w dist .

spark-demo: $(READY)  ## The same end to end on Spark, in this machine: statistics, plans, matches
	@$(BIN)/nearcast spark demo

test: test-compiled test-pure  ## All tests: compiled, then pure Python; together they must cover 95 %
	$(BIN)/coverage report --fail-under=95

test-compiled: $(READY)  ## The tests with compiled kernels
	$(DAILY)

test-pure: $(READY)  ## The tests with kernels as plain Python; those of servers and Spark have nothing new to say there
	NUMBA_DISABLE_JIT=1 $(DAILY) --cov-append --ignore=tests/service --ignore=tests/spark

test-web: $(READY)  ## The map page: types, lint, unit tests, and a real Chromium (installed by apt where that is allowed)
	@$(NODE)
	@$(NODE) -- npm run --silent check
	@$(NODE) -- npm test --silent
	@command -v chromium chromium-browser >/dev/null || (apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium) \
	  >/dev/null 2>&1 || echo "NO CHROMIUM: it is not here and apt cannot install it; the page is not tested in a browser"
	$(BIN)/python -m pytest -q -rs tests/web/page.py

test-faults: $(READY)  ## Servers killed at any moment, disks that are full: nothing acknowledged is lost
	$(PYTEST) tests/faults

test-cluster: $(READY)  ## Spark with two executors in processes of their own, one of them killed; drivers killed and started again
	$(BIN)/python -m pytest -q tests/spark/cluster.py
	$(BIN)/python -m pytest -q tests/spark/restarts.py

test-kafka: $(READY)  ## Spark and the service with a Kafka broker of its own, which comes from Maven Central, once
	$(BIN)/python -m pytest -q tests/spark/kafka.py tests/service/kafka.py

test-pipeline: $(READY)  ## The example of a declarative pipeline of Spark's, in processes of its own
	$(BIN)/python -m pytest -q tests/spark/pipeline.py

test-thorough: $(READY)  ## The laws on new random worlds every time (EXAMPLES=500 of each by default)
	HYPOTHESIS_PROFILE=thorough NEARCAST_EXAMPLES=$(or $(EXAMPLES),500) $(PYTEST) tests/test_laws.py tests/test_encoder.py tests/test_rank_laws.py tests/test_move_laws.py

check: $(READY)  ## Lint, format, types and layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)  ## Put the code in form
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(READY)  ## Compare the indexes (SUITE=smoke by default)
	$(BIN)/nearcast bench run $(or $(SUITE),smoke)

serve: $(PAGE)  ## Serve HTTP on 127.0.0.1:8080 (STORE=sqlite:///build/nearcast.db, PORT=8080)
	@mkdir -p build
	@$(BIN)/nearcast serve --store $(or $(STORE),sqlite:///build/nearcast.db) --port $(or $(PORT),8080)

clean:  ## Remove the environment and everything made
	rm -rf $(VENV) build dist web/node_modules web/.node web/public src/nearcast/service/page .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage*
