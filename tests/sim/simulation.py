"""Brokers on virtual time, their applications, and the faults; at the end the logs are compared with what was sent."""

import asyncio
import random
from enum import Enum
from pathlib import Path
from typing import TypeVar

from barnabas.metadata.store import Commit
from sim.applications import TRANSACTION_TIMEOUT_MS, Application, Journal, Outcome, create_topics, new_client
from sim.brokers import SimulatedBroker, noted_restorations
from sim.checks import TRANSACTIONS_TOPIC, check_logs, different_metadata
from sim.classic_members import ClassicMember, Generations
from sim.clock import SimulatedClock
from sim.copier import COPIER, Copier
from sim.disk import SimulatedDisks
from sim.faults import CLIENTS, Faults
from sim.invariants import Invariants
from sim.loop import Node, SimulatedLoop, noted_exceptions
from sim.members import MEMBERS_COUNT, Member, Ownership
from sim.store import SimulatedStore
from sim.survivors import Survivors
from sim.threads import inline_pools
from sim.topic_applications import Recycler, Shortener

ApplicationT = TypeVar("ApplicationT", bound=Application)

DURATION_S = 60.0
#: Until all transactions have ended: those of applications that are gone time out.
QUIET_S = 1.5 * TRANSACTION_TIMEOUT_MS / 1_000
PRODUCERS_COUNT = 2
#: Share of the commits that the metadata store does not answer, in half of the runs.
SILENT_SHARE = 0.2
#: Share of the functions for threads, such as flushes, that take long, in half of the runs.
STALLED_SHARE = 0.1
#: Share of the runs in which no power failure takes the last copy of a record.
CAREFUL_SHARE = 0.5
#: Share of the runs in which a broker sees commits later than the others, and how much.
FAR_SHARE = 0.3
DISTANCE_S = (0.02, 0.5)
#: Share of the runs in which bits of old records change.
DAMAGED_SHARE = 0.15
#: Share of the quiet phases in which a broker is down until the others lead all partitions.
FAILOVER_SHARE = 0.5

#: How long after the last fault all replicas are in sync, and records are acknowledged.
RECOVERY_S = 60.0
#: How often the state of the brokers is checked: whether they have recovered, and whether it is consistent.
CHECK_S = 0.1
CHECK_STATE_S = 0.3

#: Every write is flushed before it is acknowledged, so that even a power failure loses nothing.
FLUSHED_SETTINGS = {"log.flush.interval.messages": "1"}

#: Kafka's default is 3, which fewer brokers cannot reach.
REPLICATED_INTERNAL_TOPICS = ("offsets.topic.replication.factor", "transaction.state.log.replication.factor")
INTERNAL_REPLICATION_FACTOR_MAX = 3
#: Deleted topics stay in the trash for the whole run, although clocks jump.
KEPT_MS = "8640000000"
#: One of the values in each run.
VARIED_SETTINGS = {
    "barnabas.trash.retention.ms": ["0", "3600000", KEPT_MS],
    "leader.imbalance.check.interval.seconds": ["2", "300"],
    "min.insync.replicas": ["1", "2", "2"],
    "replica.lag.time.max.ms": ["1500", "5000"],
}


class Kind(Enum):
    """Kinds of runs."""

    KILLED = "killed"  #: The process is killed, but the page cache survives: nothing is lost.
    FLUSHED = "flushed"  #: The power fails, too, but everything is flushed before it is acknowledged.
    LOSSY = "lossy"  #: The power fails, and what was not flushed may be lost.


