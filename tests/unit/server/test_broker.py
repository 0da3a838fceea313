import asyncio
import random
import socket
import threading
from pathlib import Path

import pytest

from barnabas.base import disk
from barnabas.base.clock import ManualClock
from barnabas.config.definition import ConfigError
from barnabas.log.log_directory import LogDirectoryError
from barnabas.metadata.brokers import BROKERS, SESSIONS
from barnabas.metadata.store import StoreError
from barnabas.metadata.topic_creation import decide_create
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.metadata.writer import MetadataWriter
from barnabas.net.listener import StartError
from barnabas.server import broker as module
from barnabas.server.background.expiration import Expiration
from barnabas.server.broker import BrokerServer, start_broker
from barnabas.server.coordinators import Coordinators
from barnabas.server.stores import STORE_FILE
from barnabas.wire.errors import KafkaError
from support.batches import batch
from support.images import RULES, new_topic
from support.loop import on_loop, turns
from support.memory_store import MemoryStore
from support.nodes import config_of
from support.waiting import reached

CLEAN = ".kafka_cleanshutdown"


async def started(directory: Path, **config: str) -> BrokerServer:
    return await start_broker(config_of(directory, **config), clock=ManualClock(), rng=random.Random(1))


async def create(server: BrokerServer, name: str) -> None:
    node = server.broker
    topics = [new_topic(name)]
    await node.metadata.write(
        lambda image: decide_create(image, topics, RULES, node.rng, validate_only=False)
    )


async def delete(server: BrokerServer, name: str) -> None:
    await server.broker.metadata.write(lambda image: decide_delete(image, [TopicToDelete(name)]))


@on_loop
async def test_a_broker_registers_its_addresses(tmp_path: Path) -> None:
    server = await started(tmp_path, broker_rack="r1")
    [(name, host, port)] = server.addresses
    registered = server.broker.image.brokers["1"]
    assert registered.endpoints == ((name, host, port),)
    assert (registered.rack, len(registered.log_dirs), registered.fenced) == ("r1", 1, False)
    assert server.metrics_port is None
    await server.stop()


@on_loop
async def test_a_broker_that_cannot_follow_the_metadata_any_more_fails_and_stops(tmp_path: Path) -> None:
    server = await started(tmp_path)

    async def fail(*_: object) -> None:
        raise ValueError("this change cannot be applied")

    server.broker.metadata.listen(fail)
    with pytest.raises(
        KafkaError, match=r"cannot follow the metadata any more.*this change cannot be applied"
    ):
        await create(server, "t")
    assert server.failed.is_set()
    await server.stop()


@on_loop
async def test_a_deleted_topic_is_forgotten_after_its_renamed_logs_are_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = await started(tmp_path)
    await create(server, "t")
    flushed: list[tuple[bool, int]] = []

    def flush(path: Path) -> None:
        is_renamed = not (path / "t-0").exists()
        flushed.append((is_renamed, len(server.broker.image.deleted_topics)))

    monkeypatch.setattr(disk, "sync_path", flush)
    await delete(server, "t")
    await reached(lambda: not server.broker.image.deleted_topics)
    assert (True, 1) in flushed
    await server.stop()


@on_loop
async def test_a_broker_coordinates_nothing_before_it_has_registered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    registered: list[bool] = []
    start = Coordinators.start

    def watched_start(coordinators: Coordinators, metadata: MetadataWriter) -> None:
        registered.append("1" in metadata.image.brokers)
        start(coordinators, metadata)

    monkeypatch.setattr(Coordinators, "start", watched_start)
    server = await started(tmp_path)
    assert registered == [True]
    await server.stop()


@on_loop
async def test_written_records_survive_a_clean_stop(tmp_path: Path) -> None:
    server = await started(tmp_path)
    await create(server, "t")
    server.broker.replicas.partition("t", 0).append_as_leader(batch(b"a"), 1)
    cluster_id = server.broker.cluster_id
    await server.stop()
    assert (tmp_path / CLEAN).exists()
    again = await started(tmp_path)
    assert again.broker.cluster_id == cluster_id
    assert again.broker.replicas.partition("t", 0).log.high_watermark == 1
    await again.stop()


