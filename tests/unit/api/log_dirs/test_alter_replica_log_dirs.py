"""AlterReplicaLogDirs: invalid moves, and moves that start."""

from pathlib import Path

import pytest

from barnabas.wire.acls import CLUSTER_NAME, AclOperation
from barnabas.wire.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from support.batches import batch
from support.images import new_topic
from support.log_dirs import codes, move, partitions, replicas
from support.loop import on_loop, turns
from support.nodes import RunningNode, running_node

EVERYTHING = DescribeLogDirsRequest(topics=None)
LONGEST = "x" * 214  #: leaves no room for "-0." and the rest of a future replica's directory name


class Forbids:
    """An authorizer that denies ALTER on the cluster."""

    asks = False

    def known(self, principal: str, host: str, operation: AclOperation, kind: object, name: str) -> bool:
        return (operation, name) != (AclOperation.ALTER, CLUSTER_NAME)


def both(directory: Path) -> str:
    return f"{directory / 'a'},{directory / 'b'}"


async def moved(node: RunningNode) -> None:
    """Wait until no move is in progress."""
    while tasks := list(node.broker.log_dir_moves._tasks.values()):
        await tasks[0]


@pytest.mark.parametrize("version", [1, 2])
@on_loop
async def test_a_replica_moves_with_its_records(tmp_path: Path, version: int) -> None:
    async with running_node(tmp_path, log_dirs=both(tmp_path)) as node:
        await node.create(new_topic("t", 2))
        data = batch(b"1", b"2")
        node.partition("t").append_as_leader(data, 1)
        assert codes(await node.ask(move(tmp_path / "b", "t", 0), version)) == {("t", 0): "NONE"}
        assert replicas(await node.ask(EVERYTHING)) == {
            "a": {("t", 0): (len(data), 0, False)},
            "b": {("t", 1): (0, 0, False), ("t", 0): (0, 2, True)},
        }
        await moved(node)
        assert replicas(await node.ask(EVERYTHING)) == {
            "a": {},
            "b": {("t", 1): (0, 0, False), ("t", 0): (len(data), 0, False)},
        }
        log = node.partition("t").log
        assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (0, 2, 2)
        assert log.directory == tmp_path / "b" / "t-0"
        assert sorted(path.name for path in (tmp_path / "b").glob("t-*")) == ["t-0", "t-1"]


@pytest.mark.parametrize(
    ("path", "topic", "partition", "code"),
    [
        ("/nowhere", "t", 0, "LOG_DIR_NOT_FOUND"),
        ("", "t", 0, "LOG_DIR_NOT_FOUND"),
        ("{}/b/", "t", 0, "LOG_DIR_NOT_FOUND"),
        ("b", "t", 0, "LOG_DIR_NOT_FOUND"),
        ("/nowhere", "missing", 0, "LOG_DIR_NOT_FOUND"),
        ("{}/b", "missing", 0, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("{}/b", "t", 9, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("{}/b", "t", -1, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("{}/b", LONGEST, 0, "INVALID_TOPIC_EXCEPTION"),
        ("/nowhere", LONGEST, 0, "INVALID_TOPIC_EXCEPTION"),
        ("{}/b", LONGEST[1:], 0, "UNKNOWN_TOPIC_OR_PARTITION"),
        ("{}/a", "t", 0, "NONE"),
        ("{}/c", "t", 0, "INVALID_REPLICA_ASSIGNMENT"),
        ("{}/c", "missing", 0, "INVALID_REPLICA_ASSIGNMENT"),
    ],
)
@on_loop
async def test_invalid_moves_are_errors_and_others_start(
    tmp_path: Path, path: str, topic: str, partition: int, code: str
) -> None:
    dirs = f"{both(tmp_path)},{tmp_path / 'c'}"
    async with running_node(tmp_path, log_dirs=dirs, cordoned_log_dirs=str(tmp_path / "c")) as node:
        await node.create(new_topic("t", 3))
        request = move(path.format(tmp_path), topic, partition)
        request.dirs += move(tmp_path / "b", "t", 2).dirs
        assert codes(await node.ask(request)) == {(topic, partition): code, ("t", 2): "NONE"}
        await moved(node)
        found = partitions(await node.ask(EVERYTHING))
        assert found == {("t", 0): ["a"], ("t", 1): ["b"], ("t", 2): ["b"]}


@on_loop
async def test_the_last_move_of_a_duplicate_partition_applies(tmp_path: Path) -> None:
    async with running_node(tmp_path, log_dirs=both(tmp_path)) as node:
        await node.create(new_topic("t"))
        requested_topics = [
            AlterReplicaLogDir(str(tmp_path / directory), [AlterReplicaLogDirTopic("t", [0, 0])])
            for directory in ("b", "nowhere", "a")
        ]
        assert codes(await node.ask(AlterReplicaLogDirsRequest(requested_topics))) == {("t", 0): "NONE"}
        assert partitions(await node.ask(EVERYTHING)) == {("t", 0): ["a"]}


@on_loop
async def test_a_partition_that_does_not_exist_yet_is_created_in_the_requested_directory(
    tmp_path: Path,
) -> None:
    async with running_node(tmp_path, log_dirs=both(tmp_path)) as node:
        answer = codes(await node.ask(move(tmp_path / "b", "new", 0, 1)))
        assert set(answer.values()) == {"UNKNOWN_TOPIC_OR_PARTITION"}
        await node.create(new_topic("new", 3))
        found = partitions(await node.ask(EVERYTHING))
        assert found == {("new", 0): ["b"], ("new", 1): ["b"], ("new", 2): ["a"]}


@on_loop
async def test_a_replica_on_another_broker_is_not_available_here(tmp_path: Path) -> None:
    async with running_node(tmp_path, log_dirs=both(tmp_path)) as node:
        await node.create(new_topic("t"))
        replicas_of_node = node.broker.replicas
        del replicas_of_node._partitions["t", 0]
        assert codes(await node.ask(move(tmp_path / "b", "t", 0))) == {("t", 0): "REPLICA_NOT_AVAILABLE"}


@on_loop
async def test_moves_to_from_or_beside_an_offline_directory_are_errors(tmp_path: Path) -> None:
    dirs = f"{both(tmp_path)},{tmp_path / 'c'}"
    async with running_node(tmp_path, log_dirs=dirs) as node:
        await node.create(new_topic("t", 3))
        node.partition("t", 0).log.take_offline(OSError(5, "Input/output error"))
        asked = [("a", 1), ("b", 0), ("c", 1), ("b", 1)]
        answers = [codes(await node.ask(move(tmp_path / path, "t", index))) for path, index in asked]
        assert [list(answer.values()) for answer in answers] == [
            ["KAFKA_STORAGE_ERROR"],
            ["KAFKA_STORAGE_ERROR"],
            ["KAFKA_STORAGE_ERROR"],
            ["NONE"],
        ]
        await turns()
        assert partitions(await node.ask(EVERYTHING)) == {("t", 1): ["b"], ("t", 2): ["c"]}


@on_loop
async def test_moves_need_alter_on_the_cluster(tmp_path: Path) -> None:
    async with running_node(tmp_path, log_dirs=both(tmp_path)) as node:
        await node.create(new_topic("t"))
        node.broker.authorizer = Forbids()  # type: ignore[assignment]
        answer = codes(await node.ask(move(tmp_path / "b", "t", 0)))
        assert answer == {("t", 0): "CLUSTER_AUTHORIZATION_FAILED"}
        assert partitions(await node.ask(EVERYTHING)) == {("t", 0): ["a"]}
