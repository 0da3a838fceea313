"""Several real brokers inside a test's process, which replicate their topics."""

import threading
import time
from collections.abc import Callable, Mapping, Sequence, Set
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Self

from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.model import NewTopic
from barnabas.client.blocking import BlockingClient
from barnabas.metadata.broker_lifecycle import live_brokers
from barnabas.metadata.image import MetadataImage
from barnabas.testing.embedded import EmbeddedBroker
from barnabas.testing.faults import OWN_CLIENT_ID
from barnabas.testing.topics import WAIT_MS, EmbeddedKafka
from barnabas.testing.virtual_time import VirtualTime

#: Paused brokers are fenced and slow followers leave the ISR earlier than by default, but not when a busy machine stops
#: for two or three seconds. The internal topics are small.
QUICK_SETTINGS = {
    "broker.session.timeout.ms": "4000",
    "replica.lag.time.max.ms": "4000",
    "replica.fetch.backoff.ms": "50",
    "offsets.topic.num.partitions": "3",
    "transaction.state.log.num.partitions": "3",
}

#: In virtual time brokers are not fenced, and followers do not leave the ISR, because time has moved by one step.
VIRTUAL_TIME_STEP_S = 20.0
VIRTUAL_TIME_SETTINGS = {"broker.session.timeout.ms": "120000", "replica.lag.time.max.ms": "120000"}

#: How long the cluster's own client waits for a broker that is paused.
REQUEST_TIMEOUT_MS = 5_000

#: Pause between two looks at the brokers.
PAUSE_S = 0.002


