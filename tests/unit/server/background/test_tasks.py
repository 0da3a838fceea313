import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas.log.checkpoints import RECOVERY_POINT_FILE, read_offsets
from barnabas.log.files import REMOVAL_RETRY_MS
from barnabas.metadata.configs import BROKER_CONFIGS
from barnabas.metadata.decision import Decision
from barnabas.metadata.topic_deletion import TopicToDelete, decide_delete
from barnabas.net.connections import ConnectionLimits, Connections
from barnabas.server.background import tasks as module
from barnabas.server.background.tasks import TICK_MS, BackgroundTasks
from barnabas.wire.errors import ErrorCode, KafkaError
from support.batches import NOW_MS, batch
from support.images import new_topic
from support.loop import in_virtual_time, on_loop
from support.nodes import RunningNode, running_node
from support.waiting import reached

DELAY_MS = 60_000  #: file.delete.delay.ms, as by default


@asynccontextmanager
async def running_tasks(tmp_path: Path, **config: str) -> AsyncIterator[tuple[RunningNode, BackgroundTasks]]:
    async with running_node(tmp_path, **config) as node:
        connections = Connections(
            node.clock, frame_bytes_max=100, limits=ConnectionLimits(9), idle_ms_max=1000
        )
        keeper = BackgroundTasks(
            node.broker.dynamic_config,
            node.clock,
            node.log_manager,
            node.broker.replicas,
            connections,
            node.broker.flusher,
            node.broker.quotas,
            node.broker.client_telemetry.instances,
        )
        yield node, keeper
        await keeper.stop()


def produce(node: RunningNode, topic: str, *values: bytes, **options: Any) -> None:
    """Write a segment of one batch for each value."""
    for value in values:
        node.partition(topic).append_as_leader(batch(value, **options), 1)
        node.partition(topic).log.roll()


def recovery_points(tmp_path: Path) -> list[int]:
    return list(read_offsets(tmp_path / RECOVERY_POINT_FILE).values())


def files_of(tmp_path: Path, topic: str) -> list[str]:
    return sorted(path.name for path in (tmp_path / f"{topic}-0").iterdir() if ".log" in path.suffixes)


def log_file(offset: int, suffix: str = "") -> str:
    return f"{offset:020}.log{suffix}"


@on_loop
async def test_old_segments_are_deleted_and_their_files_after_the_delay(tmp_path: Path) -> None:
    async with running_tasks(tmp_path) as (node, keeper):
        await node.create(new_topic("t", configs={"retention.ms": "1000"}), new_topic("kept"))
        produce(node, "t", b"a", b"b")
        produce(node, "kept", b"a")
        node.clock.advance(1001)
        await keeper.delete_old_segments()
        assert node.partition("t").log.log_start_offset == 2
        assert node.partition("kept").log.log_start_offset == 0
        doomed = [log_file(0, ".deleted"), log_file(1, ".deleted"), log_file(2)]
        assert files_of(tmp_path, "t") == doomed
        node.clock.advance(DELAY_MS - 1)
        await keeper.tick()
        assert files_of(tmp_path, "t") == doomed
        node.clock.advance(1)
        await keeper.tick()
        assert files_of(tmp_path, "t") == [log_file(2)]


@on_loop
async def test_others_are_served_while_partitions_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LOOKED_AT_COUNT", 2)
    async with running_tasks(tmp_path) as (node, keeper):
        await node.create(new_topic("t", 6))
        work = asyncio.create_task(keeper.expire_producers())
        for _ in range(3):
            await asyncio.sleep(0)
            assert not work.done()
        await work


@on_loop
async def test_a_file_that_cannot_be_removed_is_retried_without_delaying_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warned: list[dict[str, object]] = []

    class Log:
        def warning(self, event: str, **fields: object) -> None:
            warned.append(fields)

    monkeypatch.setattr(module, "_log", Log())
    async with running_tasks(tmp_path) as (node, keeper):
        await node.create(new_topic("t", configs={"retention.ms": "1000"}))
        produce(node, "t", b"a", b"b")
        node.clock.advance(1001)
        await keeper.delete_old_segments()
        stuck = tmp_path / "t-0" / log_file(0, ".deleted")
        stuck.unlink()
        stuck.mkdir()  # which unlink cannot remove
        node.clock.advance(DELAY_MS)
        await keeper.tick()
        assert files_of(tmp_path, "t") == [log_file(0, ".deleted"), log_file(2)]
        assert warned == [{"files_count": 1, "first": str(stuck), "why": "Is a directory"}]
        stuck.rmdir()
        stuck.touch()
        node.clock.advance(REMOVAL_RETRY_MS - 1)
        await keeper.tick()
        assert stuck.exists()
        node.clock.advance(1)
        await keeper.tick()
        assert files_of(tmp_path, "t") == [log_file(2)]


