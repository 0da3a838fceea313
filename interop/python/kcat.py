"""kcat as a JSON-lines program: ``python -m interop.python.kcat HOST:PORT``. kcat has no admin commands."""

import json
import re
import subprocess
import sys
import tempfile
from typing import Any

from interop.python.lines import PATIENCE_S, Record, operation, serve

BOOTSTRAP = sys.argv[1]
KEY_END = "\x1f"


class KcatError(Exception):
    """kcat ended with a status other than 0; the message is its output."""


def kcat(*arguments: str) -> str:
    """Run kcat and return its output.

    Raises:
        KcatError: it failed.
    """
    done = subprocess.run(
        ["kcat", "-b", BOOTSTRAP, *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
        check=False,
    )
    if done.returncode:
        raise KcatError(done.stderr)
    return done.stdout


@operation
def metadata(topic: str | None = None) -> object:
    found = json.loads(kcat("-L", "-J", *(["-t", topic] if topic else [])))
    for each in found["topics"]:
        if "error" in each:
            raise KcatError(each["error"])
    return {
        "brokers": [broker["name"] for broker in found["brokers"]],
        "topics": {
            each["topic"]: sorted(p["partition"] for p in each["partitions"]) for each in found["topics"]
        },
    }


@operation
def produce(topic: str, partition: int, records: list[Record], codec: str, idempotent: bool) -> object:
    for record in records:
        _produce_one(
            record,
            *["-P", "-t", topic, "-p", str(partition), "-z", codec],
            *["-X", f"enable.idempotence={str(idempotent).lower()}"],
        )
    end = _offset(topic, partition, -1)  # kcat prints no offsets; no other client writes to the topic
    return list(range(end - len(records), end))


def _produce_one(record: Record, *arguments: str) -> None:
    """Run kcat once per record: its headers, and the meaning of an empty field, apply to a whole run."""
    key_options = [] if record.key is None else ["-K", KEY_END]
    null_options = ["-Z"] if record.value is None else []
    headers = [part for name, value in record.headers for part in ("-H", f"{name}={value}")]
    line = (record.value or "") if record.key is None else f"{record.key}{KEY_END}{record.value or ''}"
    with tempfile.NamedTemporaryFile("w", encoding="utf-8") as file:
        file.write(line + "\n")
        file.flush()
        kcat(*arguments, *key_options, *null_options, *headers, "-l", file.name)


@operation
def consume(topic: str, partition: int, count: int, timestamp: int | None = None) -> list[Record]:
    start = "beginning" if timestamp is None else f"s@{timestamp}"
    output = kcat("-C", "-J", "-t", topic, "-p", str(partition), "-o", start, "-c", str(count))
    return [_record(json.loads(line)) for line in output.splitlines()]


def _record(message: dict[str, Any]) -> Record:
    names_and_values = message.get("headers", [])
    headers = list(zip(names_and_values[::2], names_and_values[1::2], strict=True))
    return Record(message["key"], message["payload"], headers, message["ts"], message["offset"])


@operation
def offsets(topic: str, partition: int) -> object:
    return {"earliest": _offset(topic, partition, -2), "latest": _offset(topic, partition, -1)}


@operation
def offset_at(topic: str, partition: int, timestamp: int) -> object:
    found = _offset(topic, partition, timestamp)
    return None if found < 0 else found


def _offset(topic: str, partition: int, timestamp: int) -> int:
    output = kcat("-Q", "-t", f"{topic}:{partition}:{timestamp}")
    found = re.search(r"offset (-?\d+)", output)
    if found is None:
        raise KcatError(output)
    return int(found[1])


def name_of(error: Exception) -> str:
    """Return the reason that kcat prints: librdkafka's text for the broker's error."""
    return str(error).strip().splitlines()[-1] if str(error) else type(error).__name__


if __name__ == "__main__":
    serve(name_of)
