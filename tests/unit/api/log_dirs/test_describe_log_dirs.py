"""DescribeLogDirs: the replicas in each directory."""

import os
from pathlib import Path

import pytest

from barnabas.wire.acls import CLUSTER_NAME, AclOperation
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
)
from support.batches import batch
from support.images import new_topic
from support.log_dirs import Replicas, replicas
from support.loop import on_loop
from support.nodes import RunningNode, running_node


class Forbids:
    """An authorizer that denies DESCRIBE on the cluster."""

    asks = False

    def known(self, principal: str, host: str, operation: AclOperation, kind: object, name: str) -> bool:
        return (operation, name) != (AclOperation.DESCRIBE, CLUSTER_NAME)


def both(directory: Path) -> str:
    return f"{directory / 'a'},{directory / 'b'}"


async def described(
    node: RunningNode, *topics: DescribableLogDirTopic, everything: bool = False
) -> dict[str, Replicas]:
    response = await node.ask(DescribeLogDirsRequest(topics=None if everything else list(topics)))
    assert response.error_code == ErrorCode.NONE
    return replicas(response)


@on_loop
async def test_every_replica_has_its_size(tmp_path: Path) -> None:
    async with running_node(tmp_path, log_dirs=both(tmp_path)) as node:
        await node.create(new_topic("t", 3))
        data = batch(b"1", b"2")
        node.partition("t", 1).append_as_leader(data, 1)
        assert await described(node, everything=True) == {
            "a": {("t", 0): (0, 0, False), ("t", 2): (0, 0, False)},
            "b": {("t", 1): (len(data), 0, False)},
        }


@on_loop
async def test_only_requested_partitions_are_described_and_missing_ones_omitted(tmp_path: Path) -> None:
    async with running_node(tmp_path, log_dirs=both(tmp_path)) as node:
        await node.create(new_topic("t", 3), new_topic("u"))
        asked = [DescribableLogDirTopic("t", [1, 1, 9, -1]), DescribableLogDirTopic("missing", [0])]
        found = await described(node, *asked, DescribableLogDirTopic("u", []))
        assert {path: list(there) for path, there in found.items()} == {"a": [], "b": [("t", 1)]}
        assert await described(node) == {"a": {}, "b": {}}


@pytest.mark.parametrize("version", range(1, 6))
@on_loop
async def test_every_version_returns_its_fields(tmp_path: Path, version: int) -> None:
    async with running_node(tmp_path, cordoned_log_dirs=str(tmp_path)) as node:
        response = await node.ask(DescribeLogDirsRequest(topics=None), version)
        [result] = response.results
        volume = os.statvfs(tmp_path)
        total_bytes = volume.f_blocks * volume.f_frsize
        assert result.log_dir == str(tmp_path)
        assert result.total_bytes == (total_bytes if version >= 4 else -1)
        assert (0 <= result.usable_bytes <= total_bytes) == (version >= 4)
        assert result.is_cordoned == (version >= 5)


@on_loop
async def test_an_offline_directory_has_an_error_and_others_do_not(tmp_path: Path) -> None:
    async with running_node(tmp_path, log_dirs=both(tmp_path)) as node:
        await node.create(new_topic("t", 2))
        node.partition("t", 0).log.take_offline(OSError(5, "Input/output error"))
        first, second = (await node.ask(DescribeLogDirsRequest(topics=None))).results
        assert (first.error_code, first.topics) == (ErrorCode.KAFKA_STORAGE_ERROR, [])
        assert (first.total_bytes, first.usable_bytes) == (-1, -1)
        assert second.error_code == ErrorCode.NONE
        assert [each.name for each in second.topics] == ["t"]


@on_loop
async def test_a_missing_volume_is_a_storage_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(path: Path) -> os.statvfs_result:
        raise FileNotFoundError(2, "No such file or directory", str(path))

    async with running_node(tmp_path) as node:
        with monkeypatch.context() as patch:
            patch.setattr(os, "statvfs", gone)
            [result] = (await node.ask(DescribeLogDirsRequest(topics=None))).results
        assert result.error_code == ErrorCode.KAFKA_STORAGE_ERROR


@on_loop
async def test_a_stray_replica_has_no_lag(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        del node.broker.replicas._partitions["t", 0]
        assert await described(node, everything=True) == {tmp_path.name: {("t", 0): (0, -1, False)}}


@pytest.mark.parametrize("version", [2, 3])
@on_loop
async def test_without_describe_on_the_cluster_there_is_an_error_where_the_version_has_one(
    tmp_path: Path, version: int
) -> None:
    async with running_node(tmp_path) as node:
        node.broker.authorizer = Forbids()  # type: ignore[assignment]
        response = await node.ask(DescribeLogDirsRequest(topics=None), version)
        refused = ErrorCode.CLUSTER_AUTHORIZATION_FAILED if version >= 3 else ErrorCode.NONE
        assert (response.error_code, response.results) == (refused, [])


@on_loop
async def test_a_cordoned_directory_receives_no_new_logs_if_another_can(tmp_path: Path) -> None:
    async with running_node(tmp_path, log_dirs=both(tmp_path), cordoned_log_dirs=str(tmp_path / "a")) as node:
        await node.create(new_topic("t", 4))
        found = await described(node, everything=True)
        assert {path: len(there) for path, there in found.items()} == {"a": 0, "b": 4}
