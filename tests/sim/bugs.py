"""Bugs that can be planted, to see that the simulator finds them. Each function plants one, for the whole process."""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import replace
from typing import Any

from barnabas.coordinator.shard_log import ShardLog
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.consumer.group import ConsumerGroup
from barnabas.groups.offsets.table import OffsetTable
from barnabas.log.local_log import LocalLog
from barnabas.log.log_directory import LogDirectory
from barnabas.log.log_manager import LogManager
from barnabas.log.partition_log import PartitionLog
from barnabas.log.producers import producer_recovery
from barnabas.log.producers.log_producers import LogProducers
from barnabas.log.producers.producer_state_manager import ProducerStateEntry
from barnabas.log.startup import recovery
from barnabas.metadata import broker_lifecycle, isr, partition_change_builder, undeletion
from barnabas.metadata.brokers import BROKERS
from barnabas.metadata.decision import Decision
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.isr import IsrChange
from barnabas.metadata.partition_change_builder import Election
from barnabas.metadata.record_type import Table
from barnabas.metadata.store import Commit, Conflict, HistoryLost, OutcomeUnknown
from barnabas.metadata.topics import DELETED_TOPICS, PartitionRegistration
from barnabas.metadata.trash import TrashRecord
from barnabas.metadata.writer import MetadataWriter
from barnabas.replication import deletion_reporter, follower_sessions
from barnabas.replication.flusher import Flusher
from barnabas.replication.partition import Partition
from barnabas.replication.replica_fetcher import ReplicaFetcher
from barnabas.server import controller
from barnabas.server.audit_publisher import AuditPublisher
from barnabas.server.broker_lifecycle import BrokerLifecycle
from barnabas.server.transaction_markers import TransactionMarkers
from barnabas.wire.errors import ErrorCode

BUGS: dict[str, Callable[[], None]] = {}


def bug(plant: Callable[[], None]) -> Callable[[], None]:
    """Register a bug under the name of its function."""
    BUGS[plant.__name__.replace("_", "-")] = plant
    return plant


def _replace(owner: Any, name: str, function: Any) -> None:
    setattr(owner, name, function)


@bug
def writes_are_acknowledged_before_they_are_flushed() -> None:
    def when_flushed(_flusher: Flusher, _log: Any) -> "asyncio.Future[None]":
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        future.set_result(None)
        return future

    _replace(Flusher, "when_flushed", when_flushed)


@bug
def directories_are_not_flushed() -> None:
    sync = LocalLog.sync

    def sync_files(log: LocalLog, log_end_offset: int, snapshot_offset: int) -> None:
        log.unsynced_directory = False
        sync(log, log_end_offset, snapshot_offset)

    _replace(LocalLog, "sync", sync_files)


@bug
def recovery_accepts_torn_batches() -> None:
    _replace(recovery, "_is_sound", lambda *_: True)


@bug
def logs_are_not_recovered_after_a_crash() -> None:
    _replace(LogDirectory, "remove_clean_shutdown_marker", lambda _directory: None)


@bug
def producers_are_forgotten_by_a_start() -> None:
    _replace(producer_recovery, "_replay", lambda *_: None)


@bug
def retries_are_not_recognized() -> None:
    _replace(ProducerStateEntry, "find_duplicate", lambda *_: None)
    _replace(ProducerStateEntry, "check_sequence", lambda *_: None)


@bug
def unanswered_commits_are_taken_for_done() -> None:
    async def _commit(writer: MetadataWriter, decision: Any) -> int:
        try:
            return await writer._store.commit(decision.reads, decision.changes, "")
        except OutcomeUnknown:
            return writer.image.revision

    _replace(MetadataWriter, "_commit", _commit)


@bug
def unanswered_commits_are_taken_for_failed() -> None:
    async def _commit(writer: MetadataWriter, decision: Any) -> int:
        try:
            return await writer._store.commit(decision.reads, decision.changes, "")
        except OutcomeUnknown:
            raise Conflict(writer.image.revision) from None

    _replace(MetadataWriter, "_commit", _commit)


@bug
def markers_are_dropped() -> None:
    async def write(_markers: TransactionMarkers, _marker: Any, partitions: Any, _version: int) -> Any:
        return dict.fromkeys(partitions, ErrorCode.NONE)

    _replace(TransactionMarkers, "write", write)