class Simulation:
    """One run: brokers, their applications, and the faults."""

    def __init__(self, seed: int, root: Path, duration_s: float = DURATION_S, brokers_count: int = 1) -> None:
        self._duration_s = duration_s
        self.rng = random.Random(seed)
        self.loop = SimulatedLoop(random.Random(self.rng.random()))
        self.disks = SimulatedDisks(root, random.Random(self.rng.random()), self.loop.trace)
        self.kind = self.rng.choice(list(Kind))
        silent_share = self.rng.choice([0.0, SILENT_SHARE])
        self.store = SimulatedStore(self.loop, random.Random(self.rng.random()), silent_share=silent_share)
        self.loop.stalled_share = self.rng.choice([0.0, STALLED_SHARE])
        settings = {key: self.rng.choice(values) for key, values in VARIED_SETTINGS.items()}
        if self.kind is Kind.FLUSHED:
            settings |= FLUSHED_SETTINGS
        if brokers_count > 1:
            factor = str(min(brokers_count, INTERNAL_REPLICATION_FACTOR_MAX))
            settings |= dict.fromkeys(REPLICATED_INTERNAL_TOPICS, factor)
        self.brokers = [
            SimulatedBroker(self.loop, self.disks, self.store, number, settings)
            for number in range(1, brokers_count + 1)
        ]
        if self.rng.random() < FAR_SHARE:
            far = self.rng.choice(self.brokers)
            self.store.distances_s[far.name] = self.rng.uniform(*DISTANCE_S)
        self.survivors = Survivors(self.loop.time)
        self.invariants = Invariants(
            self.brokers, self.store, self.disks, self.survivors, loses_power=self.kind is not Kind.KILLED
        )
        self.store.on_commit = self._follow
        self.faults = Faults(
            self.loop,
            self.rng,
            self.brokers,
            self.disks,
            self.store,
            self.survivors,
            lambda: self.invariants.image,
            keeps_flushed=self.kind is Kind.FLUSHED,
            damages=brokers_count > 1 and self.rng.random() < DAMAGED_SHARE,
            loses_power=self.kind is not Kind.KILLED,
            is_careful=brokers_count > 1 and self.rng.random() < CAREFUL_SHARE,
            is_aimed=brokers_count > 1 and seed % 2 == 0,
        )
        self.journal = Journal(
            brokers_count=brokers_count,
            lost_before_s=self.survivors.lost_before_s,
            damaged=self.survivors.damaged,
            has_former_leader=self.invariants.has_former_leader,
        )
        self._recycles = settings["barnabas.trash.retention.ms"] == KEPT_MS
        self._ownership = Ownership(self.journal)
        self._classic_ownership = Ownership(self.journal)
        self._generations = Generations(self.journal)
        self._are_members_quiet = False

    def _follow(self, commit: Commit) -> None:
        self.survivors.follow(commit)
        self.invariants.follow(commit)

    @property
    def events(self) -> list[str]:
        """What happened to the brokers, with times."""
        return self.faults.events

    def run(self) -> list[str]:
        """Return what is wrong."""
        asyncio.set_event_loop(self.loop)
        errors = self.loop.errors
        with (
            self.disks.installed(),
            inline_pools(),
            self.invariants.watching(),
            noted_exceptions(errors),
            noted_restorations(errors),
        ):
            try:
                wrong = self.loop.run_until_complete(self._run())
            except Exception as error:  # such as that of a broker that does not start any more
                wrong = [f"the simulation ended early: {error!r}"]
        found = [*wrong, *self.journal.wrong, *self.faults.wrong, *self.invariants.wrong, *self.loop.errors]
        return list(dict.fromkeys(found))

    async def _run(self) -> list[str]:
        for broker in self.brokers:
            await broker.start()
        clients = Node(CLIENTS)
        clock = SimulatedClock(self.loop)
        cluster = new_client(self._bootstrap, clock, self.rng)
        applications = self.loop.run_on(clients, self.loop.create_task, self._run_applications(clock))
        checking = asyncio.ensure_future(self._check_always())
        wrong = await self._alternate()
        if wrong or self._is_wrong:
            return wrong
        wrong += await self._wait_for_members()
        if applications.done():
            wrong.append(f"the applications ended: {applications.exception()!r}")
        applications.cancel()
        await asyncio.wait({applications})
        await asyncio.sleep(QUIET_S)
        await self._application("last", clock).send_last_records(self.survivors.damaged)
        recycler = self._recycler(clock) if self._recycles else None
        wrong += await check_logs(cluster, self.journal, self.survivors, recycler)
        wrong += different_metadata(
            {
                broker.name: broker.server.parts.metadata.recent_hashes
                for broker in self.brokers
                if broker.server is not None
            }
        )
        checking.cancel()
        self.invariants.check_end(is_torn=self.survivors.lost_before_s(TRANSACTIONS_TOPIC) >= 0)
        return wrong

    async def _alternate(self) -> list[str]:
        """Alternate between phases with faults and quiet phases."""
        wrong: list[str] = []
        end_s = self.loop.time() + self._duration_s
        while self.loop.time() < end_s and not wrong and not self._is_wrong:
            await self.faults.inject()
            wrong += await self._wait_for_recovery()
            if not wrong and len(self.brokers) > 1 and self.rng.random() < FAILOVER_SHARE:
                broker = self.faults.take_down()
                wrong += await self._wait_for_recovery(broker.node_id)
                await self.faults.bring_back(broker)
                wrong += await self._wait_for_recovery()
            self.invariants.check_logs()
        return wrong

    async def _wait_for_recovery(self, down: int | None = None) -> list[str]:
        """Return what is not well `RECOVERY_S` after the last fault, although at most one broker is down."""
        end_s, records_count = self.loop.time() + RECOVERY_S, len(self.journal.records)
        while self.loop.time() < end_s:
            await asyncio.sleep(CHECK_S)
            sent_since = self.journal.records[records_count:]
            serves = any(record.outcome is Outcome.ACKNOWLEDGED for record in sent_since)
            if serves and not self.invariants.unfinished(down):
                return []
            if self._is_wrong:
                return []
        unfinished = self.invariants.unfinished(down)
        return [f"liveness: {what}" for what in unfinished or ["no record is acknowledged"]]

    async def _wait_for_members(self) -> list[str]:
        """Return what is wrong if the members of the group do not share all partitions before long."""
        self._are_members_quiet = True
        end_s = self.loop.time() + RECOVERY_S
        for group, ownership in (("consumer", self._ownership), ("classic", self._classic_ownership)):
            while not ownership.is_complete(self.loop.time()):
                if self.loop.time() > end_s:
                    return [f"members: some partitions belong to no member of the {group} group"]
                await asyncio.sleep(CHECK_S)
        return []

    @property
    def _is_wrong(self) -> bool:
        """Whether something is wrong already, so that the rest of the run would show nothing new."""
        return bool(self.invariants.wrong or self.faults.wrong or self.journal.wrong or self.loop.errors)

    async def _check_always(self) -> None:
        while True:
            self.invariants.check()
            await asyncio.sleep(CHECK_STATE_S)

    async def _run_applications(self, clock: SimulatedClock) -> None:
        async with asyncio.TaskGroup() as group:
            await create_topics(new_client(self._bootstrap, clock, self.rng), len(self.brokers))
            for number in range(PRODUCERS_COUNT):
                group.create_task(self._application(f"producer{number}", clock).produce())
                group.create_task(self._application(f"transactional{number}", clock).transact())
                group.create_task(self._application(f"admin{number}", clock).administer())
            group.create_task(self._application("fast", clock).produce_fast())
            group.create_task(self._application("reader", clock).read())
            group.create_task(self._application("group", clock).commit_offsets())
            group.create_task(self._make(Copier, COPIER, clock).copy())
            group.create_task(self._make(Shortener, "shortener", clock).shorten())
            for number in range(MEMBERS_COUNT):
                group.create_task(self._member(f"member{number}", clock).belong())
                group.create_task(self._classic_member(number, clock).belong())
            if self._recycles:
                group.create_task(self._recycler(clock).recycle())

    def _application(self, name: str, clock: SimulatedClock) -> Application:
        return self._make(Application, name, clock)

    def _make(self, kind: type[ApplicationT], name: str, clock: SimulatedClock) -> ApplicationT:
        return kind(name, self._bootstrap, clock, self.rng, self.journal)

    def _recycler(self, clock: SimulatedClock) -> Recycler:
        return self._make(Recycler, "recycler", clock)

    def _member(self, name: str, clock: SimulatedClock) -> Member:
        return Member(
            name,
            self._bootstrap,
            clock,
            self.rng,
            self.journal,
            self._ownership,
            lambda: self._are_members_quiet,
        )

    def _classic_member(self, number: int, clock: SimulatedClock) -> ClassicMember:
        return ClassicMember(
            f"classic{number}",
            self._bootstrap,
            clock,
            self.rng,
            self.journal,
            self._classic_ownership,
            lambda: self._are_members_quiet,
            generations=self._generations,
            is_static=number == 0,
        )

    @property
    def _bootstrap(self) -> str:
        return ",".join(broker.bootstrap for broker in self.brokers)
