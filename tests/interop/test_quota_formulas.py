"""Throttle times of our formulas equal those of Apache Kafka's own classes, millisecond by millisecond."""

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from barnabas.quotas.rate import Rate, Windows
from barnabas.quotas.token_bucket import TokenBucket
from interop import reference

SOURCE = Path(reference.__file__).parent / "reference" / "quotas" / "Waits.java"
MEASURES_COUNT, RECORDS_COUNT = 150, 60

Record = Callable[[float, int], int]


def rate(windows: Windows, limit: float, now_ms: int) -> Record:
    return Rate(windows, limit, now_ms).record


def bucket(windows: Windows, limit: float, now_ms: int) -> Record:
    measure = TokenBucket(windows, limit, now_ms)

    def record(value: float, at_ms: int) -> int:
        measure.take(value, at_ms)
        return measure.wait_ms(at_ms)

    return record


@pytest.fixture(scope="module")
def kafkas(tmp_path_factory: pytest.TempPathFactory) -> Callable[[list[str]], list[int]]:
    """Return a function that runs a script with Kafka's classes."""
    classes = tmp_path_factory.mktemp("classes")
    subprocess.run(["javac", "-cp", f"{reference.fetch()}/*", "-d", classes, SOURCE], check=True)

    def run(lines: list[str]) -> list[int]:
        command = reference.java(*reference.TOOL_JVM_OPTIONS, "Waits", classes=classes)
        done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, check=True)
        return [int(line) for line in done.stdout.splitlines()]

    return run


@pytest.mark.parametrize("kind", [rate, bucket], ids=["rate", "bucket"])
def test_every_throttle_time_equals_kafkas(
    kafkas: Callable[[list[str]], list[int]], kind: Callable[[Windows, float, int], Record]
) -> None:
    rng = random.Random(599)
    lines: list[str] = []
    ours: list[int] = []
    for _ in range(MEASURES_COUNT):
        windows = Windows(rng.randint(1, 12), rng.choice([250, 1000, 1000, 3000]))
        limit = rng.choice([0.3, 1.0, 100.0, 12_345.5])
        now_ms = 10**9 + rng.randint(0, 10**6)
        record = kind(windows, limit, now_ms)
        lines.append(f"{kind.__name__} {windows.count} {windows.size_ms} {limit!r}")
        for _ in range(RECORDS_COUNT):
            value = rng.random() * limit * rng.choice([0, 1, 5, windows.count * windows.size_ms / 1000])
            lines.append(f"record {value!r} {now_ms}")
            ours.append(record(value, now_ms))
            size_ms = windows.size_ms
            now_ms += rng.choice([0, 0, 1, size_ms // 3, size_ms - 1, size_ms, 3 * size_ms, 13 * size_ms])
    theirs = kafkas(lines)
    assert len(theirs) == len(ours)
    # sums of floats in another order may round to the neighbouring millisecond
    assert [(kafka, own) for kafka, own in zip(theirs, ours, strict=True) if abs(kafka - own) > 1] == []
    assert any(ours)
