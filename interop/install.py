"""Install all that the interop suite needs, from each client's own registry: ``python -m interop.install``."""

import functools
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from interop import connector, databases, reference
from interop.kafka_tests import harness

HERE = Path(__file__).resolve().parent

#: Programs that must be there already, and the Debian package that brings each.
PROGRAMS = {
    "javac": "openjdk-17-jdk-headless",
    "java": "openjdk-17-jre-headless",
    "mvn": "maven",
    "go": "golang (the version that interop/go/go.mod names, or newer)",
    "node": "nodejs (18 or newer)",
    "npm": "npm",
}


def missing_programs() -> list[str]:
    """What is not on this machine, each with the package that brings it."""
    return [
        f"{program}: install {package}" for program, package in PROGRAMS.items() if not shutil.which(program)
    ]


def install_debian_package(name: str) -> None:
    """A Debian package with a program of its name, through apt-get as root or by sudo.

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
    """The servers of PostgreSQL and MariaDB, and JDBC drivers with Maven."""
    for package, program in databases.PACKAGES.items():
        if databases.program(program) is None:
            install_debian_package(package)
    databases.fetch()


def install_python_clients() -> None:
    """confluent-kafka, kafka-python and aiokafka with pip, into this interpreter's environment."""
    requirements = str(HERE / "requirements.txt")
    _run([sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "-r", requirements])


def fetch_kafka() -> None:
    """Apache Kafka's broker and tools with Maven."""
    reference.fetch()


def fetch_spark_connector() -> None:
    """Spark's Kafka connector with Maven; Spark itself comes with the tests' own packages."""
    connector.fetch()


def build_java_client() -> None:
    """The program of the Java clients with Maven."""
    _run(["mvn", "-q", "-B", "-f", str(HERE / "java" / "pom.xml"), "compile"])


def build_go_clients() -> None:
    """The programs of franz-go, sarama and kafka-go with Go."""
    binaries = HERE / ".cache" / "bin"
    binaries.mkdir(parents=True, exist_ok=True)
    _run(["go", "build", "-o", f"{binaries}/", "./..."], HERE / "go")


def install_node_packages() -> None:
    """KafkaJS, its codecs and axe-core with npm, unless what is installed is newer than the lock file."""
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
    ("Databases", install_databases),
    ("Java clients", build_java_client),
    ("Apache Kafka's tests", harness.build),
    ("Go clients", build_go_clients),
    ("KafkaJS and axe-core", install_node_packages),
)


def main() -> int:
    """Run every step; a step that fails is named at the end and makes the exit status 1."""
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
    # what these programs print goes to stderr, so that the steps stay readable
    subprocess.run(command, cwd=directory, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
