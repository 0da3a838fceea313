"""The faults of a simulation: some at a time, about one in a second, and quiet phases between."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from barnabas.base.ids import TopicPartition
from barnabas.log.log_directory import LogDirectoryError
from barnabas.metadata.broker_lifecycle import controller_id
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import OutcomeUnknown, StoreChange, StoreError
from barnabas.metadata.topics import PARTITION_STATES
from barnabas.wire.errors import KafkaError
from sim.aims import AIMED_PAUSES_FACTOR, Aims
from sim.applications import PLAIN
from sim.brokers import SimulatedBroker
from sim.disk import DISK_FAILURES, SimulatedDisks
from sim.loop import SimulatedLoop
from sim.store import SimulatedStore
from sim.survivors import Survivors

CLIENTS = "clients"

#: Mean time between two faults for one broker, and the range of the length of the phases with faults.
MEAN_PAUSE_S = 1.2
NOISY_S = (6.0, 14.0)

#: Share of the starts during which the broker is killed, and the mean time until then.
KILLED_STARTS_SHARE = 0.3
KILLED_AFTER_S = 0.02
#: Mean time until it starts again: at once, before its session ends, or long after that.
MEANS_DOWN_S = (0.1, 1.5, 6.0)

BLINK_S = (0.01, 0.3)
LONG_DOWN_S = (4.0, 10.0)
#: When a broker that is left alone ends.
ALONE_S = (0.5, 4.0)

#: Shares of the faults of a broker that hit a leader, and the controller.
LEADER_SHARE = 0.4
CONTROLLER_SHARE = 0.2

#: Share of the commits of leaders and in-sync replicas during which something else happens, how soon it does, and how
#: long such a commit takes then.
MOMENT_SHARE = 0.3
MOMENT_S = 0.5
#: Share of them that hit a follower which joins the in-sync replicas.
JOINING_SHARE = 0.5
SLOW_COMMIT_S = (0.0, 2.0)

#: Longer than a session, so that paused brokers and those without a store lose it.
MEAN_PAUSED_S = 6.0
MEAN_PARTITIONED_S = 4.0
FLAPS_MAX = 8
MEAN_FLAP_S = 0.3
EXTRA_DELAY_S = (0.05, 1.5)
WATCH_DELAY_S = (0.1, 2.0)
#: Share of the brokers without a store that must load it again.
LOST_HISTORY_SHARE = 0.3
JUMP_MS_MAX = 3_600_000

#: A start, and a stop in order, take at most so long after the last fault.
START_TIMEOUT_S = 120.0
RETRY_START_S = 1.0

#: What may happen at such a commit, once or twice.
_STRIKES = ("broker", "blink", "blink", "late watch", "late watch", "split", "store", "slow")

_START_FAILURES = (StoreError, OutcomeUnknown, KafkaError, LogDirectoryError, OSError)


class Faults:
    """Injects faults into brokers, their disks, the network and the store."""

    def __init__(
        self,
        loop: SimulatedLoop,
        rng: random.Random,
        brokers: Sequence[SimulatedBroker],
        disks: SimulatedDisks,
        store: SimulatedStore,
        survivors: Survivors,
        image: Callable[[], MetadataImage],
        *,
        keeps_flushed: bool,
        loses_power: bool,
        damages: bool,
        is_careful: bool,
        is_aimed: bool,
    ) -> None:
        """:param survivors: Follows what brokers lose.
        :param image: Returns the metadata as the store has them.
        :param keeps_flushed: Power failures lose nothing that was acknowledged.
        :param loses_power: Brokers lose what they have not flushed, too.
        :param damages: Bits of old records change while a broker is down.
        :param is_careful: Only where another in-sync replica survives.
        :param is_aimed: Fewer faults at random times, and those of `Aims`.
        """
        self._loop = loop
        self._rng = rng
        self._brokers = brokers
        self._disks = disks
        self._store = store
        self._survivors = survivors
        self._image = image
        self._keeps_flushed = keeps_flushed
        self._is_careful = is_careful
        self._busy: dict[str, None] = {}  #: brokers that are down or about to be
        self._tasks: list[asyncio.Task[None]] = []
        self._is_noisy = False
        self._explains_failed_starts = 0  #: faults that let starts fail
        self.events: list[str] = []
        self.wrong: list[str] = []
        of_brokers: list[Callable[[SimulatedBroker], Awaitable[None]]]
        of_brokers = [self._kill, self._blink, self._stop, self._pause, self._fail_disk]
        of_brokers += [self._lose_power] * 3 if loses_power else []
        of_brokers += [self._damage] if damages else []
        elsewhere: list[Callable[[], Awaitable[None]]] = [
            self._cut,
            self._jump,
            self._store_outage,
            self._late_watch,
            self._lose_history,
            self._isolate_from_store,
        ]
        if len(brokers) > 1:
            elsewhere += [self._partition, self._partition, self._one_way, self._flap, self._slow_down]
            elsewhere += [self._split, self._split, self._blackout, self._leave_alone, self._late_watch]
        self._of_brokers = of_brokers
        self._elsewhere = elsewhere
        self._loses_power = loses_power
        self._aims = Aims(self, loop, rng, brokers, store, image) if is_aimed else None
        store.on_request = self._at_request

    async def inject(self) -> None:
        """Inject faults for a while; return when all brokers run, and everything can reach everything."""
        self._is_noisy = True
        end_s = self._loop.time() + self._rng.uniform(*NOISY_S)
        mean_pause_s = MEAN_PAUSE_S / len(self._brokers)
        if self._aims is not None:
            self._begin(self._aims.run())
            mean_pause_s *= AIMED_PAUSES_FACTOR
        while self._loop.time() < end_s:
            await asyncio.sleep(self._exponential_s(mean_pause_s))
            if self._rng.random() < 0.5:
                self._begin(self._rng.choice(self._elsewhere)())
            else:
                self._hit(self._target())
        self._is_noisy = False
        while self._tasks:  # faults may have led to others
            await self._tasks.pop()
        if self._aims is not None:
            await self._aims.end_phase()
        for broker in self._brokers:
            await self._on(broker, self._restart_failed)
        self._log("quiet")

    def _begin(self, fault: Coroutine[Any, Any, None]) -> None:
        """Let a fault run on no node, as a broker whose commit has led to it may end."""
        self._tasks.append(self._loop.run_on(None, self._loop.create_task, fault))

    def _hit(self, broker: SimulatedBroker) -> None:
        if broker.name not in self._busy:
            self._begin(self._on(broker, self._rng.choice(self._of_brokers)))

    def _target(self) -> SimulatedBroker:
        """Return a broker: often one that leads some partition, or the controller."""
        image, chance = self._image(), self._rng.random()
        ids: list[int | None] = []
        if chance < LEADER_SHARE:
            states = [*image.partition_states.values()]
            ids = [self._rng.choice(states).leader] if states else []
        elif chance < LEADER_SHARE + CONTROLLER_SHARE:
            ids = [controller_id(image)]
        return self._broker(ids)

    def _at_request(self, changes: Sequence[StoreChange]) -> float:
        """Return how much longer a commit takes; let something happen while leaders or in-sync replicas change."""
        changed = [
            (change.key.partition("/")[2], PARTITION_STATES.decode(change.value))
            for change in changes
            if change.key.startswith(PARTITION_STATES.key("")) and change.value is not None
        ]
        if not self._is_noisy or not changed or self._rng.random() >= MOMENT_SHARE:
            return 0.0
        row, state = self._rng.choice(changed)
        self._log(f"at the change to {state}")
        before = self._image().partition_states.get(row)
        joining = set(state.isr).difference(before.isr) if before is not None else set()
        concerned = sorted(joining) if self._rng.random() < JOINING_SHARE else []
        for strike in self._rng.sample(_STRIKES, self._rng.randint(1, 2)):
            self._begin(self._strike(strike, self._broker(concerned or [state.leader, *state.isr])))
        return self._rng.uniform(*SLOW_COMMIT_S)

    def _broker(self, ids: Sequence[int | None]) -> SimulatedBroker:
        """Return one of these brokers, or any if there is none."""
        named = [broker for broker in self._brokers if broker.node_id in ids]
        return self._rng.choice(named or self._brokers)

    async def _strike(self, strike: str, broker: SimulatedBroker) -> None:
        if strike == "late watch":
            await self._delay_watch(broker)
        await asyncio.sleep(self._rng.uniform(0, MOMENT_S))
        match strike:
            case "broker":
                self._hit(broker)
            case "blink":
                if broker.name not in self._busy:
                    await self._on(broker, self._blink)
            case "split":
                await self._split_off(broker)
            case "store":
                await self._store_outage()
            case "slow":
                others = [name for name in self._names if name != broker.name]
                await self._hold_slow(self._links(broker.name, others))

    def take_down(self) -> SimulatedBroker:
        """Kill a broker that does not return until `bring_back`."""
        broker = self._rng.choice(self._brokers)
        self._log(f"kill {broker.name} for long")
        broker.kill()
        return broker

    async def bring_back(self, broker: SimulatedBroker) -> None:
        await self._on(broker, self._start)

    async def _on(self, broker: SimulatedBroker, fault: Callable[[SimulatedBroker], Awaitable[None]]) -> None:
        self._busy[broker.name] = None
        try:
            await fault(broker)
        finally:
            del self._busy[broker.name]

    def _log(self, what: str) -> None:
        self.events.append(f"{self._loop.time():.6f} {what}")

    def _exponential_s(self, mean_s: float) -> float:
        return self._rng.expovariate(1 / mean_s)

    # Processes

    async def _start(self, broker: SimulatedBroker) -> None:
        self._log(f"start {broker.name}")
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                if self._rng.random() < KILLED_STARTS_SHARE:
                    await self._start_and_kill(broker)
                while not broker.is_running:
                    await self._try_to_start(broker)
        except TimeoutError:
            self.wrong.append(f"start: {broker.name} has not started for {START_TIMEOUT_S} s")
        self._log(f"{broker.name} has started")

    async def _try_to_start(self, broker: SimulatedBroker) -> None:
        before = self._explains_failed_starts
        may_fail = self._may_fail(broker)
        try:
            await broker.start()
        except _START_FAILURES as error:
            if not (may_fail or self._may_fail(broker) or before != self._explains_failed_starts):
                raise
            self._log(f"{broker.name} did not start: {error!r}")
            await asyncio.sleep(RETRY_START_S)

    def _may_fail(self, broker: SimulatedBroker) -> bool:
        return not self._store.is_reachable(broker.name) or self._store.silent_share > 0

    async def _start_and_kill(self, broker: SimulatedBroker) -> None:
        starting = asyncio.ensure_future(self._try_to_start(broker))
        await asyncio.wait({starting}, timeout=self._exponential_s(KILLED_AFTER_S))
        if not starting.done():
            self._log(f"kill {broker.name} during the start")
            broker.kill()
        await starting

    async def _kill(self, broker: SimulatedBroker, down_s: float | None = None) -> None:
        self._log(f"kill {broker.name}")
        broker.kill()
        await self._stay_down(down_s)
        await self._start(broker)

    async def _stay_down(self, down_s: float | None = None) -> None:
        if down_s is None:
            down_s = self._exponential_s(self._rng.choice(MEANS_DOWN_S))
        await asyncio.sleep(down_s)

    async def _blackout(self) -> None:
        """Several brokers end at once, and return one by one."""
        idle = [broker for broker in self._brokers if broker.name not in self._busy]
        fault = self._lose_power if self._loses_power and self._rng.random() < 0.5 else self._kill
        for broker in self._rng.sample(idle, min(len(idle), self._rng.randint(2, len(self._brokers)))):
            self._begin(self._on(broker, fault))

    async def _leave_alone(self) -> None:
        """All brokers but one end for long, and that one ends for a moment."""
        idle = [broker for broker in self._brokers if broker.name not in self._busy]
        if not idle:
            return
        left = self._rng.choice(idle)
        for broker in idle:
            if broker is not left:
                self._begin(self._on(broker, partial(self._kill, down_s=self._rng.uniform(*LONG_DOWN_S))))
        await asyncio.sleep(self._rng.uniform(*ALONE_S))
        if left.name not in self._busy:
            await self._on(left, self._blink)

    async def _stop(self, broker: SimulatedBroker) -> None:
        self._log(f"stop {broker.name}")
        await self._stop_in_order(broker)
        await self._start(broker)

    async def _stop_in_order(self, broker: SimulatedBroker) -> None:
        try:
            async with asyncio.timeout(START_TIMEOUT_S):
                await broker.stop()
        except TimeoutError:
            self.wrong.append(f"stop: {broker.name} has not stopped for {START_TIMEOUT_S} s")
            broker.kill()

    async def _pause(self, broker: SimulatedBroker) -> None:
        self._log(f"pause {broker.name}")
        node = broker.pause()
        await asyncio.sleep(self._exponential_s(MEAN_PAUSED_S))
        self._log(f"continue {broker.name}")
        self._loop.resume(node)

    async def _blink(self, broker: SimulatedBroker) -> None:
        """End a broker that returns at once, before the others notice."""
        down_s = self._rng.uniform(*BLINK_S)
        if self._loses_power:
            await self._lose_power(broker, down_s)
        else:
            await self._kill(broker, down_s)

    async def _lose_power(self, broker: SimulatedBroker, down_s: float | None = None) -> None:
        if not self._keeps_flushed:
            if self._is_careful and not self._survivors.may_lose(broker.node_id):
                return
            self._survivors.lose(broker.node_id)
        self._log(f"{broker.name} loses power")
        links = self._links(broker.name, [name for name in self._names if name != broker.name])
        self._block(links)  # a machine without power resets no connections
        broker.lose_power()
        await self._stay_down(down_s)
        self._unblock(links)
        await self._start(broker)

    async def _damage(self, broker: SimulatedBroker) -> None:
        """Change a bit of a segment that is not the last of its partition."""
        directories = sorted(self._disks.directory(broker.name).glob(f"{PLAIN}-?"))
        segments = [path for directory in directories for path in sorted(directory.glob("*.log"))[:-1]]
        broker.kill()
        if segments:
            path = self._rng.choice(segments)
            self._log(f"kill {broker.name}, and change a bit of {path.parent.name}/{path.name}")
            self._disks.flip_bit(path)
            self._survivors.damaged[TopicPartition(PLAIN, int(path.parent.name[-1]))] = None
        await self._start(broker)

    async def _fail_disk(self, broker: SimulatedBroker) -> None:
        failure = self._rng.choice(DISK_FAILURES)
        self._log(f"the disk of {broker.name} fails: {failure}")
        self._disks.fail(broker.name, failure)
        await self._stay_down()
        self._disks.repair(broker.name)
        await self._restart_failed(broker)

    async def _restart_failed(self, broker: SimulatedBroker) -> None:
        """Start a broker again that has ended because its disk failed."""
        if broker.server is not None and broker.server.failed.is_set():
            self._log(f"{broker.name} has failed")
            await self._stop_in_order(broker)
            await self._start(broker)

    async def _jump(self) -> None:
        broker = self._rng.choice(self._brokers)
        skew_ms = self._rng.randint(-JUMP_MS_MAX, JUMP_MS_MAX)
        self._log(f"wall clock of {broker.name} at {skew_ms} ms")
        broker.clock.skew_ms = skew_ms

    # The network

    @property
    def _names(self) -> list[str]:
        return [CLIENTS, *(broker.name for broker in self._brokers)]

    def _links(self, name: str, others: Sequence[str]) -> list[tuple[str, str]]:
        return [(name, other) for other in others] + [(other, name) for other in others]

    def _block(self, links: Sequence[tuple[str, str]]) -> None:
        for link in links:
            self._loop.network.block(*link)

    def _unblock(self, links: Sequence[tuple[str, str]]) -> None:
        for link in links:
            self._loop.network.unblock(*link)

    def _some_links(self) -> list[tuple[str, str]]:
        """Return the links between a broker and some of the others, in both directions."""
        broker = self._target()
        others = [name for name in self._names if name != broker.name]
        return self._links(broker.name, self._rng.sample(others, self._rng.randint(1, len(others))))

    async def _partition(self) -> None:
        await self._hold_blocked(self._some_links())

    async def _split(self) -> None:
        await self._split_off(self._target())

    async def _split_off(self, broker: SimulatedBroker) -> None:
        """A broker reaches neither the others nor the store, but its clients: it may believe that it leads."""
        others = [each.name for each in self._brokers if each is not broker]
        isolated = self._begin_isolation(broker)
        await self._hold_blocked(self._links(broker.name, others))
        isolated()

    async def _one_way(self) -> None:
        links = self._some_links()
        half = len(links) // 2
        await self._hold_blocked(links[:half] if self._rng.random() < 0.5 else links[half:])

    async def _hold_blocked(self, links: Sequence[tuple[str, str]]) -> None:
        self._log(f"block {links}")
        self._block(links)
        await asyncio.sleep(self._exponential_s(MEAN_PARTITIONED_S))
        self._unblock(links)
        self._log(f"unblock {links}")

    async def _flap(self) -> None:
        links = self._some_links()
        self._log(f"flapping {links}")
        for _ in range(self._rng.randint(2, FLAPS_MAX)):
            self._block(links)
            await asyncio.sleep(self._exponential_s(MEAN_FLAP_S))
            self._unblock(links)
            await asyncio.sleep(self._exponential_s(MEAN_FLAP_S))

    async def _slow_down(self) -> None:
        await self._hold_slow(self._some_links())

    async def _hold_slow(self, links: Sequence[tuple[str, str]]) -> None:
        delay_s = self._rng.uniform(*EXTRA_DELAY_S)
        self._log(f"{delay_s:.3f} s more delay: {links}")
        for link in links:
            self._loop.network.slow_down(*link, delay_s)
        await asyncio.sleep(self._exponential_s(MEAN_PARTITIONED_S))
        for link in links:
            self._loop.network.slow_down(*link, 0.0)

    async def _cut(self) -> None:
        name = self._rng.choice(self._names)
        self._log(f"cut connections of {name}")
        self._loop.network.cut_some(name)

    # The store

    async def _store_outage(self) -> None:
        self._log("the store fails")
        self._explains_failed_starts += 1
        self._store.fail()
        await asyncio.sleep(self._exponential_s(MEAN_PARTITIONED_S))
        self._store.recover()
        self._log("the store works again")

    def _begin_isolation(self, broker: SimulatedBroker) -> Callable[[], None]:
        """Isolate a broker from the store; return the function that ends this."""
        self._log(f"{broker.name} cannot reach the store")
        self._explains_failed_starts += 1
        broker.isolate_from_store()
        if self._rng.random() < LOST_HISTORY_SHARE:
            self._store.lose_history_of(broker.name)

        def end() -> None:
            self._store.recover(broker.name)
            self._log(f"{broker.name} can reach the store")

        return end

    async def _isolate_from_store(self) -> None:
        end = self._begin_isolation(self._target())
        await asyncio.sleep(self._exponential_s(MEAN_PAUSED_S))
        end()

    async def _late_watch(self) -> None:
        await self._delay_watch(self._target())

    async def _delay_watch(self, broker: SimulatedBroker) -> None:
        delay_s = self._rng.uniform(*WATCH_DELAY_S)
        self._log(f"{broker.name} sees commits {delay_s:.3f} s later")
        self._store.delay_watch(broker.name, delay_s)
        await asyncio.sleep(self._exponential_s(MEAN_PARTITIONED_S))
        self._store.delay_watch(broker.name, 0.0)

    async def _lose_history(self) -> None:
        broker = self._rng.choice(self._brokers)
        self._log(f"{broker.name} loses the history of the store")
        self._store.lose_history_of(broker.name)