@on_loop
async def test_compacted_topics_are_kept_except_for_deleted_records(tmp_path: Path) -> None:
    async with running_tasks(tmp_path) as (node, keeper):
        configs = {"cleanup.policy": "compact", "retention.ms": "1"}
        await node.create(new_topic("t", configs=configs))
        produce(node, "t", b"a", b"b", key=b"k")
        node.clock.advance(10_000)
        await keeper.delete_old_segments()
        assert files_of(tmp_path, "t") == [log_file(offset) for offset in range(3)]
        node.partition("t").delete_records(1)
        await keeper.delete_old_segments()
        assert files_of(tmp_path, "t") == [log_file(0, ".deleted"), log_file(1), log_file(2)]


@on_loop
async def test_a_failing_disk_does_not_delay_retention_on_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dirs = ",".join(str(tmp_path / name) for name in "ab")
    async with running_tasks(tmp_path / "a", log_dirs=dirs) as (node, keeper):
        for topic in ("first", "second"):
            await node.create(new_topic(topic, configs={"retention.ms": "1000"}))
            produce(node, topic, b"a", b"b")
        node.clock.advance(1001)
        first, second = (node.partition(topic).log for topic in ("first", "second"))
        monkeypatch.setattr(first.local, "remove_first", broken)
        await keeper.delete_old_segments()
        assert "Input/output error" in str(first.failure)
        assert second.log_start_offset == 2


def broken(*arguments: object) -> None:
    raise OSError(5, "Input/output error")


@on_loop
async def test_a_deleted_topic_is_removed_from_disk_after_the_delay(tmp_path: Path) -> None:
    async with running_tasks(tmp_path) as (node, keeper):
        await node.create(new_topic("t"))
        await delete(node, "t")
        assert len(list(tmp_path.glob("t-0.*-delete"))) == 1
        node.clock.advance(DELAY_MS)
        await keeper.tick()
        assert list(tmp_path.glob("t-0*")) == []


async def delete(node: RunningNode, topic: str) -> None:
    await node.broker.metadata.write(lambda image: decide_delete(image, [TopicToDelete(topic)]))


@on_loop
async def test_logs_are_flushed_when_due(tmp_path: Path) -> None:
    async with running_tasks(tmp_path) as (node, keeper):
        await node.create(new_topic("t", configs={"flush.ms": "500"}), new_topic("never"))
        for topic in ("t", "never"):
            node.partition(topic).append_as_leader(batch(b"a"), 1)
        node.clock.advance(499)
        await keeper.tick()
        assert node.partition("t").log.recovery_point == 0
        node.clock.advance(1)
        await keeper.tick()
        assert node.partition("t").log.recovery_point == 1
        assert node.partition("never").log.recovery_point == 0
        assert node.broker.flusher.flushes_count == 1


@on_loop
async def test_checkpoints_are_written(tmp_path: Path) -> None:
    async with running_tasks(tmp_path) as (node, keeper):
        await node.create(new_topic("t"))
        produce(node, "t", b"a", b"b")
        await keeper.checkpoint()
        assert "t 0 2" in (tmp_path / "replication-offset-checkpoint").read_text()


@on_loop
async def test_idle_producers_expire(tmp_path: Path) -> None:
    async with running_tasks(tmp_path, producer_id_expiration_ms="1000") as (node, keeper):
        await node.create(new_topic("t"))
        produce(node, "t", b"a", producer_id=5, producer_epoch=0, base_sequence=0, timestamp_ms=NOW_MS)
        node.clock.advance(999)
        await keeper.expire_producers()
        assert len(node.partition("t").log.producers.states.active) == 1
        node.clock.advance(10)
        await keeper.expire_producers()
        assert node.partition("t").log.producers.states.active == []


@on_loop
async def test_idle_producers_expire_after_the_present_setting(tmp_path: Path) -> None:
    async with running_tasks(tmp_path) as (node, keeper):
        await node.create(new_topic("t"))
        produce(node, "t", b"a", producer_id=5, producer_epoch=0, base_sequence=0, timestamp_ms=NOW_MS)
        node.clock.advance(10)
        change = BROKER_CONFIGS.put("", {"producer.id.expiration.ms": "5"})
        await node.broker.metadata.write(lambda image: Decision(None, (change,)))
        await keeper.expire_producers()
        assert node.partition("t").log.producers.states.active == []


@on_loop
async def test_idle_connections_are_closed(tmp_path: Path) -> None:
    class Idle:
        active_ms, listener, client_host, is_busy = 0, "A", "host", False

        def has_read(self) -> bool:
            return False

        closed = False

        def close(self, why: str) -> None:
            self.closed = True

        def abort(self) -> None:
            raise AssertionError

    async with running_tasks(tmp_path) as (node, keeper):
        idle = Idle()
        idle.active_ms = node.clock.monotonic_ms() - 1001
        keeper._connections.add(idle)
        await keeper.tick()
        assert idle.closed


# When


class Quiet:
    """A configuration with chosen intervals, and tasks that only record that they run."""

    def __init__(self, **intervals: int) -> None:
        self.intervals = {key.replace("_", "."): value for key, value in intervals.items()}

    @property
    def current(self) -> "Quiet":
        return self

    def integer(self, key: str) -> int:
        return self.intervals.get(key, 10**9)


def quiet_keeper(**intervals: int) -> BackgroundTasks:
    nothing: Any = None
    config: Any = Quiet(**intervals)
    return BackgroundTasks(config, nothing, nothing, nothing, nothing, nothing, nothing, nothing)


