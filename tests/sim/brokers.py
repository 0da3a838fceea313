"""A broker of the simulation: started, killed and deprived of power."""

import asyncio
import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

from barnabas.base.ids import TopicPartition
from barnabas.config.load import load_broker_config
from barnabas.log import log_directory
from barnabas.log.partition_log import PartitionLog
from barnabas.metadata.image import MetadataImage
from barnabas.server import metadata_recovery
from barnabas.server.broker import BrokerServer, start_broker
from sim.clock import SimulatedClock
from sim.disk import SimulatedDisks
from sim.loop import Node, SimulatedLoop
from sim.store import SimulatedStore

HOST = "127.0.0.1"
FIRST_PORT = 9_092

SETTINGS = {
    "auto.create.topics.enable": "false",  # a topic in the trash must not be created again
    "group.consumer.heartbeat.interval.ms": "1000",
    "group.consumer.min.heartbeat.interval.ms": "1000",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "6000",
    "group.initial.rebalance.delay.ms": "0",
    "log.segment.delete.delay.ms": "10000",
    "num.recovery.threads.per.data.dir": "1",
    "offsets.topic.num.partitions": "2",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    "transaction.state.log.num.partitions": "2",
}


class SimulatedBroker:
    """One machine with a disk, on which a broker process runs, or does not."""

    def __init__(
        self,
        loop: SimulatedLoop,
        disks: SimulatedDisks,
        store: SimulatedStore,
        node_id: int,
        settings: Mapping[str, str],
    ) -> None:
        self._loop = loop
        self._disks = disks
        self._store = store
        self._settings = settings
        self.node_id = node_id
        self.name = f"broker-{node_id}"
        self.clock = SimulatedClock(loop)
        self.port = FIRST_PORT + node_id
        self.node: Node | None = None
        self.server: BrokerServer | None = None
        self.starts_count = 0
        self._over: asyncio.Future[None] | None = None  #: done when the process has ended

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def is_running(self) -> bool:
        return self.server is not None

    async def start(self) -> None:
        """Start the process, and wait until it serves."""
        assert self.node is None
        self.node = Node(self.name)
        self.starts_count += 1
        settings = {
            "node.id": str(self.node_id),
            "listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "log.dirs": str(self._disks.directory(self.name)),
            **SETTINGS,
            **self._settings,
        }
        loaded = load_broker_config(
            settings=[f"{key}={value}" for key, value in settings.items()], environment={}
        )
        node, over = self.node, self._loop.create_future()
        self._over = over
        starting = self._loop.run_on(
            self.node,
            self._loop.create_task,
            start_broker(
                loaded.config,
                clock=self.clock,
                rng=random.Random(self._loop.rng.random()),
                store=self._store,
            ),
        )
        await asyncio.wait({starting, over}, return_when=asyncio.FIRST_COMPLETED)
        if not node.is_alive:
            return
        try:
            self.server = starting.result()
        except BaseException:
            self.kill()
            raise

    async def stop(self) -> None:
        """Stop the process in order."""
        assert self.node is not None
        assert self.server is not None
        await self._loop.run_on(self.node, self._loop.create_task, self.server.stop())
        self._end()

    def pause(self) -> Node:
        """Stop the process as SIGSTOP does; return what continues."""
        assert self.node is not None
        node = self.node
        node.is_paused = True
        self._store.end_silent_sessions(node, lambda: node.is_paused)
        return node

    def isolate_from_store(self) -> None:
        """Let the process not reach the store; its session may end."""
        self._store.fail(self.name)
        if self.node is not None:
            self._store.end_silent_sessions(self.node, lambda: not self._store.is_reachable(self.name))

    def kill(self) -> None:
        """End the process at once; what it has written stays in the page cache."""
        if self.node is None:
            return
        self.node.is_alive = False
        self._store.end_sessions(self.node)
        self._loop.network.remove(self.node)
        unlock_directories(self._disks.directory(self.name))
        self._end()

    def lose_power(self) -> None:
        """End the process, and lose what was not flushed to the disk."""
        self.kill()
        self._disks.lose_power(self.name)

    def _end(self) -> None:
        self.node = None
        self.server = None
        if self._over is not None and not self._over.done():
            self._over.set_result(None)


def unlock_directories(path: Path) -> None:
    """Release the lock of a log directory, as the operating system does when a process ends."""
    log_directory._locked_here.discard(path.absolute())


@contextmanager
def noted_restorations(noted: list[str]) -> Iterator[None]:
    """Note if a broker takes the metadata for a restored backup: the store never goes back."""
    is_older = metadata_recovery._is_older_than_logs

    def note(image: MetadataImage, known_revision: int, logs: Mapping[TopicPartition, PartitionLog]) -> bool:
        if older := is_older(image, known_revision, logs):
            noted.append(f"the metadata at revision {image.revision} is taken for a restored backup")
        return older

    with mock.patch.object(metadata_recovery, "_is_older_than_logs", note):
        yield
