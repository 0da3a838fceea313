"""What must be true of the logs, whatever happened; named as in Jepsen's Kafka workload, where it has a name."""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Awaitable, Collection, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise

from barnabas.base.ids import TopicPartition
from barnabas.base.topic_names import AUDIT_TOPIC
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.groups import Groups
from barnabas.client.admin.offsets import EARLIEST
from barnabas.client.consumer.completed_fetch import ConsumedRecord
from barnabas.client.consumer.consumer import Consumer
from barnabas.client.core.cluster import ClusterClient
from barnabas.metadata.audit.events import AuditEvent, AuditOutcome
from barnabas.wire.errors import KafkaError
from barnabas.wire.isolation import Isolation
from sim.applications import (
    COMPACTED,
    COPIES,
    FAILURES,
    FAST,
    OFFSETS_TOPIC,
    PARTITIONS_COUNT,
    PLAIN,
    TOPICS,
    Journal,
    Outcome,
    Produced,
    Read,
    TopicState,
)
from sim.copier import COPIER, source_offset
from sim.survivors import Survivors
from sim.topic_applications import RECYCLED, Recycler

Log = Sequence[ConsumedRecord]

READ_TIMEOUT_S = 60.0
#: Until all brokers know of a change, also the one that sees commits late.
KNOWN_S = 2.0

TRANSACTIONS_TOPIC = "__transaction_state"
#: The key of audit events of creations and deletions of topics.
PARTITIONS = "partitions"


async def read_log(cluster: ClusterClient, tp: TopicPartition, isolation: Isolation) -> Log:
    """Read a partition from its start to its end, with retries.

    :raises Unreadable: If the log is damaged, or cannot be read for `READ_TIMEOUT_S`.
    """
    records: list[ConsumedRecord] = []
    failure: Exception | None = None
    with suppress(TimeoutError):
        async with asyncio.timeout(READ_TIMEOUT_S), Consumer(cluster, isolation=isolation) as consumer:
            try:
                await consumer.assign({tp: EARLIEST}, stop_at_end=True)
                while not consumer.finished:
                    records += await consumer.poll()
                return records
            except FAILURES as error:
                failure = error
    end = consumer.positions.get(tp)
    raise Unreadable(f"unreadable: {tp}, {isolation.name}, {len(records)} records, {end}: {failure!r}")


class Unreadable(Exception):
    """A log has damaged records, on which every consumer fails."""


async def check_logs(
    cluster: ClusterClient, journal: Journal, survivors: Survivors, recycler: Recycler | None
) -> list[str]:
    """Return what is wrong with the logs.

    :param survivors: Knows what faults may have lost.
    """
    produced, wrong = journal.of_partition(), []
    committed_values: dict[int, set[bytes]] = defaultdict(set)
    for topic in TOPICS:
        for index in range(PARTITIONS_COUNT):
            tp = TopicPartition(topic, index)
            if tp in survivors.damaged:
                continue
            try:
                log = await read_log(cluster, tp, Isolation.READ_UNCOMMITTED)
                committed = await read_log(cluster, tp, Isolation.READ_COMMITTED)
            except Unreadable as error:
                wrong.append(str(error))
                continue
            wrong += unexpected(tp, produced[tp], log)
            if topic != COMPACTED:
                wrong += duplicates(tp, log)
                wrong += nonmonotonic(tp, log)
            lost_before_s = survivors.lost_before_s(topic, index)
            kept = [
                record
                for record in produced[tp]
                if record.acknowledged_s > lost_before_s and record.offset >= journal.deleted_to[tp]
            ]
            wrong += lost_keys(tp, kept, log) if topic == COMPACTED else lost_writes(tp, kept, log)
            wrong += lost_reads(tp, journal.read[tp], log, lost_before_s)
            visible = {record.value for record in committed}
            for record in produced[tp]:
                if record.transaction >= 0 and record.value in visible:
                    committed_values[record.transaction].add(record.value)
            if topic == PLAIN and not _may_lose_copies(survivors, tp):
                wrong += await _unless_unreadable(wrong_copies(cluster, tp, committed))
    if recycler is not None:
        wrong += await _unless_unreadable(_wrong_recycled(recycler, produced[RECYCLED], survivors))
    wrong += await wrong_topics(cluster, journal)
    audit = TopicPartition(AUDIT_TOPIC, 0)
    if audit not in survivors.damaged and survivors.lost_before_s(*audit) < 0:
        wrong += await _unless_unreadable(wrong_audit(cluster, journal))
    lost_before_s = max(survivors.lost_before_s(topic) for topic in (PLAIN, TRANSACTIONS_TOPIC))
    return wrong + torn_transactions(journal, committed_values, lost_before_s, survivors.damaged)


