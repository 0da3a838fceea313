"""Transactions in the log: the same records and markers, written directly, read the same from both brokers.

Transaction verification is disabled on both; coordinators have tests of their own.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from differential.batches import Batch
from differential.brokers import SETTINGS, pair_of_brokers
from differential.budget import EXAMPLES
from differential.sequences import Step
from differential.test_histories import budget, check
from differential.transactions import (
    EVERY_TIME,
    RECORDS,
    beginning,
    delete,
    describe,
    end,
    ending,
    find,
    histories,
    of_transaction,
    read,
    write,
)
from differential.world import Pair, World

UNASKED = SETTINGS | {"transaction.partition.verification.enable": "false"}
A, TINY = ("a", 0), ("tiny", 0)


@pytest.fixture(scope="module")
def without_verification() -> Iterator[Pair]:
    """Run brokers without transaction verification."""
    with (
        tempfile.TemporaryDirectory(prefix="differential-") as home,
        pair_of_brokers(Path(home), UNASKED) as running,
    ):
        yield running


@pytest.fixture
def world(without_verification: Pair) -> Iterator[World]:
    with without_verification.world() as fresh:
        yield fresh


HISTORIES: dict[str, list[Step]] = {
    "a commit": [write(A, of_transaction(0)), end(0, A, commit=True)],
    "an abort": [write(A, of_transaction(0)), end(0, A, commit=False)],
    "an open transaction": [write(A, of_transaction(0)), write(A, Batch(), None)],
    "aborts that overlap": [
        write(A, of_transaction(0)),
        write(A, of_transaction(1)),
        end(0, A, commit=False),
        write(A, of_transaction(2)),
        end(1, A, commit=False),
    ],
    "an abort over many segments": [
        *[write(TINY, of_transaction(producer, count=2)) for producer in (0, 1) for _ in range(8)],
        end(0, TINY, commit=False),
        end(1, TINY, commit=False),
    ],
    "an end of nothing": [end(0, A, commit=False), end(5, A, commit=True)],
    "an end twice": [write(A, of_transaction(0)), end(0, A, commit=True), end(0, A, commit=True)],
    "an end of an older epoch": [write(A, of_transaction(0, epoch=1)), end(0, A, commit=True)],
    "an end of a newer epoch": [
        write(A, of_transaction(0)),
        end(0, A, commit=True, epoch=1),
        write(A, of_transaction(0)),
        write(A, of_transaction(0, epoch=1)),
        write(A, of_transaction(0, epoch=1, restarts=True)),
    ],
    "an older coordinator": [
        end(0, A, commit=True, coordinator_epoch=3),
        end(0, A, commit=True, coordinator_epoch=2),
    ],
    "version 2, with the epoch of the records": [
        write(A, of_transaction(0)),
        end(0, A, commit=True, transaction_version=2),
    ],
    "version 2, with the next epoch": [
        write(A, of_transaction(0)),
        end(0, A, commit=True, epoch=1, transaction_version=2),
        end(0, A, commit=True, epoch=1, transaction_version=2),
    ],
    "version 2, in the last epoch": [
        write(A, of_transaction(0, epoch=32_767)),
        end(0, A, commit=True, epoch=32_767, transaction_version=2),
    ],
    "an unknown partition": [end(0, ("a", 9), ("none", 0), A, commit=True)],
    "plain records in a transaction": [
        write(A, of_transaction(0)),
        write(A, Batch(producer=0), None),
        write(A, Batch(producer=1), None),
    ],
    "a repeated batch": [
        write(A, of_transaction(0)),
        end(0, A, commit=True),
        write(A, of_transaction(0, restarts=True)),
    ],
    "records without a transactional id": [write(A, of_transaction(0), None)],
    "control records": [write(A, Batch(RECORDS, producer=0, flaw="control"))],
    "nothing to end": [(WriteTxnMarkersRequest(markers=[]), 1)],
    "the broker's time": [write(("stamped", 0), of_transaction(0)), end(0, ("stamped", 0), commit=False)],
}


@pytest.mark.parametrize("name", HISTORIES)
def test_a_history_reads_as_from_kafka(world: World, name: str) -> None:
    check(world, beginning() + HISTORIES[name] + ending())


def test_limits_apply_as_in_kafka(world: World) -> None:
    filled = [write(A, of_transaction(0, count=2)) for _ in range(4)]
    check(world, [*beginning(), *filled, end(0, A, commit=False), describe(A)])
    check(world, [read(A, offset, max_bytes=size) for offset in range(9) for size in (0, 1, 100, 250, 1000)])


@settings(budget(max(20, EXAMPLES // 4)))
@given(data=st.data())
def test_random_histories_of_transactions_read_as_from_kafka(
    without_verification: Pair, data: st.DataObject
) -> None:
    steps = data.draw(histories())
    with without_verification.world() as world:
        check(world, beginning() + steps + ending())


def test_a_log_that_starts_within_an_open_transaction(world: World) -> None:
    """Its last stable offset is in the batch in which it starts; read_committed consumers cannot read any further."""
    deleted = [write(A, of_transaction(0, count=2)), write(A, of_transaction(1, count=2)), delete(A, 1)]
    reads = [
        *(read(A, offset, committed=committed) for offset in (*range(7),) for committed in (True, False))
    ]
    finds = [find(A, timestamp) for timestamp in EVERY_TIME]
    check(world, [*beginning(), *deleted, *reads, *finds])
    check(world, [delete(A, 3), *reads, *finds, end(0, A, commit=False), *reads, *finds])
    check(world, [delete(A, -1), *reads, *finds, end(1, A, commit=True), *reads])
