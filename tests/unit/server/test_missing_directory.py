"""A log directory is missing when a broker starts, as after a disk was replaced."""

import random
import shutil
import socket
from pathlib import Path

import pytest

from barnabas.log.log_directory import LogDirectory
from barnabas.metadata.topic_creation import decide_create
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration
from barnabas.metadata.unregistration import decide_unregister
from barnabas.metadata.writer import MetadataWriter
from barnabas.net.listener import StartError
from barnabas.server.broker import BrokerServer, start_broker
from barnabas.wire.errors import ErrorCode, KafkaError
from support.batches import batch
from support.images import LISTENER, RULES, manually_assigned, new_topic, register_brokers
from support.loop import on_loop
from support.memory_store import MemoryStore
from support.nodes import config_of
from support.waiting import reached


async def started(tmp_path: Path, names: str = "ab", **config: str) -> BrokerServer:
    directories = ",".join(str(tmp_path / name) for name in names)
    return await start_broker(
        config_of(tmp_path, log_dirs=directories, metadata_log_dir=str(tmp_path), **config)
    )


async def lose_directory(tmp_path: Path, names: str = "ab") -> int:
    """Stop a broker that has a topic in its log directories, and remove b; return the partition that was there."""
    server = await started(tmp_path, names)
    node = server.broker
    await node.metadata.write(
        lambda image: decide_create(image, [new_topic("t", len(names))], RULES, node.rng, validate_only=False)
    )
    for index in range(len(names)):
        node.replicas.partition("t", index).append_as_leader(batch(b"x"), 1)
    await server.stop()
    [lost] = [index for index in range(len(names)) if (tmp_path / "b" / f"t-{index}").exists()]
    shutil.rmtree(tmp_path / "b")
    return lost


def state_of(server: BrokerServer, index: int) -> PartitionRegistration:
    image = server.broker.image
    return image.partition(image.topics["t"], index)


async def check_lost(server: BrokerServer, lost: int) -> None:
    """Check that the lost partition has no leader, and that its new log is empty."""
    assert (state_of(server, lost).leader, state_of(server, lost).isr) == (NO_LEADER, ())
    count = server.broker.image.topics["t"].partition_count
    assert [state_of(server, index).leader for index in range(count) if index != lost] == [1] * (count - 1)
    await reached(lambda: server.broker.replicas.find("t", lost) is not None)
    with pytest.raises(KafkaError) as refused:
        server.broker.replicas.partition("t", lost).check_leader()
    assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER


@on_loop
async def test_what_was_in_a_missing_directory_has_no_leader(tmp_path: Path) -> None:
    lost = await lose_directory(tmp_path)
    server = await started(tmp_path)
    await check_lost(server, lost)
    await server.stop()
    again = await started(tmp_path)
    await check_lost(again, lost)
    await again.stop()


@on_loop
async def test_a_start_that_failed_does_not_hide_that_a_directory_is_missing(tmp_path: Path) -> None:
    lost = await lose_directory(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(StartError):
            await started(tmp_path, listeners=f"{LISTENER}://127.0.0.1:{port}")
    server = await started(tmp_path)
    await check_lost(server, lost)
    await server.stop()


@on_loop
async def test_a_directory_that_was_offline_meanwhile_does_not_hide_that_another_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lost = await lose_directory(tmp_path, "abc")

    def leftovers(directory: LogDirectory) -> list[Path]:
        if directory.path.name == "c":
            raise OSError(5, "Input/output error")
        return []

    with monkeypatch.context() as patched:
        patched.setattr(LogDirectory, "leftovers", leftovers)
        server = await started(tmp_path, "abc")
        await server.stop()
    server = await started(tmp_path, "abc")
    await check_lost(server, lost)
    await server.stop()
    again = await started(tmp_path, "abc")
    assert len(again.broker.image.brokers["1"].log_dirs) == 3
    await again.stop()


@pytest.mark.parametrize("keeps_disk", [True, False])
@on_loop
async def test_a_broker_that_returns_after_its_unregistration_leads_only_what_it_still_has(
    tmp_path: Path, keeps_disk: bool
) -> None:
    store = MemoryStore()
    directory, rng = tmp_path / "logs", random.Random(0)
    server = await start_broker(config_of(directory), store=store)
    await register_brokers(server.broker.metadata, 2)  # so that the first one is fenced when it stops
    await server.broker.metadata.write(
        lambda image: decide_create(image, [manually_assigned("t", [1])], RULES, rng, validate_only=False)
    )
    server.broker.replicas.partition("t", 0).append_as_leader(batch(b"x"), 1)
    await server.stop()
    admin = MetadataWriter(store)
    await admin.start()
    await admin.write(lambda image: decide_unregister(image, 1))
    assert "1" not in admin.image.brokers
    await admin.stop()
    if not keeps_disk:
        shutil.rmtree(directory)
    server = await start_broker(config_of(directory), store=store)
    assert server.broker.replicas.partition("t", 0).log.log_end_offset == keeps_disk
    assert state_of(server, 0).leader == (1 if keeps_disk else NO_LEADER)
    await server.stop()
