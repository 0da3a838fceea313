# `make help` lists the targets. `make run` starts a broker; every change must pass `make check test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Has the tools that lock, audit and build.
RELEASE := .venv-release
ARGS ?=
# Number of tests that run at a time; with 0 all run in one process, for a debugger.
WORKERS ?= 2
# Compiled if there is a C compiler.
KERNELS := $(addprefix src/barnabas/wire/records/,walk key_table)
COMPILED := $(wildcard $(addsuffix .p*,$(KERNELS)))
PARALLEL := -n $(WORKERS) --dist worksteal
# Spark starts once in each process, which runs whole files.
SPARK_PARALLEL := -n $(WORKERS) --dist loadfile --no-loadscope-reorder

# One universal resolution each for Python 3.11 and newer. Versions younger than a week may still turn out to be malicious.
LOCK = $(RELEASE)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --exclude-newer '7 days' \
	--custom-compile-command 'make lock' $(ARGS)
# The other lock files are parts of these.
AUDITED := $(addprefix requirements/,all.txt test.txt release.txt) $(addprefix interop/,requirements.txt connect-client.txt)
# Advisories that do not concern Barnabas: one line for each, AUDIT_IGNORED += ID, below its reason as a comment.
AUDIT_IGNORED :=

.PHONY: run cluster example-orders lock audit release check format test test-spark test-spark-versions interop interop-cluster kafka-tests differential soak-eos soak-cluster soak-spark soak-tables soak-stalls soak-holds soak-frames sim sim-bugs bench bench-cluster bench-tls bench-spark clean help

help:  ## List the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 22

# Installs exactly the versions of a lock file, whose hashes pip checks; what is built uses the locked setuptools and Cython.
INSTALL := -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation
LOCKED := $(INSTALL) --require-hashes --requirement

$(VENV)/.built: requirements/build.txt pyproject.toml $(COMPILED)
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python $(LOCKED) requirements/build.txt
	$(BIN)/python $(INSTALL) --editable .
	@touch $@

$(VENV)/.installed: requirements/console.txt $(VENV)/.built
	$(BIN)/python $(LOCKED) $<
	@touch $@

$(VENV)/.installed-test: requirements/test.txt $(VENV)/.built
	$(BIN)/python $(LOCKED) $<
	@touch $@ $(VENV)/.installed

$(RELEASE)/.installed: requirements/release.txt
	test -x $(RELEASE)/bin/python || $(PYTHON) -m venv $(RELEASE)
	$(RELEASE)/bin/python $(LOCKED) $<
	@touch $@

run: $(VENV)/.installed  ## Serve Kafka on 127.0.0.1:9092 and the console on 127.0.0.1:9404, data in ./data (ARGS='--set key=value ...')
	$(BIN)/barnabas serve --set barnabas.metrics.listener=127.0.0.1:9404 $(ARGS)

cluster: $(VENV)/.installed  ## Three brokers on 127.0.0.1:9092-9094 and three members of etcd, data in ./data/cluster; installs etcd-server
	$(BIN)/python -m examples.cluster.run $(ARGS)

check: $(VENV)/.installed-test  ## Style, types and package layers
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/mypy
	$(BIN)/mypy --config-file tests/mypy.ini tests
	$(BIN)/lint-imports

format: $(VENV)/.installed-test  ## Format all files
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

# Long tests first, so that the workers end at the same time.
test: $(VENV)/.installed-test  ## All tests that need only packages from pip, including Spark in local mode
	$(BIN)/pytest $(PARALLEL) tests/sim tests/node tests/unit $(ARGS)
	$(BIN)/pytest $(SPARK_PARALLEL) -m "not long" tests/spark $(ARGS)

test-spark: $(VENV)/.installed-test  ## All tests on Spark: local mode, a cluster, Apache Kafka and its connector
	$(BIN)/pytest $(SPARK_PARALLEL) tests/spark $(ARGS)
	interop/run $(SPARK_PARALLEL) tests/interop/spark $(ARGS)

interop: $(VENV)/.installed-test  ## Real clients, Spark as a cluster, Apache Kafka; installs what they need
	interop/run $(ARGS)

interop-cluster: $(VENV)/.installed-test  ## Real clients and Kafka's tools against three brokers that replicate every topic
	INTEROP_BROKERS=3 interop/run $(SPARK_PARALLEL) $(addprefix --ignore=tests/interop/,spark stores console) tests/interop $(ARGS)

kafka-tests: $(VENV)/.installed-test  ## Apache Kafka's own integration tests; writes docs/kafka-tests.md (ARGS='--resume NAME...')
	$(BIN)/python -m interop.kafka_tests.run $(ARGS)

differential: $(VENV)/.installed-test  ## Send thousands of requests to Apache Kafka and to Barnabas, and compare the responses
	DIFFERENTIAL_EXAMPLES=$(or $(EXAMPLES),600) interop/run tests/differential

test-spark-versions:  ## Reads, writes, streams and flows on older versions of Spark (VERSIONS='4.1 4.2'), in .venv-spark-VERSION
	for version in $(or $(VERSIONS),4.1 4.2); do \
		venv=.venv-spark-$$version; \
		test -x $$venv/bin/python || $(PYTHON) -m venv $$venv || exit 1; \
		$$venv/bin/python -m pip install --quiet --editable '.[test]' "pyspark==$$version.*" || exit 1; \
		$$venv/bin/pytest tests/spark/test_versions.py tests/spark/test_plans.py $(ARGS) || exit 1; \
	done

soak-eos: $(VENV)/.installed-test  ## Transactional applications, three minutes each, while the broker is killed
	EOS_SECONDS=$(or $(SECONDS),180) interop/run tests/interop/test_exactly_once.py

