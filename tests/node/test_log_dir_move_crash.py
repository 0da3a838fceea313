"""Replicas that move between log directories while their broker is killed under load: every record is kept, once."""

import random
import time
from pathlib import Path

import pytest

from barnabas.client.blocking import BlockingClient
from barnabas.config.alter_op import AlterConfigOp, OpType
from barnabas.config.config_resource import Resource, ResourceKind
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from support.admin import create, new_topic
from support.load import PARTITIONS_COUNT, WAIT_S, Load, await_acknowledgements, check, stored
from support.log_dirs import codes, move, partitions
from support.process import BrokerProcess
from support.wire import Wire

KILLS_COUNT = 5
#: A size with which a move takes longer than the five rounds.
SLOWLY_BYTES_PER_SECOND, VALUE_BYTES = "100000", 500
THROTTLE = "replica.alter.log.dirs.io.max.bytes.per.second"
EVERYTHING = DescribeLogDirsRequest(topics=None)


def directories_of(broker: BrokerProcess) -> dict[tuple[str, int], list[str]]:
    """Return the directories of the topic's replicas."""
    with Wire(broker.port) as wire:
        return {name: where for name, where in partitions(wire.ask(EVERYTHING)).items() if name[0] == "t"}


def move_all(broker: BrokerProcess, directory: Path) -> None:
    with Wire(broker.port) as wire:
        answers = codes(wire.ask(move(directory, "t", *range(PARTITIONS_COUNT))))
    assert set(answers.values()) == {"NONE"}


def throttle(broker: BrokerProcess, bytes_per_second: str | None) -> None:
    """Limit moves, or remove the limit."""
    operation = OpType.DELETE if bytes_per_second is None else OpType.SET
    alterations = {Resource(ResourceKind.BROKER, ""): [AlterConfigOp(THROTTLE, operation, bytes_per_second)]}
    with BlockingClient(broker.bootstrap) as client:
        assert list(client.admin.alter_configs(alterations).values()) == [None]


def await_moves(broker: BrokerProcess, to: str) -> None:
    expected = {("t", index): [to] for index in range(PARTITIONS_COUNT)}
    deadline_s = time.monotonic() + WAIT_S
    while (found := directories_of(broker)) != expected:
        assert time.monotonic() < deadline_s, found
        time.sleep(0.01)


@pytest.mark.parametrize(
    "flush", [[], ["--set", "log.flush.interval.messages=1"]], ids=["page-cache", "flushed"]
)
@pytest.mark.parametrize("slowly", [True, False], ids=["on-the-way", "around-the-end"])
def test_a_move_continues_after_a_kill_without_loss(tmp_path: Path, slowly: bool, flush: list[str]) -> None:
    rng = random.Random(7)
    settings = ["--set", f"log.dirs={tmp_path / 'a'},{tmp_path / 'b'}", *flush]
    small_segments = new_topic("t", PARTITIONS_COUNT, configs={"segment.bytes": str(1 << 20)})
    broker = BrokerProcess(None, *settings)
    if slowly:
        throttle(broker, SLOWLY_BYTES_PER_SECOND)
    with Wire(broker.port) as wire:
        create(wire, small_segments)
    loads = [Load("producer", broker.bootstrap, VALUE_BYTES)]
    to = "a"
    try:
        await_acknowledgements(loads, 2000)
        for _ in range(KILLS_COUNT):
            await_acknowledgements(loads, 20)
            if not slowly or to == "a":
                to = "b" if to == "a" else "a"
            move_all(broker, tmp_path / to)
            time.sleep(rng.uniform(0.0, 0.5 if slowly else 0.06))
            broker.kill()
            broker = BrokerProcess(None, *settings, port=broker.port)
        await_acknowledgements(loads, 1)
        assert not slowly or any(len(found) == 2 for found in directories_of(broker).values()), (
            "the move was over"
        )
        throttle(broker, None)
        await_moves(broker, to)
        await_acknowledgements(loads, 1)
    finally:
        for load in loads:
            load.stop()
        if broker.process.poll() is None and any(load.failures for load in loads):
            broker.kill()
    assert [load.failures for load in loads] == [[]]
    with broker:
        check(loads, stored(broker.bootstrap))
        assert broker.terminate() == 0
    assert [path.parent.name for path in sorted(tmp_path.glob("*/t-[0-9]"))] == [to] * PARTITIONS_COUNT