@on_loop
async def test_written_records_survive_a_kill_without_a_clean_shutdown_marker(
    tmp_path: Path,
) -> None:
    server = await started(tmp_path)
    await create(server, "t")
    server.broker.replicas.partition("t", 0).append_as_leader(batch(b"a"), 1)
    await server.kill()
    assert not (tmp_path / CLEAN).exists()
    again = await started(tmp_path)
    assert again.broker.replicas.partition("t", 0).log.log_end_offset == 1
    await again.stop()


@on_loop
async def test_a_deleted_topic_expires_once_its_logs_are_removed(tmp_path: Path) -> None:
    server = await started(tmp_path)
    await create(server, "t")
    await delete(server, "t")
    revision = server.broker.image.revision
    assert len(server.broker.image.deleted_topics) == 1
    await server.broker.metadata.wait_for_revision(revision + 1)
    assert len(server.broker.image.deleted_topics) == 0
    await server.stop()


@on_loop
async def test_topics_on_disk_are_recovered_when_the_store_is_lost(tmp_path: Path) -> None:
    server = await started(tmp_path)
    await create(server, "t")
    topic, cluster_id = server.broker.image.topics["t"], server.broker.cluster_id
    await server.stop()
    for path in tmp_path.glob(f"{STORE_FILE}*"):
        path.unlink()
    again = await started(tmp_path)
    assert again.broker.image.topics["t"] == topic
    assert again.broker.cluster_id == cluster_id
    await again.stop()


@on_loop
async def test_producer_ids_are_not_reused_after_the_store_was_lost(
    tmp_path: Path,
) -> None:
    server = await started(tmp_path)
    await create(server, "t")
    first = await server.broker.producer_ids.next()
    sent = batch(b"a", producer_id=first, producer_epoch=0, base_sequence=0)
    server.broker.replicas.partition("t", 0).append_as_leader(sent, 1)
    await server.stop()
    for path in tmp_path.glob(f"{STORE_FILE}*"):
        path.unlink()
    again = await started(tmp_path)
    assert await again.broker.producer_ids.next() > first
    await again.stop()


@on_loop
async def test_a_port_in_use_leaves_nothing_open(tmp_path: Path) -> None:
    threads = set(threading.enumerate())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(StartError, match=f"Cannot listen on 127.0.0.1:{port}"):
            await started(tmp_path, listeners=f"PLAINTEXT://127.0.0.1:{port}")
    await turns()
    left = set(threading.enumerate()) - threads
    assert not [thread.name for thread in left if not thread.name.startswith("asyncio")]
    server = await started(tmp_path)
    await server.stop()


@pytest.mark.parametrize("key", ["listeners", "barnabas_metrics_listener"])
@on_loop
async def test_a_failed_start_keeps_the_clean_shutdown_markers(tmp_path: Path, key: str) -> None:
    server = await started(tmp_path)
    await create(server, "t")
    server.broker.replicas.partition("t", 0).append_as_leader(batch(b"a"), 1)
    await server.stop()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        given = address if "metrics" in key else f"PLAINTEXT://{address}"
        with pytest.raises(StartError):
            await started(tmp_path, **{key: given})
    assert (tmp_path / CLEAN).exists()
    again = await started(tmp_path)
    log = again.broker.replicas.partition("t", 0).log
    assert log.recovery_point == 1, "nothing was recovered"
    assert not (tmp_path / CLEAN).exists()
    await again.stop()


@on_loop
async def test_a_directory_in_use_is_rejected(tmp_path: Path) -> None:
    first = await started(tmp_path)
    with pytest.raises(StoreError, match=str(tmp_path)):
        await started(tmp_path)
    elsewhere = {"log_dirs": str(tmp_path / "other"), "metadata_log_dir": str(tmp_path)}
    with pytest.raises(StoreError, match=str(tmp_path)):
        await started(tmp_path, **elsewhere)
    assert first.addresses
    await first.stop()


@on_loop
async def test_another_nodes_directory_is_rejected(tmp_path: Path) -> None:
    server = await started(tmp_path)
    await server.stop()
    with pytest.raises(LogDirectoryError, match="node"):
        await started(tmp_path, node_id="2", broker_id="2")