async def _unless_unreadable(check: Awaitable[list[str]]) -> list[str]:
    try:
        return await check
    except Unreadable as error:
        return [str(error)]


def _may_lose_copies(survivors: Survivors, source: TopicPartition) -> bool:
    """Return whether a power failure may have lost a copied record, a copy, or what the coordinators know of both."""
    copies = TopicPartition(COPIES, source.partition)
    lost_before_s = [
        survivors.lost_before_s(*source),
        survivors.lost_before_s(*copies),
        *map(survivors.lost_before_s, (OFFSETS_TOPIC, TRANSACTIONS_TOPIC)),
    ]
    return max(lost_before_s) >= 0 or copies in survivors.damaged


async def wrong_copies(cluster: ClusterClient, source: TopicPartition, committed: Log) -> list[str]:
    """Committed records that were not copied once, up to the offset that was committed with the copies.

    :param committed: The committed records of the source.
    """
    copies = await read_log(cluster, TopicPartition(COPIES, source.partition), Isolation.READ_COMMITTED)
    offset = (await Groups(cluster).offsets(COPIER, [source])).get(source)
    if isinstance(offset, KafkaError):
        return [f"copies: the offset of {source} cannot be read: {offset!r}"]
    copied = [source_offset(record.value) for record in copies]
    end = offset.offset if offset is not None else 0
    expected = [record.offset for record in committed if record.offset < end]
    if copied == expected:
        return []
    missing, extra = sorted(set(expected) - set(copied)), sorted(set(copied) - set(expected))
    twice = sorted(each for each, count in Counter(copied).items() if count > 1)
    return [f"copies: of {source} up to {end}: missing {missing[:5]}, extra {extra[:5]}, twice {twice[:5]}"]


async def _wrong_recycled(
    recycler: Recycler, produced: Sequence[Produced], survivors: Survivors
) -> list[str]:
    """Records that did not return with their topic from the trash."""
    lost_before_s = survivors.lost_before_s(*RECYCLED)
    kept = [record for record in produced if record.acknowledged_s > lost_before_s]
    if RECYCLED in survivors.damaged or not kept:  # without records it may not have been created yet
        return []
    await recycler.undelete()
    await asyncio.sleep(KNOWN_S)
    log = await read_log(recycler.cluster, RECYCLED, Isolation.READ_UNCOMMITTED)
    return unexpected(RECYCLED, produced, log) + lost_writes(RECYCLED, kept, log)


async def wrong_audit(cluster: ClusterClient, journal: Journal) -> list[str]:
    """Acknowledged changes of topics that are not in the audit once, and events in another order than the changes."""
    log = await read_log(cluster, TopicPartition(AUDIT_TOPIC, 0), Isolation.READ_UNCOMMITTED)
    events = [AuditEvent.from_json(record.value or b"") for record in log]
    found = [
        f"audit: event {after.sequence} comes after {before.sequence}"
        for before, after in pairwise(events)
        if after.sequence <= before.sequence
    ]
    of_topics = [
        event for event in events if event.key == PARTITIONS and event.outcome is AuditOutcome.CHANGED
    ]
    created = Counter(event.resource for event in of_topics if event.before is None)
    deleted = Counter(event.resource for event in of_topics if event.after is None)
    for name, state in journal.topics.items():
        resource, is_deleted = f"topic/{name}", state is TopicState.DELETED
        counts = created[resource], deleted[resource]
        if state is not TopicState.UNKNOWN and counts != (1, is_deleted):
            found.append(
                f"audit: {name} has {counts[0]} creations and {counts[1]} deletions, and is {state.value}"
            )
    return found


async def wrong_topics(cluster: ClusterClient, journal: Journal) -> list[str]:
    """Topics that exist against what their administrator was told."""
    existing = set(await Admin(cluster).describe_topics())
    return [
        f"topic: {name} should be {state.value}"
        for name, state in journal.topics.items()
        if state is not TopicState.UNKNOWN and (state is TopicState.EXISTS) != (name in existing)
    ]


