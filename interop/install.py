"""Install everything that the interop suite needs, from each client's own registry: ``python -m interop.install``."""

import functools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from interop import (
    connect_client,
    connector,
    databases,
    etcd,
    java_serializers,
    lake,
    reference,
    yarn_cluster,
)
from interop.kafka_tests import harness

HERE = Path(__file__).resolve().parent

#: Programs that must be installed, and the Debian package of each.
PROGRAMS = {
    "javac": "openjdk-17-jdk-headless",
    "java": "openjdk-17-jre-headless",
    "mvn": "maven",
    "go": "golang (the version that interop/go/go.mod names, or newer)",
    "node": "nodejs (18 or newer)",
    "npm": "npm",
}


def missing_programs() -> list[str]:
    """Return the missing programs, each with its package."""
    return [
        f"{program}: install {package}" for program, package in PROGRAMS.items() if not shutil.which(program)
    ]


def install_debian_package(name: str) -> None:
    """Install a Debian package with a program of its name, with apt-get as root or with sudo.

    Raises:
        subprocess.CalledProcessError: apt-get failed.
        FileNotFoundError: there is no apt-get (or no sudo) here.
    """
    if shutil.which(name):
        return
    as_root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    _run([*as_root, "apt-get", "update", "-qq"])
    _run([*as_root, "apt-get", "install", "-y", "-qq", name])


def install_databases() -> None:
    """Install the servers of PostgreSQL and MariaDB, and fetch JDBC drivers with Maven."""
    for package, program in databases.PACKAGES.items():
        if databases.program(program) is None:
            install_debian_package(package)
    databases.fetch()


def install_etcd() -> None:
    """Install the server of etcd."""
    if shutil.which(etcd.PROGRAM) is None:
        install_debian_package(etcd.PACKAGE)


def install_python_clients() -> None:
    """Install confluent-kafka, kafka-python and aiokafka with pip into this interpreter's environment."""
    options = ("-q", "--disable-pip-version-check", "--no-deps", "--only-binary=:all:", "--require-hashes")
    _run([sys.executable, "-m", "pip", "install", *options, "-r", str(HERE / "requirements.txt")])


def fetch_kafka() -> None:
    """Fetch Apache Kafka's broker and tools with Maven."""
    reference.fetch()


def fetch_spark_connector() -> None:
    """Fetch Spark's Kafka connector with Maven; Spark itself is among the tests' own packages."""
    connector.fetch()


def install_connect_client() -> None:
    """Install Spark's client for Spark Connect with pip into an environment of its own."""
    connect_client.python()


def fetch_yarn() -> None:
    """Fetch Hadoop's YARN with Maven."""
    yarn_cluster.fetch()


def build_java_client() -> None:
    """Build the program of the Java clients with Maven."""
    _run(["mvn", "-q", "-B", "-f", str(HERE / "java" / "pom.xml"), "compile"])


def fetch_java_serializers() -> None:
    """Fetch Confluent's serializers for Java with Maven."""
    java_serializers.fetch()


def build_go_clients() -> None:
    """Build the programs of franz-go, sarama, kafka-go and srclient with Go."""
    binaries = HERE / ".cache" / "bin"
    binaries.mkdir(parents=True, exist_ok=True)
    _run(["go", "build", "-o", f"{binaries}/", "./..."], HERE / "go")


def install_node_packages() -> None:
    """Install the packages of Node, unless the installation is newer than the lock file."""
    installed = HERE / "node" / "node_modules" / ".package-lock.json"
    lock = HERE / "node" / "package-lock.json"
    if not installed.exists() or installed.stat().st_mtime < lock.stat().st_mtime:
        _run(["npm", "ci", "--no-audit", "--no-fund", "--loglevel=error"], HERE / "node")


STEPS: Sequence[tuple[str, Callable[[], None]]] = (
    ("kcat", functools.partial(install_debian_package, "kcat")),
    ("Chromium", functools.partial(install_debian_package, "chromium")),
    ("Python clients", install_python_clients),
    ("Apache Kafka", fetch_kafka),
    ("Spark's connector", fetch_spark_connector),
    ("A Spark for tables", lake.fetch),
    ("Spark's client", install_connect_client),
    ("YARN", fetch_yarn),
    ("Databases", install_databases),
    ("etcd", install_etcd),
    ("Java clients", build_java_client),
    ("Java's serializers", fetch_java_serializers),
    ("Apache Kafka's tests", harness.build),
    ("Go clients", build_go_clients),
    ("KafkaJS and axe-core", install_node_packages),
)


def main() -> int:
    """Run every step; report failed steps at the end, with exit status 1."""
    failures = missing_programs()
    if not failures:
        failures = [failure for name, step in STEPS if (failure := _attempt(name, step))]
    for failure in failures:
        print(f"interop: missing: {failure}", file=sys.stderr)
    return 1 if failures else 0


def _attempt(name: str, step: Callable[[], None]) -> str | None:
    started_s = time.monotonic()
    print(f"interop: {name} ... ", end="", flush=True)
    try:
        step()
    except (OSError, subprocess.CalledProcessError) as error:
        print("failed")
        return f"{name}: {error}"
    print(f"{time.monotonic() - started_s:.1f} s")
    return None


def _run(command: Sequence[str], directory: Path = HERE) -> None:
    # the output of these programs goes to stderr, so that the steps stay readable
    subprocess.run(command, cwd=directory, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
