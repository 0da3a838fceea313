"""The load generators: raw requests and groups of consumers (Go), and Kafka's own kafka-producer-perf-test (Java)."""

import functools
import json
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path

from interop import candidate, reference

HERE = Path(__file__).resolve().parent
CACHE = HERE / ".cache"
TIMEOUT_S = 600.0
JVM_OPTIONS = ["-Xmx512M", "-server", "-XX:+UseG1GC"]  # as Kafka's script starts its perf test


@functools.cache
def build(name: str) -> Path:
    """Build the load generator of that name once; return its path."""
    CACHE.mkdir(exist_ok=True)
    subprocess.run(["go", "build", "-o", CACHE / name, "."], cwd=HERE / name, check=True)
    return CACHE / name


class LoadFailed(Exception):
    """The load generator ended early; the message is its own."""


def raw(command: str, bootstrap: str, **options: str | float) -> dict[str, float]:
    """Run the raw load generator and return its measurements; ``value_bytes`` stands for -value-bytes.

    Raises:
        LoadFailed: the broker returned an error or closed a connection.
    """
    return _generate("loadgen", command, bootstrap, options)


def group(command: str, bootstrap: str, **options: str | float) -> dict[str, float]:
    """Run consumers in groups, or a transactional producer, and return the measurements.

    Raises:
        LoadFailed: a group did not become stable, or could not read; a transaction was not committed.
    """
    return _generate("groupload", command, bootstrap, options)


def _generate(
    generator: str, command: str, bootstrap: str, options: Mapping[str, str | float]
) -> dict[str, float]:
    flags = [f"-{name.replace('_', '-')}={value}" for name, value in options.items()]
    run = [str(build(generator)), command, "-broker", bootstrap, *flags]
    done = subprocess.run(run, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        raise LoadFailed(done.stderr.strip())
    measured: dict[str, float] = json.loads(done.stdout)
    return measured


def administer(bootstrap: str, *arguments: str) -> None:
    """Run an administrative command of Barnabas.

    Raises:
        LoadFailed: the broker returned an error; the message is the command's own.
    """
    command = [candidate.COMMAND, *arguments, "--bootstrap", bootstrap]
    done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)
    if done.returncode:
        raise LoadFailed(done.stderr.strip())


def produce_with_java(
    bootstrap: str, topic: str, count: int, size_bytes: int, *properties: str, config: Path | None = None
) -> float:
    """Produce records at the Java producer's maximum rate, in batches of 64 KiB, with its defaults otherwise.

    Return how many were sent per second.

    :param config: A file of properties, for values with an equals sign.
    """
    command = reference.java(
        *JVM_OPTIONS,
        reference.TOOLS["kafka-producer-perf-test"],
        *["--bootstrap-server", bootstrap, "--topic", topic, "--throughput", "-1"],
        *["--num-records", str(count), "--record-size", str(size_bytes)],
        *["--command-property", "batch.size=65536", "linger.ms=5", *properties],
        *(["--command-config", config] if config else []),
    )
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=TIMEOUT_S)
    [*_, rate] = re.findall(r"([\d.]+) records/sec", done.stdout)
    return float(rate)