def record(keeper: BackgroundTasks, name: str, fail: Callable[[], None] = lambda: None) -> list[float]:
    """Return the times in seconds at which a task runs."""
    times: list[float] = []

    async def task() -> None:
        times.append(round(asyncio.get_running_loop().time(), 3))
        fail()

    task.__name__ = name
    setattr(keeper, name, task)
    return times


@in_virtual_time
async def test_each_task_runs_in_its_own_interval() -> None:
    keeper = quiet_keeper(
        log_retention_check_interval_ms=5000,
        log_initial_task_delay_ms=700,
        log_flush_offset_checkpoint_interval_ms=4000,
        log_flush_start_offset_checkpoint_interval_ms=3000,
        producer_id_expiration_check_interval_ms=6000,
    )
    names = ("delete_old_segments", "checkpoint", "tick", "expire_producers")
    times = {name: record(keeper, name) for name in names}
    keeper.start()
    await asyncio.sleep(10.5)
    await keeper.stop()
    await asyncio.sleep(10)
    assert times == {
        "delete_old_segments": [0.7, 5.7],
        "checkpoint": [3, 6, 9],
        "tick": [TICK_MS / 1000 * count for count in range(1, 11)],
        "expire_producers": [6],
    }


@pytest.mark.parametrize(
    "error", [OSError("disk"), KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "disk"), ValueError("ours")]
)
def test_a_task_that_fails_is_logged_and_retried(error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    logged: list[str] = []

    class Log:
        def exception(self, event: str, task: str) -> None:
            logged.append(task)

    monkeypatch.setattr(module, "_log", Log())

    def fail() -> None:
        raise error

    @in_virtual_time
    async def scenario() -> None:
        keeper = quiet_keeper(log_retention_check_interval_ms=1000, log_initial_task_delay_ms=1000)
        times = record(keeper, "delete_old_segments", fail)
        record(keeper, "tick")
        keeper.start()
        await asyncio.sleep(3.5)
        await keeper.stop()
        assert times == [1, 2, 3]
        assert logged == ["delete_old_segments"] * 3

    scenario()


@on_loop
async def test_long_gone_clients_are_removed(tmp_path: Path) -> None:
    async with running_tasks(tmp_path) as (node, keeper):
        quotas = node.broker.quotas
        quotas.of("User:a", "c")
        instances = node.broker.client_telemetry.instances
        instances.fetch_subscription(b"i" * 16, {})
        node.clock.advance(3_600_000)
        await keeper.expire_clients()
        assert quotas.statistics()["clients_count"] == 0
        assert instances.statistics()["instances_count"] == 0


@pytest.mark.parametrize(
    ("counts", "total_max", "bound"),
    [([5, 5, 5], 15, 5), ([1, 2, 100], 13, 10), ([10, 10], 10, 5), ([], 7, 7), ([3], 2, 2), ([0, 9], 4, 4)],
)
def test_a_fair_limit_takes_from_the_largest(counts: list[int], total_max: int, bound: int) -> None:
    assert module.fair_bound(counts, total_max) == bound
    assert sum(min(count, bound) for count in counts) <= total_max


@on_loop
async def test_beyond_the_total_limit_the_partitions_with_most_producers_evict_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PRODUCER_IDS_MAX", 8)
    async with running_tasks(tmp_path) as (node, keeper):
        await node.create(new_topic("many"), new_topic("few"))
        for topic, count in (("many", 10), ("few", 2)):
            for producer_id in range(count):
                records = batch(b"v", producer_id=producer_id, producer_epoch=0, base_sequence=0)
                node.partition(topic).append_as_leader(records, 1)
        await keeper.bound_producers()
        left = {topic: node.partition(topic).log.producers.states.active for topic in ("many", "few")}
    assert [each.producer_id for each in left["many"]] == [4, 5, 6, 7, 8, 9]
    assert len(left["few"]) == 2


@on_loop
async def test_a_truncation_is_followed_by_a_checkpoint_of_the_lower_recovery_point(tmp_path: Path) -> None:
    async with running_tasks(tmp_path) as (node, keeper):
        await node.create(new_topic("t"))
        keeper.start()
        produce(node, "t", b"a", b"b")
        log = node.partition("t").log
        log.flush()
        await keeper.checkpoint()
        assert recovery_points(tmp_path) == [2]
        keeper.truncated(log, log.truncate_to(1))
        await reached(lambda: recovery_points(tmp_path) == [1])
        node.clock.advance(DELAY_MS)
        await keeper.tick()
        assert files_of(tmp_path, "t") == [log_file(0), log_file(1)]


@on_loop
async def test_runs_that_may_wait_for_the_metadata_store_are_cancelled_by_a_stop(tmp_path: Path) -> None:
    async def wait() -> None:
        started.set()
        await asyncio.Event().wait()

    started = asyncio.Event()
    async with running_tasks(tmp_path) as (_, keeper):
        keeper.repeat(wait, 1000, 0, is_cancelled=True)
        await started.wait()
        await asyncio.wait_for(keeper.stop(), 10)
