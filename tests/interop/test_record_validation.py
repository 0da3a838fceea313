"""Valid and invalid batches: Barnabas compared with Apache Kafka's broker and consumer."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.log.log_config import LogConfig
from barnabas.log.record_validation import InvalidRecords
from barnabas.log.validation import validate
from barnabas.wire.errors import KafkaError
from barnabas.wire.records.batch import read_header
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.record import Record
from interop import reference
from support.malformed import NOW_MS
from support.record_bodies import Body, bodies, read_records

EXAMPLES_COUNT = int(os.environ.get("RECORD_EXAMPLES", "500"))
SOURCE = Path(reference.__file__).parent / "reference" / "records" / "Batches.java"
INVALID = "invalid"

#: Timestamps whose difference to the clock overflows in Apache Kafka (docs/differences.md).
TAKEN_BY_KAFKA_MS = NOW_MS - 2**63

#: Data that Apache Kafka's consumer reads and Barnabas rejects (docs/differences.md).
REFUSED_MORE = (
    "a number of more than 32 bits",
    "a number of more than 64 bits",
    "a timestamp of more than 64 bits",
    "offsets are not consecutive",
)


@contextmanager
def kafka(classes: Path) -> Iterator[subprocess.Popen[str]]:
    """Run Apache Kafka's classes, which answer line by line."""
    subprocess.run(["javac", "-cp", f"{reference.fetch()}/*", "-d", classes, SOURCE], check=True)
    command = reference.java(*reference.TOOL_JVM_OPTIONS, "Batches", str(NOW_MS), classes=classes)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield process
        assert process.stdin
        process.stdin.close()


def result_of(batch: memoryview, config: LogConfig) -> str:
    """Return Barnabas's result in the format of `Batches.java`."""
    try:
        validated = validate(memoryview(bytearray(batch)), config, NOW_MS)
    except InvalidRecords as error:
        return "refused:" + ",".join(str(index) for index, _ in error.record_errors)
    except KafkaError:
        return INVALID
    return str(read_header(validated.records).max_timestamp)


def _read(body: Body) -> tuple[list[Record] | None, str]:
    """Return the records, or None and the reason why they cannot be read."""
    try:
        return read_records(body), ""
    except ValueError as error:
        return None, str(error)


def text(record: Record) -> str:
    fields = [str(record.offset), str(record.timestamp_ms), _hex(record.key), _hex(record.value)]
    for name, value in record.headers:
        fields += [name.encode().hex(), _hex(value)]
    return ",".join(fields)


def _hex(field: bytes | None) -> str:
    return "-" if field is None else field.hex()


def test_kafka_accepts_and_reads_what_barnabas_accepts_and_little_that_it_rejects(tmp_path: Path) -> None:
    with kafka(tmp_path) as theirs:
        assert theirs.stdin
        assert theirs.stdout

        @settings(max_examples=EXAMPLES_COUNT, deadline=None, suppress_health_check=list(HealthCheck))
        @given(body=bodies(), codec=st.sampled_from(Compression), is_compacted=st.booleans())
        def compare(body: Body, codec: Compression, is_compacted: bool) -> None:
            config = LogConfig(cleanup_policy=frozenset({"compact" if is_compacted else "delete"}))
            batch = body.batch(codec)
            print(str(is_compacted).lower(), batch.hex(), file=theirs.stdin, flush=True)
            broker, read = theirs.stdout.readline().rstrip("\n").split(" ")
            ours = result_of(batch, config)
            records, why = _read(body)
            if records is None:
                assert ours == INVALID
                assert read == INVALID or why in REFUSED_MORE
            elif all(record.timestamp_ms != TAKEN_BY_KAFKA_MS for record in records):
                assert (broker, read) == (ours, ";".join(map(text, records)))

        compare()
