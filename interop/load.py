"""Programs of real clients that produce at a steady rate, and a check of the log against what they report."""

import contextlib
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, TopicPartition

from interop import reference
from interop.clients import BINARIES, HERE

READ_TIMEOUT_S = 30.0

#: How each program is started; HOST:PORT TOPIC NAME RATE follow.
PRODUCERS: Mapping[str, Sequence[str | Path]] = {
    "java": reference.java(
        *reference.TOOL_JVM_OPTIONS, "barnabas.interop.Load", classes=HERE / "java" / "target" / "classes"
    ),
    "librdkafka": (sys.executable, "-m", "interop.python.confluent_load"),
    "franz-go": (BINARIES / "load",),
}


@dataclass(frozen=True)
class Acknowledged:
    """A record that was acknowledged to its producer."""

    value: str
    partition: int
    offset: int
    sent_ms: int  #: since the epoch, like the next
    acknowledged_ms: int


class Producing:
    """A producer's program while it runs; what it prints is in a file."""

    def __init__(self, name: str, bootstrap: str, topic: str, rate: int, directory: Path) -> None:
        self.name = name
        self._output = directory / f"{name}.acknowledged"
        command = [*map(str, PRODUCERS[name]), bootstrap, topic, name, str(rate)]
        with self._output.open("wb") as output, (directory / f"{name}.log").open("ab") as errors:
            self.process = subprocess.Popen(
                command, cwd=HERE.parent, stdin=subprocess.PIPE, stdout=output, stderr=errors
            )

    @property
    def count(self) -> int:
        """The number of records that have been acknowledged or have failed."""
        return self._output.read_bytes().count(b"\n")

    def stop(self, timeout_s: float) -> int:
        """Send no more, and wait until all is acknowledged; return the exit status.

        Raises:
            subprocess.TimeoutExpired: the program hangs.
        """
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        return self.process.wait(timeout_s)

    def results(self) -> tuple[list[Acknowledged], list[str]]:
        """Return the acknowledged records, and the errors of others."""
        acknowledged, errors = [], []
        for line in self._output.read_text().splitlines():
            number, *fields = line.split(" ")
            try:
                partition, offset, sent_ms, acknowledged_ms = map(int, fields)
            except ValueError:
                errors.append(f"{self.name}: {line}")
            else:
                value = f"{self.name} {number}"
                acknowledged.append(Acknowledged(value, partition, offset, sent_ms, acknowledged_ms))
        return acknowledged, errors


@contextlib.contextmanager
def producing(bootstrap: str, topic: str, rate: int, directory: Path) -> Iterator[list[Producing]]:
    """Run all producers; those that still run in the end are killed."""
    with contextlib.ExitStack() as stack:
        programs = []
        for name in PRODUCERS:
            programs.append(Producing(name, bootstrap, topic, rate, directory))
            stack.callback(programs[-1].process.wait)
            stack.callback(programs[-1].process.kill)
        yield programs


@contextlib.contextmanager
def _reading(bootstrap: str) -> Iterator[Consumer]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "checker",
            "enable.auto.commit": False,
            "check.crcs": True,
        }
    )
    try:
        yield consumer
    finally:
        consumer.close()


def end_offsets(bootstrap: str, topic: str) -> dict[int, int]:
    """Return where each partition ends."""
    with _reading(bootstrap) as consumer:
        partitions = consumer.list_topics(topic, READ_TIMEOUT_S).topics[topic].partitions
        return {
            index: consumer.get_watermark_offsets(TopicPartition(topic, index), READ_TIMEOUT_S)[1]
            for index in partitions
        }


def read_topic(bootstrap: str, topic: str) -> dict[tuple[int, int], str]:
    """Return all values of a topic by partition and offset."""
    ends = end_offsets(bootstrap, topic)
    values: dict[tuple[int, int], str] = {}
    with _reading(bootstrap) as consumer:
        consumer.assign([TopicPartition(topic, index, OFFSET_BEGINNING) for index in ends])
        while len(values) < sum(ends.values()):
            message = consumer.poll(READ_TIMEOUT_S)
            if message is None:
                raise TimeoutError(f"{len(values)} of {sum(ends.values())} records of {topic} were read")
            if message.error() is not None:
                raise KafkaException(message.error())
            values[message.partition(), message.offset()] = message.value().decode()
    return values


def violations(acknowledged: Sequence[Acknowledged], log: Mapping[tuple[int, int], str]) -> list[str]:
    """Return what is wrong with a log: lost, duplicate and reordered records."""
    found = [
        f"lost: {record}; the log has {log.get((record.partition, record.offset))!r}"
        for record in acknowledged
        if log.get((record.partition, record.offset)) != record.value
    ]
    offsets: dict[str, list[tuple[int, int]]] = defaultdict(list)
    last: dict[tuple[int, str], int] = {}
    for (partition, offset), value in sorted(log.items()):
        offsets[value].append((partition, offset))
        producer, _, number = value.partition(" ")
        if int(number) < last.get((partition, producer), -1):
            found.append(f"reordered: {value} is at {partition}-{offset}")
        last[partition, producer] = int(number)
    found += [f"duplicate: {value} is at {where}" for value, where in offsets.items() if len(where) > 1]
    return found


def longest_stall_s(acknowledged: Sequence[Acknowledged]) -> float:
    """Return the longest time from the sending of a record to its acknowledgement."""
    return max((each.acknowledged_ms - each.sent_ms for each in acknowledged), default=0) / 1000