def different_metadata(hashes: Mapping[str, Mapping[int, bytes]]) -> list[str]:
    """Revisions at which brokers have different metadata.

    :param hashes: Broker -> revision -> hash.
    """
    first: dict[int, tuple[str, bytes]] = {}
    return [
        f"metadata: {name} and {first[revision][0]} are different at revision {revision}"
        for name, of_broker in hashes.items()
        for revision, found in of_broker.items()
        if first.setdefault(revision, (name, found))[1] != found
    ]


def unexpected(tp: TopicPartition, produced: Sequence[Produced], log: Log) -> list[str]:
    """Records that no application sent."""
    sent = {record.value for record in produced}
    return [
        f"unexpected: {tp} offset {record.offset} was never sent"
        for record in log
        if record.value not in sent
    ]


def duplicates(tp: TopicPartition, log: Log) -> list[str]:
    """Records of idempotent producers that are in the log twice."""
    seen: dict[bytes | None, int] = {}
    found = []
    for record in log:
        if record.value in seen and not _is_fast(record.value):
            found.append(
                f"duplicate: {tp} has one record at offsets {seen[record.value]} and {record.offset}"
            )
        seen[record.value] = record.offset
    return found


def nonmonotonic(tp: TopicPartition, log: Log) -> list[str]:
    """Records of one producer that are in another order than it sent them."""
    last: dict[bytes, int] = {}
    found = []
    for record in log:
        producer, number = (record.value or b"").rstrip(b"\0").split(b"-")[:2]
        if last.get(producer, -1) > int(number) and not _is_fast(producer):
            found.append(
                f"nonmonotonic: {tp} offset {record.offset} is {producer!r} {int(number)} after {last[producer]}"
            )
        last[producer] = int(number)
    return found


def _is_fast(value: bytes | None) -> bool:
    return (value or b"").startswith(FAST.encode())


def lost_writes(tp: TopicPartition, produced: Sequence[Produced], log: Log) -> list[str]:
    """Acknowledged records that are not in the log at their offset."""
    values = {record.offset: record.value for record in log}
    return [
        f"lost write: {tp} offset {record.offset} was acknowledged"
        for record in produced
        if record.outcome is Outcome.ACKNOWLEDGED and values.get(record.offset) != record.value
    ]


def lost_keys(tp: TopicPartition, produced: Sequence[Produced], log: Log) -> list[str]:
    """Keys of a compacted topic that have no record at or after the latest acknowledged one."""
    latest_acknowledged: dict[bytes, int] = {}
    for record in produced:
        if record.outcome is Outcome.ACKNOWLEDGED:
            latest_acknowledged[record.key] = max(record.offset, latest_acknowledged.get(record.key, -1))
    latest = {record.key: record.offset for record in log}
    return [
        f"lost key: {tp} key {key!r} was acknowledged at offset {offset}, the latest is at {latest.get(key)}"
        for key, offset in latest_acknowledged.items()
        if latest.get(key, -1) < offset
    ]


def lost_reads(tp: TopicPartition, read: Mapping[int, Read], log: Log, lost_before_s: float) -> list[str]:
    """Records that a reader has seen, and that are not in the log at their offset."""
    values = {record.offset: record.value for record in log}
    return [
        f"lost read: {tp} offset {offset} was read"
        for offset, record in read.items()
        if record.at_s > lost_before_s and values.get(offset) != record.value
    ]


def torn_transactions(
    journal: Journal,
    committed_values: dict[int, set[bytes]],
    lost_before_s: float,
    unread: Collection[TopicPartition] = (),
) -> list[str]:
    """Transactions that are visible in part, or against their outcome.

    :param lost_before_s: What was acknowledged before this time may be lost; -1 if nothing may. A transaction whose
        end was lost stays open for ever, so that readers do not see later ones.
    :param unread: Partitions that were not read.
    """
    sent: defaultdict[int, set[bytes]] = defaultdict(set)
    for record in journal.records:
        if record.transaction >= 0 and record.tp not in unread:
            sent[record.transaction].add(record.value)
    found = []
    for number, outcome in journal.transactions.items():
        visible = committed_values.get(number, set())
        of_all = f"{len(visible)} of {len(sent[number])} records are visible"
        if outcome is Outcome.ABORTED and visible and journal.transactions_began_s[number] > lost_before_s:
            found.append(f"aborted read: transaction {number} was aborted; {of_all}")
        if lost_before_s >= 0 or visible == sent[number]:
            continue
        if outcome is Outcome.ACKNOWLEDGED:
            found.append(f"torn: transaction {number} was committed; {of_all}")
        if outcome is Outcome.UNKNOWN and visible:
            found.append(f"torn: of transaction {number} {of_all}")
    return found