soak-cluster: $(VENV)/.installed-test  ## Three brokers and three members of etcd under faults; writes docs/reliability.md (ARGS='leader-killed ...')
	$(BIN)/python -m interop.install
	$(BIN)/python -m interop.soak_cluster $(ARGS)

soak-spark: $(VENV)/.installed-test  ## A Spark stream, each of whose processes is killed 20 times (ROUNDS=20 SEED=1 MASTER=local|cluster BROKER=barnabas|kafka)
	SPARK_ROUNDS=$(or $(ROUNDS),20) SPARK_SEED=$(or $(SEED),1) SPARK_MASTER=$(or $(MASTER),local) \
		SPARK_BROKER=$(or $(BROKER),barnabas) $(BIN)/pytest -s tests/interop/spark/test_sink_soak.py $(ARGS)

soak-tables: $(VENV)/.installed-test  ## Tables of both formats while their services are killed (ROUNDS=20)
	TABLE_ROUNDS=$(or $(ROUNDS),20) $(BIN)/pytest tests/node/tables/test_tables_kills.py $(ARGS)

soak-stalls: $(VENV)/.installed-test  ## The most expensive requests of each API beside a second client (BROKER=barnabas|kafka TOPICS=10000)
	$(BIN)/python -m bench.stalls.run --broker $(or $(BROKER),barnabas) --topics $(or $(TOPICS),10000) $(ARGS)

soak-holds: $(VENV)/.installed-test  ## The same requests to a broker whose event loop measures its CPU time (TOPICS=10000)
	$(BIN)/python -m bench.stalls.holds --topics $(or $(TOPICS),10000) $(ARGS)

soak-frames: $(VENV)/.installed-test  ## A million random and damaged frames: no stall, bounded memory (FRAMES=1000000)
	SOAK_FRAMES=$(or $(FRAMES),1000000) $(BIN)/pytest tests/node/test_frames.py $(ARGS)

sim: $(VENV)/.installed-test  ## Simulate brokers that crash, on virtual time (SEED="1 2" or MINUTES=10, BROKERS=3)
	cd tests && PYTHONPATH=. ../$(BIN)/python -m sim.run $(SEED) --brokers $(or $(BROKERS),1) --minutes $(or $(MINUTES),$(if $(SEED),0,1)) $(ARGS)

sim-bugs: $(VENV)/.installed-test  ## Look for the seeds that find the bugs planted in tests/sim/bugs.py (BUGS="name name", ARGS="--seeds 20")
	cd tests && PYTHONPATH=. ../$(BIN)/python -m sim.search $(BUGS) $(ARGS)

lock: $(RELEASE)/.installed  ## Write the lock files again after a change of pyproject.toml (ARGS='--upgrade-package NAME', ARGS=--upgrade)
	$(LOCK) pyproject.toml --extra arrow --extra console --extra iceberg --extra objects --extra registry --extra security --extra spark --extra tables --extra tracing --output-file requirements/all.txt
	$(LOCK) pyproject.toml --extra console --constraint requirements/all.txt --output-file requirements/console.txt
	$(LOCK) pyproject.toml --extra test --extra check --no-emit-package barnabas --constraint requirements/all.txt --override requirements/overrides.in --output-file requirements/test.txt
	$(LOCK) --group build --constraint requirements/test.txt --output-file requirements/build.txt
	$(LOCK) --group release --constraint requirements/build.txt --output-file requirements/release.txt
	$(LOCK) interop/requirements.in --constraint requirements/test.txt --output-file interop/requirements.txt
	$(LOCK) interop/connect-client.in --constraint requirements/test.txt --output-file interop/connect-client.txt

audit: $(RELEASE)/.installed  ## Look up known vulnerabilities of all locked versions, at PyPI (at OSV: ARGS='--service osv')
	@$(RELEASE)/bin/pip-audit --strict --progress-spinner off --disable-pip --require-hashes $(addprefix -r ,$(AUDITED)) \
		$(addprefix --ignore-vuln ,$(AUDIT_IGNORED)) $(ARGS) \
		|| { echo "make audit: a package has a vulnerability, or the database cannot be reached: see above" >&2; exit 1; }

release: $(RELEASE)/.installed  ## Build wheel, source, SBOM and checksums of the last commit in dist/, twice, and compare
	tools/release

bench: $(VENV)/.installed-test  ## Benchmarks of Apache Kafka and Barnabas in turns; writes docs/benchmarks.md
	$(BIN)/python -m bench.run $(ARGS)

bench-cluster: $(VENV)/.installed-test  ## Benchmarks of three brokers of Apache Kafka and of Barnabas; writes docs/benchmarks-cluster.md
	$(BIN)/python -m bench.cluster $(ARGS)

bench-tls: $(VENV)/.installed-test  ## Benchmarks of TLS, logins and ACLs beside Apache Kafka; writes docs/benchmarks-tls.md
	$(BIN)/python -m bench.tls.run $(ARGS)

bench-spark: $(VENV)/.installed-test  ## Benchmarks of Spark's Kafka connector and ours in turns; writes docs/benchmarks-spark.md
	$(BIN)/python -m bench.spark.run $(ARGS)

example-orders: $(VENV)/.installed-test  ## Run the example: a million events of a shop through Spark into a report (ARGS='--count 20000')
	$(BIN)/python -m examples.orders $(ARGS)

clean:  ## Remove everything that was built or installed
	rm -rf $(VENV) $(RELEASE) .venv-spark-* .venv-connect-client build dist $(addsuffix .c,$(KERNELS)) $(addsuffix .*.so,$(KERNELS)) .mypy_cache .ruff_cache .pytest_cache .hypothesis
