"""A replica with transactions moves to another log directory."""

import asyncio
from pathlib import Path

import pytest

from barnabas.log.partition_log import PartitionLog
from barnabas.log.segments.transaction_index import AbortedTransaction
from barnabas.replication import log_dir_moves
from barnabas.wire.records.control import EndTransactionMarker
from support.images import new_topic
from support.loop import on_loop
from support.nodes import RunningNode, running_node
from support.transactions import transactional

#: Markers are written years after the records; without this each would roll a segment.
CONFIGS = {"segment.ms": str(2**62), "internal.segment.bytes": "700"}


def write(node: RunningNode, producer_id: int, sequence: int, *values: bytes) -> None:
    partition = node.partition("t")
    verification = partition.log.producers.start_verification(producer_id, 0, sequence, bumps_epochs=False)
    partition.append_as_leader(transactional(producer_id, sequence, *values), -1, verification)


def end(node: RunningNode, producer_id: int, *, commit: bool) -> None:
    node.partition("t").append_transaction_marker(EndTransactionMarker(producer_id, 0, 0, commit, 1_000), 0)


def known(log: PartitionLog) -> tuple[object, ...]:
    """Return the last stable offset, the producers, and the result of a read at each offset."""
    stable_offset = log.last_stable_offset
    aborted: list[list[AbortedTransaction]] = []
    for offset in range(stable_offset):
        found = log.read(offset, 1 << 20, stable_offset, min_one_batch=True)
        aborted.append(log.producers.aborted_transactions(offset, found, log.log_end_offset))
    return stable_offset, log.producers.states.active, aborted


@on_loop
async def test_transactions_are_copied_and_continue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_dir_moves, "STEP_BYTES_MAX", 300)
    monkeypatch.setattr("barnabas.base.throttle.WAIT_MS_MAX", 2)
    dirs = ",".join(str(tmp_path / name) for name in "ab")
    async with running_node(tmp_path / "a", log_dirs=dirs) as node:
        await node.create(new_topic("t", configs=CONFIGS))
        for sequence in range(6):
            for producer_id in (9, 10):
                write(node, producer_id, sequence, b"x" * 50)
            end(node, 9, commit=sequence % 2 == 0)
        end(node, 10, commit=False)
        write(node, 9, 6, b"open")
        before = known(node.partition("t").log)
        other = next(each for each in node.log_manager.directories if each.path.name == "b")
        moves = node.broker.log_dir_moves
        moves.alter(node.partition("t"), other)
        verification = node.partition("t").log.producers.start_verification(11, 0, 0, bumps_epochs=False)
        while moves._moves:
            await asyncio.sleep(0.001)
        log = node.partition("t").log
        assert log.directory.parent.name == "b"
        assert known(log) == before
        node.partition("t").append_as_leader(transactional(11, 0, b"verified before"), -1, verification)
        write(node, 9, 7, b"still open")
        end(node, 9, commit=False)
        end(node, 11, commit=True)
        assert log.last_stable_offset == log.log_end_offset