@bug
def gaps_between_segments_are_kept() -> None:
    _replace(recovery, "_first_gap", lambda *_: None)


# Bugs of a cluster


@bug
def acks_all_is_answered_before_replication() -> None:
    _replace(Partition, "when_replicated", lambda _partition, _offset: None)


@bug
def brokers_stay_in_sync_after_a_power_failure() -> None:
    _replace(LogManager, "was_closed_cleanly", lambda *_: True)


@bug
def leaders_keep_their_epoch_after_a_power_failure() -> None:
    after_unclean_stop = broker_lifecycle._Joining._after_unclean_stop

    def keep_epoch(joining: Any, state: PartitionRegistration, *arguments: Any) -> PartitionRegistration:
        after = after_unclean_stop(joining, state, *arguments)
        return replace(after, leader_epoch=state.leader_epoch) if after.leader == state.leader else after

    _replace(broker_lifecycle._Joining, "_after_unclean_stop", keep_epoch)


@bug
def any_replica_may_lead() -> None:
    leader = partition_change_builder._leader

    def any_leader(state: PartitionRegistration, up: Any, _election: Election) -> int:
        return leader(state, up, Election.UNCLEAN)

    _replace(partition_change_builder, "_leader", any_leader)


@bug
def followers_truncate_to_their_high_watermark() -> None:
    add = ReplicaFetcher.add

    def truncate_and_add(fetcher: ReplicaFetcher, partition: Partition) -> None:
        partition.log.truncate_to(partition.log.high_watermark)
        add(fetcher, partition)

    _replace(ReplicaFetcher, "add", truncate_and_add)


@bug
def followers_do_not_truncate() -> None:
    _replace(follower_sessions, "find_divergence", lambda *_: None)


@bug
def the_high_watermark_ignores_followers_that_are_being_added() -> None:
    request_isr = Partition.request_isr

    def request(partition: Partition, lagging: Any = ()) -> IsrChange | None:
        change = request_isr(partition, lagging)
        partition.pending_isr = None
        return change

    _replace(Partition, "request_isr", request)


@bug
def lagging_followers_are_removed_before_that_is_committed() -> None:
    request_isr = Partition.request_isr

    def request(partition: Partition, lagging: Any = ()) -> IsrChange | None:
        change = request_isr(partition, lagging)
        if lagging and change is not None:
            partition.isr = change.isr
        return change

    _replace(Partition, "request_isr", request)


@bug
def the_high_watermark_moves_without_enough_replicas() -> None:
    advance = Partition._advance_high_watermark

    def advance_always(partition: Partition, *grown_bytes: int) -> None:
        is_under_min_isr, partition.is_under_min_isr = partition.is_under_min_isr, False
        advance(partition, *grown_bytes)
        partition.is_under_min_isr = is_under_min_isr

    _replace(Partition, "_advance_high_watermark", advance_always)


@bug
def followers_join_without_their_broker_epoch() -> None:
    def may_join(_image: MetadataImage, _change: IsrChange, follower: int, up: Any) -> bool:
        return follower in up

    _replace(isr, "_may_join", may_join)


@bug
def the_position_of_a_follower_outlives_its_epoch() -> None:
    _replace(Partition, "_drop_follower_state", lambda *_: None)


@bug
def dead_brokers_are_not_fenced() -> None:
    _replace(controller, "dead_brokers", lambda _image: [])


@bug
def lost_sessions_are_not_noticed() -> None:
    async def ignore(*_: Any) -> None:
        pass

    _replace(BrokerLifecycle, "_follow_session", ignore)


@bug
def a_reload_is_not_shown_to_the_listeners() -> None:
    _replace(MetadataImage, "changes_to", lambda *_: iter(()))


@bug
def a_reload_misses_a_commit() -> None:
    reload = MetadataWriter._reload

    async def reload_and_skip(writer: MetadataWriter, lost: HistoryLost) -> AsyncIterator[Commit]:
        commits = await reload(writer, lost)
        await anext(commits)
        return commits

    _replace(MetadataWriter, "_reload", reload_and_skip)


