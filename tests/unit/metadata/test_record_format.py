"""The format of the records in the metadata store."""

import asyncio
import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest

from barnabas.metadata.cluster import decide_form
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.record_format import FORMAT, KEY, RECORD_FORMAT, UnknownFormat
from barnabas.metadata.record_type import split_key
from barnabas.metadata.registry import record_types
from barnabas.metadata.store import Commit, Item, StoreChange
from barnabas.metadata.writer import MetadataWriter
from support.images import replayed
from support.loop import on_loop
from support.memory_store import MemoryStore
from support.waiting import reached

#: A record of each type, with a value in each field: as JSON, by key of the store.
RECORDS: dict[str, Any] = json.loads((Path(__file__).parent / f"format_{FORMAT}.json").read_text())

NEWER = Item(RECORD_FORMAT.key(KEY), str(FORMAT + 1).encode(), 1)


def defaults_of(value: Any) -> list[str]:
    """Return the fields of a record that have their default."""
    if not is_dataclass(value):
        return []
    return [
        field.name for field in fields(value) if field.init and getattr(value, field.name) == field.default
    ]


def test_a_change_of_records_is_noticed() -> None:
    """It needs a new format, and a file of its records, unless an older version may lose what is new."""
    assert {split_key(key)[0] for key in RECORDS} == set(record_types())
    for key, plain in RECORDS.items():
        record_type = record_types()[split_key(key)[0]]
        value = record_type.decode(json.dumps(plain).encode())
        assert json.loads(record_type.put("", value).value or b"") == plain, key
        assert not defaults_of(value), f"{key}: give each field a value, so that none is overlooked"


def test_a_new_store_has_the_present_format() -> None:
    image = replayed(MetadataImage(), decide_form(MetadataImage().cluster, bytes(16), None, b"secret"))
    assert image.table(RECORD_FORMAT)[KEY] == FORMAT


def test_a_store_that_another_version_has_formed_keeps_its_format() -> None:
    formed = replayed(MetadataImage(), decide_form(MetadataImage().cluster, bytes(16), None))
    decision = decide_form(formed.cluster, bytes(16), None, b"secret")
    assert [change.key for change in decision.changes] == ["cluster/self"]


def test_a_newer_format_is_noticed_before_records_are_misread() -> None:
    misread = Item("acls/x", b'{"a": "newer form"}', 1)
    with pytest.raises(
        UnknownFormat, match=f"has records of format {FORMAT + 1}, and .* knows formats up to {FORMAT}"
    ):
        MetadataImage.load(1, [misread, NEWER])


def test_records_of_an_unknown_type_are_an_error() -> None:
    with pytest.raises(UnknownFormat, match="has records of type 'riddles'"):
        MetadataImage.load(1, [Item("riddles/x", b"{}", 1)])
    with pytest.raises(UnknownFormat, match="has records of type 'riddles'"):
        MetadataImage().replay(Commit(1, (StoreChange("riddles/x", b"1"),)))


@on_loop
async def test_a_broker_that_runs_stops_at_a_newer_format() -> None:
    store = MemoryStore()
    writer, failed = MetadataWriter(store), asyncio.Event()
    writer.on_failure = failed.set
    await writer.start()
    await store.commit({}, (StoreChange(NEWER.key, NEWER.value),))
    await reached(failed.is_set)
    await writer.stop()
