"""A table has every record once although its service is killed again and again.

`make soak-tables` runs more rounds.
"""

import os
import random
import threading
from pathlib import Path
from time import monotonic

import pytest

from barnabas.tables.settings import TableFormat, TableSettings
from barnabas.testing import EmbeddedBroker
from support.confluent_transactions import transact
from support.source_rows import consumed_rows
from support.table_service import table_service
from support.tables import FORMAT_IDS, FORMATS, expected_row, plain_row, settings_of, table_rows
from support.waiting import until

ROUNDS = int(os.environ.get("TABLE_ROUNDS", "2"))
CONFIGS = {
    "barnabas.table.target.lag.ms": "100",
    "barnabas.table.target.file.bytes": "65536",
    "segment.ms": "604800000",
}


@pytest.mark.parametrize("kind", FORMATS, ids=FORMAT_IDS)
def test_every_record_is_in_the_table_once_after_kills(
    broker: EmbeddedBroker, topic: str, tmp_path: Path, kind: TableFormat
) -> None:
    """Two services keep the table; the processes of both are killed at random moments while records are written."""
    rng = random.Random(f"{kind.value} {ROUNDS}")
    settings = settings_of(topic, kind, tmp_path / "lake" / topic)
    configs = {**CONFIGS, "barnabas.table.format": kind.value}
    arguments = ["--topic", topic, "--location", str(tmp_path / "lake")]
    for key, value in configs.items():
        arguments += ["--set", f"{key}={value}"]
    writer = Writer(broker, topic)
    with (
        table_service(broker.bootstrap, tmp_path / "first", *arguments) as first,
        table_service(broker.bootstrap, tmp_path / "second", *arguments) as second,
        writer,
    ):
        until(lambda: count_rows(settings) > 0)
        for number in range(ROUNDS):
            wait_for_rows(settings, count_rows(settings), monotonic() + rng.random() * 2)
            (first, second)[number % 2].kill_workers()
        writer.stop()
        expected = [expected_row(row) for row in consumed_rows(broker.bootstrap, topic, committed=True)]
        until(lambda: count_rows(settings) >= len(expected))
    assert [plain_row(row) for row in table_rows(settings)] == expected


def wait_for_rows(settings: TableSettings, rows_before: int, end_s: float) -> None:
    """Wait until there are more rows, and at least until a time."""
    until(lambda: count_rows(settings) > rows_before and monotonic() > end_s)


class Writer:
    """Writes records and transactions, committed and aborted, until it is stopped."""

    def __init__(self, broker: EmbeddedBroker, topic: str) -> None:
        self._broker = broker
        self._topic = topic
        self._is_stopped = threading.Event()
        self._thread = threading.Thread(target=self._write)

    def stop(self) -> None:
        self._is_stopped.set()
        self._thread.join()

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _write(self) -> None:
        number = 0
        while not self._is_stopped.is_set():
            for _ in range(50):
                self._broker.produce(self._topic, f"{number}", key=f"{number % 7}", partition=number % 2)
                number += 1
            transact(self._broker, self._topic, f"{self._topic}-{number}", "ca")


def count_rows(settings: TableSettings) -> int:
    try:
        return len(table_rows(settings))
    except Exception:  # there is no table yet
        return 0