@bug
def the_first_broker_forgets_a_deletion() -> None:
    def decide(image: MetadataImage, topic_ids: Sequence[bytes], _broker_id: int) -> Decision[None]:
        rows = [topic_id.hex() for topic_id in topic_ids if topic_id.hex() in image.deleted_topics]
        reads = {DELETED_TOPICS.key(row): image.deleted_topics.revision(row) for row in rows}
        return Decision(None, tuple(map(DELETED_TOPICS.remove, rows)), reads)

    _replace(deletion_reporter, "decide_remove_deleted", decide)


@bug
def producers_are_not_truncated() -> None:
    _replace(LogProducers, "restore", lambda *_: None)


@bug
def offsets_are_committed_before_replication() -> None:
    _replace(ShardLog, "stored", lambda _log: None)


@bug
def markers_are_not_retried_on_another_leader() -> None:
    write = TransactionMarkers.write

    async def write_once(markers: TransactionMarkers, *arguments: Any) -> Any:
        outcomes = await write(markers, *arguments)
        dropped = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.LEADER_NOT_AVAILABLE)
        return {tp: ErrorCode.NONE if code in dropped else code for tp, code in outcomes.items()}

    _replace(TransactionMarkers, "write", write_once)


@bug
def epochs_without_records_are_kept() -> None:
    truncate_to = PartitionLog.truncate_to

    def truncate_records(log: PartitionLog, offset: int) -> Any:
        return truncate_to(log, offset) if offset < log.log_end_offset else []

    _replace(PartitionLog, "truncate_to", truncate_records)


@bug
def positions_of_removed_followers_stay_dropped() -> None:
    _replace(follower_sessions.FollowerSessions, "store_missing_positions", lambda *_: None)


@bug
def followers_report_what_they_have_not_flushed() -> None:
    _replace(ReplicaFetcher, "_needs_flush", lambda *_: False)


@bug
def followers_that_lagged_before_do_not_join() -> None:
    request_isr = Partition.request_isr

    def request(partition: Partition, lagging: Collection[int] = ()) -> IsrChange | None:
        change = request_isr(partition, lagging)
        if change is None or not set(lagging) & set(change.isr):
            return change
        partition.cancel_isr_request()
        return None

    _replace(Partition, "request_isr", request)


@bug
def partitions_are_assigned_before_they_are_given_up() -> None:
    _replace(ConsumerGroup, "is_owned", lambda *_: False)


@bug
def replicas_stay_in_sync_in_the_trash() -> None:
    restored_states = undeletion._restored_states

    def restore_all(image: MetadataImage, trashed: TrashRecord, min_isr: int | None) -> Any:
        clean = {key: replace(broker, unclean_epoch=0) for key, broker in image.brokers.items()}
        brokers = Table(clean, image.brokers.revisions)
        return restored_states(
            replace(image, tables={**image.tables, BROKERS.name: brokers}), trashed, min_isr
        )

    _replace(undeletion, "_restored_states", restore_all)


@bug
def aborted_transactions_commit_their_offsets() -> None:
    end_transaction = OffsetTable.end_transaction

    def end_as_committed(table: OffsetTable, producer_id: int, *, commit: bool) -> None:
        end_transaction(table, producer_id, commit=True)

    _replace(OffsetTable, "end_transaction", end_as_committed)


@bug
def a_new_leader_of_the_audit_ignores_the_store() -> None:
    led_partition = AuditPublisher._led_partition

    async def lead_with_an_empty_queue(publisher: AuditPublisher) -> Partition | None:
        epoch = publisher._leader_epoch
        partition = await led_partition(publisher)
        if publisher._leader_epoch != epoch:
            publisher._waiting = []
        return partition

    _replace(AuditPublisher, "_led_partition", lead_with_an_empty_queue)


@bug
def old_generations_may_commit_offsets() -> None:
    _replace(ClassicGroup, "check_offset_commit", lambda *_arguments, **_keywords: None)


@bug
def requests_are_decided_on_old_metadata() -> None:
    async def catch_up(_writer: MetadataWriter, timeout_ms: int | None = None) -> None:
        pass

    _replace(MetadataWriter, "catch_up", catch_up)
