"""`barnabas groups` against a fake coordinator."""

import json

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.wire.errors import ErrorCode
from barnabas.wire.records.record import Record, encode_batch
from unit.cli.conftest import Run
from unit.client.fake_broker import FakeBroker
from unit.client.fake_coordinator import GROUP, FakeCoordinator

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


@pytest.fixture
def coordinator(broker: FakeBroker) -> FakeCoordinator:
    """Write ten records to each of two partitions of a topic; a group has committed offsets within them."""
    broker.create("t", 2)
    for partition in (0, 1):
        records = [Record(0, 1_000 * number, None, b"v") for number in range(10)]
        broker.append("t", partition, encode_batch(records))
    coordinator = FakeCoordinator(broker)
    coordinator.offsets = {T0: 4}
    return coordinator


def lines(run: Run, *arguments: str) -> list[list[str]]:
    result = run("groups", *arguments)
    assert result.exit_code == 0, result.output
    return [line.split() for line in result.stdout.splitlines()]


def test_groups_and_their_members_are_listed(coordinator: FakeCoordinator, run: Run) -> None:
    assert lines(run, "list")[1] == [GROUP, "classic", "consumer", "Stable"]
    shown = lines(run, "describe", GROUP)
    assert shown[1] == [GROUP, "classic", "Stable", "range", "1", "1"]
    assert shown[4] == [GROUP, "m1", "reader", "/10.0.0.1", "t", "t-0"]
    [described] = json.loads(run("groups", "describe", GROUP, "--json").stdout)
    assert described["members"][0]["assignment"] == [{"topic": "t", "partition": 0}]


def test_offsets_are_listed_with_lags(coordinator: FakeCoordinator, run: Run) -> None:
    shown = lines(run, "offsets", GROUP)[1:]
    assert shown[0] == ["t-0", "4", "10", "6", "m"]
    assert shown[1:] == [["t-1", "-", "10", "unknown"], ["total", "at", "least", "6"]]
    coordinator.offsets = {T1: 10, TopicPartition("gone", 0): 5}
    shown = lines(run, "offsets", GROUP)[1:]
    assert shown[0] == ["gone-0", "5", "unknown", "unknown", "m"]
    assert shown[-1] == ["total", "unknown"]
    coordinator.offsets = {T0: 4, T1: 9}
    assert lines(run, "offsets", GROUP)[-1] == ["total", "7"]


def test_a_partition_without_a_commit_has_no_lag_in_json(coordinator: FakeCoordinator, run: Run) -> None:
    shown = json.loads(run("groups", "offsets", GROUP, "t:1", "--json").stdout)
    nothing = {"committed": None, "leader_epoch": None, "metadata": None}
    assert shown == [{"topic": "t", "partition": 1, **nothing, "end": 10, "lag": None}]


@pytest.mark.parametrize(
    ("options", "offsets"),
    [
        (["--to-earliest"], {T0: 0}),
        (["--to-latest"], {T0: 10}),
        (["--to-offset", "3"], {T0: 3}),
        (["--to-offset", "99"], {T0: 10}),
        (["--to-time", "2500"], {T0: 3}),
        (["--to-time", "99000"], {T0: 10}),
        (["t", "--to-offset", "3"], {T0: 3, T1: 3}),
        (["t:1", "--to-latest"], {T0: 4, T1: 10}),
        (["--to-latest", "--dry-run"], {T0: 4}),
    ],
)
def test_offsets_are_set(
    coordinator: FakeCoordinator, run: Run, options: list[str], offsets: dict[TopicPartition, int]
) -> None:
    assert lines(run, "reset-offsets", GROUP, *options)[0] == ["partition", "offset"]
    assert coordinator.offsets == offsets


def test_exactly_one_reset_target_must_be_named(coordinator: FakeCoordinator, run: Run) -> None:
    assert run("groups", "reset-offsets", GROUP).exit_code == 2
    assert run("groups", "reset-offsets", GROUP, "--to-latest", "--to-offset", "3").exit_code == 2


def test_without_committed_offsets_topics_must_be_named(coordinator: FakeCoordinator, run: Run) -> None:
    coordinator.offsets.clear()
    result = run("groups", "reset-offsets", GROUP, "--to-latest")
    assert (result.exit_code, "specify the topics" in result.stderr) == (3, True)


def test_offsets_of_an_active_group_are_not_reset(coordinator: FakeCoordinator, run: Run) -> None:
    coordinator.error = ErrorCode.UNKNOWN_MEMBER_ID
    result = run("groups", "reset-offsets", GROUP, "--to-latest")
    assert (result.exit_code, "stop the members of the group first" in result.stderr) == (1, True)
    result = run("groups", "delete", GROUP)
    assert (result.exit_code, "stop the members of the group first" in result.stderr) == (1, True)


def test_the_json_of_a_group_that_is_not_deleted_has_the_message(
    coordinator: FakeCoordinator, run: Run
) -> None:
    coordinator.error = ErrorCode.NON_EMPTY_GROUP
    [found] = json.loads(run("groups", "delete", GROUP, "--json").stdout)
    assert found == {
        "group": GROUP,
        "error": "NON_EMPTY_GROUP",
        "message": f"group '{GROUP}' is not deleted",
    }


def test_groups_and_offsets_are_deleted(coordinator: FakeCoordinator, run: Run) -> None:
    coordinator.state = "Empty"
    assert lines(run, "delete-offsets", GROUP, "t:0") == [["t-0:", "deleted"]]
    assert coordinator.offsets == {}
    assert lines(run, "delete", GROUP) == [[f"{GROUP}:", "deleted"]]
    assert json.loads(run("groups", "delete", GROUP, "--json").stdout) == [{"group": GROUP, "error": None}]


def test_a_missing_group_is_exit_code_3(coordinator: FakeCoordinator, run: Run) -> None:
    result = run("groups", "describe", "gone")
    assert (result.exit_code, "barnabas groups list" in result.stderr) == (3, True)