class EmbeddedCluster(EmbeddedKafka):
    """Brokers with the ids 1, 2, ... over one metadata store; a context manager.

    Topics have as many replicas as there are brokers, up to three, unless a test says otherwise. All methods but
    `start` and `stop` need a running cluster.
    """

    def __init__(
        self,
        brokers: int = 3,
        settings: Mapping[str, str] | None = None,
        racks: Sequence[str] = (),
        *,
        virtual_time: bool = False,
    ) -> None:
        """:param settings: Settings of all brokers, by Kafka's names.
        :param racks: The rack of each broker; none have racks by default.
        :param virtual_time: Allow `advance`. The brokers are a little slower then, and it takes two minutes until those
            that are paused or isolated are fenced.
        """
        super().__init__()
        if brokers < 1:
            message = f"brokers={brokers}: a cluster needs at least one"
            raise ValueError(message)
        if len(racks) not in (0, brokers):
            message = f"racks={racks!r}: give one for each of the {brokers} brokers, or none"
            raise ValueError(message)
        self._racks = tuple(racks)
        self._brokers_count = brokers
        self._virtual_time = VirtualTime(VIRTUAL_TIME_STEP_S) if virtual_time else None
        self._settings = (
            QUICK_SETTINGS | (VIRTUAL_TIME_SETTINGS if virtual_time else {}) | dict(settings or {})
        )
        self._directory: TemporaryDirectory[str] | None = None
        self._brokers: dict[int, EmbeddedBroker] = {}
        self._down: set[int] = set()
        self._paused: dict[int, threading.Event] = {}
        self._isolated: set[int] = set()

    # Starting and stopping

    def start(self) -> Self:
        """Start all brokers, each on a free port.

        :raises ConfigError: For invalid settings.
        """
        assert self._directory is None, "the cluster is running already"
        self._directory = TemporaryDirectory(prefix="barnabas-cluster-", ignore_cleanup_errors=True)
        store = Path(self._directory.name) / "metadata.sqlite"
        try:
            for node_id in range(1, self._brokers_count + 1):
                own = {"node.id": str(node_id), "barnabas.store": f"sqlite:{store}"}
                if self._racks:
                    own["broker.rack"] = self._racks[node_id - 1]
                broker = EmbeddedBroker(self._settings | own, virtual_time=self._virtual_time or False)
                self._brokers[node_id] = broker.start()
            self._wait_for_brokers(self._brokers.keys())
        except BaseException:
            self.stop()
            raise
        return self

    def stop(self) -> None:
        """Stop all brokers and remove their data; does nothing if the cluster is stopped."""
        with ExitStack() as steps:  # from the last one to the first, whatever they raise
            steps.callback(self._remove_data)
            for broker in reversed(self._brokers.values()):
                steps.callback(broker.stop)
            for node_id in self._paused:
                steps.callback(self.resume, node_id)
            steps.callback(self._close_client)

    def _remove_data(self) -> None:
        self._brokers.clear()
        self._down.clear()
        self._isolated.clear()
        directory, self._directory = self._directory, None
        if directory is not None:
            directory.cleanup()

    @property
    def brokers(self) -> Mapping[int, EmbeddedBroker]:
        """The brokers by id, running or not."""
        return self._brokers

    @property
    def bootstrap(self) -> str:
        """`bootstrap.servers` for clients: the addresses of all brokers."""
        return ",".join(broker.bootstrap for broker in self._brokers.values())

    def _new_client(self) -> BlockingClient:
        return BlockingClient(self.bootstrap, client_id=OWN_CLIENT_ID, request_timeout_ms=REQUEST_TIMEOUT_MS)

    # Topics

    def create_topic(
        self,
        name: str,
        partitions: int = 1,
        configs: Mapping[str, str | None] | None = None,
        *,
        replication_factor: int | None = None,
    ) -> None:
        """Create a topic, by default with a replica on each broker, at most three, and wait until all brokers know it.

        :raises KafkaError: The broker's error, such as TOPIC_ALREADY_EXISTS.
        """
        factor = min(3, self._brokers_count) if replication_factor is None else replication_factor
        topic = NewTopic(name, partitions, factor, configs=configs or {})
        raise_errors(self.client.admin.create_topics([topic]).values())
        self._wait_until_known(f"topic '{name}'", lambda image: name in image.topics)

    def _wait_for_brokers(self, node_ids: Set[int]) -> None:
        """Wait until all brokers know that these can have replicas."""
        self._wait_until_known(
            f"brokers {sorted(node_ids)}", lambda image: node_ids <= set(live_brokers(image))
        )

    def _wait_until_known(self, what: str, is_known: Callable[[MetadataImage], bool]) -> None:
        deadline_ms = self._clock.monotonic_ms() + WAIT_MS
        while not all(is_known(broker.server.broker.image) for broker in self._live_brokers()):
            if self._clock.monotonic_ms() > deadline_ms:
                message = f"a broker does not know {what} after {WAIT_MS} ms"
                raise TimeoutError(message)
            time.sleep(PAUSE_S)

    def leader(self, topic: str, partition: int = 0) -> int | None:
        """Return the broker that leads a partition, as the live brokers see it; None if none does."""
        return self._state(topic, partition)[0]

    def in_sync(self, topic: str, partition: int = 0) -> Sequence[int]:
        """Return the in-sync replicas of a partition, in ascending order."""
        return self._state(topic, partition)[1]

    def _state(self, topic: str, partition: int) -> tuple[int | None, list[int]]:
        live, *_ = self._live_brokers()
        image = live.server.broker.image
        state = image.partition(image.topics[topic], partition)
        return (state.leader if state.leader >= 0 else None), sorted(state.isr)

    def _live_brokers(self) -> list[EmbeddedBroker]:
        unavailable = self._down | self._paused.keys()
        return [broker for node_id, broker in self._brokers.items() if node_id not in unavailable]

    # Time

    def advance(self, *, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Move the time of all brokers forward: their timers fire in order, without the wait.

        Records, sessions and transactions expire. Clients keep their time. A paused broker sees the new time when it
        continues. An hour takes a second or two, because the brokers also copy and check each other in that time.

        :raises RuntimeError: Without `virtual_time`.
        """
        if self._virtual_time is None:
            message = "advance needs virtual time: EmbeddedCluster(virtual_time=True)"
            raise RuntimeError(message)
        loops = {}
        for broker in self._live_brokers():
            loops.update(broker.virtual_loop)
        self._virtual_time.advance(hours * 3_600 + minutes * 60 + seconds, loops)

    # Faults

    def kill(self, node_id: int) -> None:
        """End a broker like SIGKILL: nothing is flushed or handed over. Its data stays."""
        self._halt(node_id, kill=True)

    def shut_down(self, node_id: int) -> None:
        """Stop a broker in order: it hands its partitions over."""
        self._halt(node_id, kill=False)

    def _halt(self, node_id: int, *, kill: bool) -> None:
        broker = self._broker(node_id)
        if node_id in self._paused:
            self.resume(node_id)
        broker.halt(kill=kill)
        self._down.add(node_id)

    def restart(self, node_id: int) -> None:
        """Start a broker again, on its port and its data; a running one is stopped in order first.

        Brokers that are isolated stay so.
        """
        if node_id not in self._down:
            self.shut_down(node_id)
        self._broker(node_id).serve()
        self._down.discard(node_id)
        self._block({node_id})
        self._wait_for_brokers({node_id})

    def pause(self, node_id: int) -> None:
        """Let a broker stand still like SIGSTOP, until `resume`: its connections stay open, and nothing happens."""
        broker, resumed = self._broker(node_id), threading.Event()
        if node_id in self._paused or node_id in self._down:
            message = f"broker {node_id} is {'paused already' if node_id in self._paused else 'down'}"
            raise ValueError(message)
        broker.call_soon(resumed.wait)
        self._paused[node_id] = resumed

    def resume(self, node_id: int) -> None:
        """Let a paused broker continue."""
        if node_id not in self._paused:
            message = f"broker {node_id} is not paused"
            raise ValueError(message)
        self._paused.pop(node_id).set()

    def isolate(self, node_id: int) -> None:
        """Cut a broker off from the other brokers, in both directions, until `rejoin`. Clients still reach it.

        Several isolated brokers do not reach each other either.
        """
        self._broker(node_id)
        self._isolated.add(node_id)
        self._block(self._brokers.keys())

    def rejoin(self) -> None:
        """Let all isolated brokers reach the others again."""
        self._isolated.clear()
        self._block(self._brokers.keys())

    def _block(self, node_ids: Set[int]) -> None:
        """Let brokers send no requests to those that they cannot reach; paused ones do so when they continue."""
        blocking = {
            node_id: self._brokers[node_id].block_brokers(self._unreachable_from(node_id))
            for node_id in node_ids - self._down
        }
        for node_id, applied in blocking.items():
            if node_id not in self._paused:
                applied.result()

    def _unreachable_from(self, node_id: int) -> Set[int]:
        return (self._brokers.keys() if node_id in self._isolated else self._isolated) - {node_id}

    def _broker(self, node_id: int | None) -> EmbeddedBroker:
        """Return a broker, running or not; None stands for the missing leader of a partition."""
        if node_id is None or node_id not in self._brokers:
            message = f"there is no broker {node_id}; the cluster has {', '.join(map(str, self._brokers))}"
            raise ValueError(message)
        return self._brokers[node_id]
