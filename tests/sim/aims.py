"""Faults that aim at one moment: several steps together, which faults at random times rarely meet."""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_change_builder import PartitionChange, brokers_up, partition_puts
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration, TopicImage
from sim.applications import OFFSETS_TOPIC, PARTITIONS_COUNT, PLAIN, TOPICS
from sim.brokers import SimulatedBroker
from sim.checks import TRANSACTIONS_TOPIC
from sim.loop import SimulatedLoop
from sim.store import SimulatedStore

if TYPE_CHECKING:
    from sim.faults import Faults

#: Share of the phases that end with a restart that a leader does not notice.
UNNOTICED_SHARE = 0.5

#: Other faults are so much rarer in these runs; and when a fault begins: first there must be something to hit.
AIMED_PAUSES_FACTOR = 4
BEGINS_S = (1.5, 3.0)

#: How often leaders change, the pauses between, how slow one broker is meanwhile, and how late another one.
SWAPS_COUNT = (6, 12)
SWAP_PAUSE_S = (0.1, 1.0)
SLOW_S = (0.05, 0.4)
LATE_S = (0.3, 1.5)

#: How often leaders change without the knowledge of a coordinator, how late it is, and the pauses before the next time.
MISSED_COUNT = 3
MISSED_S = (0.8, 1.5)
UNDISTURBED_S = (1.0, 2.0)

#: Longer than the session of a broker that cannot reach the store.
CUT_OFF_S = (7.0, 10.0)

#: How late a leader learns of the restart of a follower.
UNNOTICED_S = (1.0, 2.0)


class _Target(NamedTuple):
    """A partition."""

    topic: TopicImage
    index: int
    state: PartitionRegistration