@on_loop
async def test_an_unusable_directory_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StartError, match=r"file/data cannot be written to: .*--data"):
        await started(tmp_path / "file" / "data")


@on_loop
async def test_the_store_is_readable_for_the_brokers_user_only(tmp_path: Path) -> None:
    server = await started(tmp_path)
    await create(server, "t")
    modes = {path.name: path.stat().st_mode & 0o077 for path in tmp_path.glob(f"{STORE_FILE}*")}
    await server.stop()
    assert modes[STORE_FILE] == 0
    assert set(modes.values()) == {0}


@on_loop
async def test_the_store_may_be_elsewhere(tmp_path: Path) -> None:
    server = await started(tmp_path / "logs", metadata_log_dir=str(tmp_path / "meta"))
    await server.stop()
    assert (tmp_path / "meta" / STORE_FILE).exists()
    assert not (tmp_path / "logs" / STORE_FILE).exists()


@on_loop
async def test_a_listener_without_certificate_is_rejected_before_anything_is_opened(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must be set for listener SSL"):
        await started(tmp_path / "new", listeners="SSL://127.0.0.1:0", security_inter_broker_protocol="SSL")
    assert not (tmp_path / "new").exists()


@on_loop
async def test_metrics_cover_the_brokers_state(tmp_path: Path) -> None:
    server = await started(tmp_path, barnabas_metrics_listener="127.0.0.1:0")
    await create(server, "t")
    server.broker.replicas.partition("t", 0).append_as_leader(batch(b"a", b"b"), 1)
    reader, writer = await asyncio.open_connection("127.0.0.1", server.metrics_port)
    writer.write(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n")
    text = (await reader.read()).decode()
    writer.close()
    lines = set(text.splitlines())
    assert lines >= {
        "barnabas_partitions 1.0",
        "barnabas_partition_leaders 1.0",
        "barnabas_fetch_sessions 0.0",
        'barnabas_log_end_offset{partition="0",topic="t"} 2.0',
        'barnabas_high_watermark{partition="0",topic="t"} 2.0',
    }
    await server.stop()


@on_loop
async def test_stopping_is_idempotent(tmp_path: Path) -> None:
    server = await started(tmp_path)
    await server.stop()
    await server.stop()


@on_loop
async def test_coordinators_write_nothing_while_the_logs_count_as_cleanly_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await started(tmp_path)).stop()
    assert (tmp_path / CLEAN).exists()
    start, is_clean = Coordinators.start, []

    def note_and_start(coordinators: Coordinators, metadata: MetadataWriter) -> None:
        is_clean.append((tmp_path / CLEAN).exists())
        start(coordinators, metadata)

    monkeypatch.setattr(Coordinators, "start", note_and_start)
    server = await started(tmp_path)
    await server.stop()
    assert is_clean == [False]


@on_loop
async def test_a_start_that_fails_does_not_join_the_cluster(tmp_path: Path) -> None:
    store = MemoryStore()
    with socket.create_server(("127.0.0.1", 0)) as taken:
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        config = config_of(tmp_path, barnabas_metrics_listener=address)
        with pytest.raises(StartError, match="Metrics cannot be served"):
            await start_broker(config, store=store, clock=ManualClock(), rng=random.Random(1))
    assert not {BROKERS.key("1"), SESSIONS.key("1")} & store.items.keys()


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Expiration, "expire_history"),
        (Expiration, "empty_trash"),
        (Expiration, "remove_delegation_tokens"),
        (MetadataWriter, "record_left_out"),
    ],
)
def test_a_stop_does_not_wait_for_background_tasks_that_write_to_the_metadata_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    @on_loop
    async def stop() -> None:
        async def wait(_: object) -> None:
            started_task.set()
            await asyncio.Event().wait()

        started_task = asyncio.Event()
        monkeypatch.setattr(owner, name, wait)
        server = await started(tmp_path, delegation_token_expiry_check_interval_ms="1")
        await started_task.wait()
        await asyncio.wait_for(server.stop(), 30)

    monkeypatch.setattr(module, "EXPIRATION_INTERVAL_MS", 1)
    monkeypatch.setattr(module, "LIMITER_WINDOW_MS", 1)
    stop()
