"""The examples of docs/arrow.md run against a broker."""

import json
from collections.abc import Iterator

import pytest

from barnabas.testing import EmbeddedBroker
from support.documents import ADDRESS, ROOT, code_blocks

BLOCKS = code_blocks(ROOT / "docs" / "arrow.md", "python")
#: What some of the examples print.
PRINTED = {"duckdb.sql": "book", 'group_by("customer")': "alice", "register_io_source": "partition"}


@pytest.fixture(scope="module")
def broker() -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker() as running:
        running.create_topic("orders", 2)
        for number, (customer, item) in enumerate([("alice", "book"), ("bob", "pen"), ("alice", "lamp")]):
            value = json.dumps({"item": item, "price": 10 * number})
            running.produce("orders", value, customer, partition=number % 2)
        yield running


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_an_example_runs(broker: EmbeddedBroker, block: str, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, object] = {"__name__": "example"}
    exec(compile(block.replace(ADDRESS, broker.bootstrap), "docs/arrow.md", "exec"), names)
    printed = capsys.readouterr().out
    for part, expected in PRINTED.items():
        assert part not in block or expected in printed
    assert names.get("rows_count", 3) == 3