class Aims:
    """Each method of `all` is one fault of several steps."""

    def __init__(
        self,
        faults: "Faults",
        loop: SimulatedLoop,
        rng: random.Random,
        brokers: Sequence[SimulatedBroker],
        store: SimulatedStore,
        image: Callable[[], MetadataImage],
    ) -> None:
        self._faults = faults
        self._loop = loop
        self._rng = rng
        self._brokers = brokers
        self._store = store
        self._image = image
        self.all: list[Callable[[], Coroutine[Any, Any, None]]] = [
            self.swap_leaders,
            self.mislead_coordinator,
            self.cut_off_coordinator,
        ]

    async def run(self) -> None:
        """Inject one of the faults, soon after the beginning of a phase."""
        await asyncio.sleep(self._rng.uniform(*BEGINS_S))
        await self._rng.choice(self.all)()

    async def end_phase(self) -> None:
        """Let a fault be the last one of a phase: others would make the brokers forget what it leads to."""
        if self._rng.random() < UNNOTICED_SHARE:
            await self.restart_unnoticed()

    # The faults

    async def swap_leaders(self) -> None:
        """Elect one in-sync replica after another, while one broker is slow and another one sees commits late.

        So leaders begin with different logs, and brokers have different leaders in mind.
        """
        slow, late = self._rng.sample(self._brokers, 2)
        self._faults._log(f"leaders change; {slow.name} is slow, {late.name} sees commits late")
        targets = [self._target(PLAIN), self._target(PLAIN), self._target()]
        links = self._faults._links(slow.name, [each.name for each in self._brokers if each is not slow])
        delay_s, late_s = self._rng.uniform(*SLOW_S), self._rng.uniform(*LATE_S)
        with self._slowed(links, delay_s), self._delayed(late, late_s):
            for _ in range(self._rng.randint(*SWAPS_COUNT)):
                for target in filter(None, targets):
                    self._elect(target.topic, target.index)
                await asyncio.sleep(self._rng.uniform(*SWAP_PAUSE_S))

    async def mislead_coordinator(self) -> None:
        """Leaders change while a coordinator of transactions does not know it."""
        for _ in range(MISSED_COUNT):
            target = self._target(TRANSACTIONS_TOPIC)
            coordinator = self._broker(target.state.leader) if target is not None else None
            if coordinator is None:
                return
            delay_s = self._rng.uniform(*MISSED_S)
            self._faults._log(f"leaders change, unknown to {coordinator.name}")
            with self._delayed(coordinator, delay_s):
                for index in range(PARTITIONS_COUNT):
                    if (moved := self._target(PLAIN, index)) is not None:
                        self._elect(moved.topic, index)
                await asyncio.sleep(delay_s)
            await asyncio.sleep(self._rng.uniform(*UNDISTURBED_S))

    async def cut_off_coordinator(self) -> None:
        """A coordinator of groups reaches only its clients, for longer than its session."""
        target = self._target(OFFSETS_TOPIC)
        coordinator = self._broker(target.state.leader) if target is not None else None
        if coordinator is None:
            return
        others = [each.name for each in self._brokers if each is not coordinator]
        links = self._faults._links(coordinator.name, others)
        self._faults._log(f"{coordinator.name}, a coordinator, reaches only its clients")
        end_isolation = self._faults._begin_isolation(coordinator)
        self._faults._block(links)
        await asyncio.sleep(self._rng.uniform(*CUT_OFF_S))
        self._faults._unblock(links)
        end_isolation()

    async def restart_unnoticed(self) -> None:
        """A follower restarts, and fetches before a leader learns that it has left the in-sync replicas.

        Mostly of a partition without records, in which no record corrects what the leader knows.
        """
        empty = [name for name in self._image().topics if name not in TOPICS and not name.startswith("_")]
        target = self._target(self._rng.choice(empty)) if empty else None
        if target is None:
            return
        leader = self._broker(target.state.leader)
        follower = self._broker(
            self._rng.choice([each for each in target.state.isr if each != target.state.leader])
        )
        if leader is None or follower is None or follower.name in self._faults._busy:
            return
        self._faults._log(f"{follower.name} restarts before {leader.name} knows")
        delay_s = self._rng.uniform(*UNNOTICED_S)
        with self._delayed(leader, delay_s):
            await self._faults._on(follower, self._faults._blink)
            await asyncio.sleep(delay_s)

    # What they need

    def _target(self, name: str | None = None, index: int | None = None) -> _Target | None:
        """Return some partition with a leader and an in-sync follower, of a topic or of any."""
        image = self._image()
        found = [
            _Target(topic, number, state)
            for topic in image.topics.values()
            if name in (None, topic.name)
            for number in range(topic.partition_count)
            if index in (None, number)
            if (state := image.partition(topic, number)).leader != NO_LEADER and len(state.isr) > 1
        ]
        return self._rng.choice(found) if found else None

    def _elect(self, topic: TopicImage, index: int, leader: int | None = None) -> None:
        """Elect an in-sync replica, or any other than the present leader.

        As an administrator may do, by reassignments and elections of preferred leaders.
        """
        image = self._image()
        if image.topic_by_id(topic.topic_id) is None or not self._store.is_reachable(""):
            return
        state = image.partition(topic, index)
        up = brokers_up(image).difference(state.offline)
        others = [
            each for each in state.isr if each in up and each != state.leader and leader in (None, each)
        ]
        if not others or state.leader == NO_LEADER:
            return
        elected = replace(
            state,
            leader=self._rng.choice(others),
            leader_epoch=state.leader_epoch + 1,
            partition_epoch=state.partition_epoch + 1,
        )
        puts, reads = partition_puts(image, [PartitionChange(topic, index, elected)])
        self._store.write(reads, puts)

    def _broker(self, broker_id: int) -> SimulatedBroker | None:
        return next((broker for broker in self._brokers if broker.node_id == broker_id), None)

    @contextmanager
    def _slowed(self, links: Sequence[tuple[str, str]], delay_s: float) -> Iterator[None]:
        for link in links:
            self._loop.network.slow_down(*link, delay_s)
        try:
            yield
        finally:
            for link in links:
                self._loop.network.slow_down(*link, 0.0)

    @contextmanager
    def _delayed(self, broker: SimulatedBroker, delay_s: float) -> Iterator[None]:
        self._store.delay_watch(broker.name, delay_s)
        try:
            yield
        finally:
            self._store.delay_watch(broker.name, 0.0)
