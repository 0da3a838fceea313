"""A process that is killed during a deletion leaves no files behind after its restart."""

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from barnabas.base.ids import uuid_from_text
from support.admin import create, delete, describe, new_topic
from support.batches import batch, values_of
from support.process import BrokerProcess
from support.wire import Wire

#: Without trash, and without other topics.
PLAIN = ("--set", "barnabas.trash.retention.ms=0", "--set", "barnabas.audit.enable=false")


@pytest.fixture
def interrupted(tmp_path: Path) -> Path:
    """Return data as a kill leaves it after a deletion is committed and before any directory is renamed."""
    data = tmp_path / "data"
    with BrokerProcess(data, *PLAIN) as broker, Wire(broker.port) as wire:
        for name in ("kept", "doomed"):
            create(wire, new_topic(name, 3))
            wire.produce(name, batch(b"x"))
        for partition in range(3):
            shutil.copytree(data / f"doomed-{partition}", tmp_path / f"doomed-{partition}")
        delete(wire, "doomed")
        broker.kill()
    for renamed in data.glob("doomed-*-delete"):
        shutil.rmtree(renamed)
    for partition in range(3):
        shutil.move(tmp_path / f"doomed-{partition}", data / f"doomed-{partition}")
    return data


def rename_logs(data: Path, count: int) -> None:
    """Rename `count` logs, as the process did before the kill."""
    for partition in range(count):
        (data / f"doomed-{partition}").rename(data / f"doomed-{partition}.{'0' * 32}-delete")


@pytest.mark.parametrize("renamed_count", range(4))
def test_the_next_start_finishes_the_deletion(interrupted: Path, renamed_count: int) -> None:
    restore_deletion_record(interrupted)
    rename_logs(interrupted, renamed_count)
    with BrokerProcess(interrupted, *PLAIN) as broker, Wire(broker.port) as wire:
        assert [topic.name for topic in describe(wire, everything=True).topics] == ["kept"]
        assert values_of(wire.fetch("kept").records) == [b"x"]
        assert [path for path in interrupted.glob("doomed-*") if not path.name.endswith("-delete")] == []
        create(wire, new_topic("doomed"))
        with Wire(broker.port) as fresh:
            assert values_of(fresh.fetch("doomed").records) == []
        broker.terminate()
    with BrokerProcess(interrupted, *PLAIN) as broker:
        leftovers = [path.name for path in interrupted.glob("doomed-*")]
        assert leftovers == ["doomed-0"]


def restore_deletion_record(data: Path) -> None:
    """Reset the store to where the deletion is committed and not yet expired."""
    topic_id = read_topic_id(data / "doomed-0")
    with sqlite3.connect(data / "metadata.sqlite") as database:
        (revision,) = database.execute("SELECT last FROM revision").fetchone()
        item = (f"deleted_topics/{topic_id.hex()}", json.dumps(["doomed", topic_id.hex()]).encode(), revision)
        database.execute("INSERT OR REPLACE INTO items VALUES (?, ?, ?)", item)
    database.close()


def read_topic_id(directory: Path) -> bytes:
    lines = (directory / "partition.metadata").read_text().splitlines()
    [text] = [line.partition(":")[2].strip() for line in lines if line.startswith("topic_id")]
    return uuid_from_text(text)
