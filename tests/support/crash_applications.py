"""Applications that read, transform and write in transactions, in a world whose broker may be killed."""

from collections.abc import Callable
from typing import Any, ClassVar

from barnabas.base.ids import TopicPartition
from barnabas.coordinator.result import CoordinatorResult, Pending, TransactionalProducer
from barnabas.groups.classic.heartbeat import Heartbeat
from barnabas.groups.classic.join import Join, JoiningClient
from barnabas.groups.consumer.client_info import Caller
from barnabas.groups.shard import GroupShard
from barnabas.transactions.end_txn import EndTxn
from barnabas.transactions.initialization import Initialization
from barnabas.transactions.partitions import Addition
from barnabas.transactions.shard import TransactionShard
from barnabas.wire.consumer_protocol.subscription import ConsumerProtocolSubscription
from barnabas.wire.consumer_protocol.versioned import write
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.wire.messages.offset_fetch import OffsetFetchRequestGroup, OffsetFetchRequestTopics
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.wire.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from support.consumer_groups import heartbeat_request, join_request
from support.crash_worlds import (
    GROUP,
    GROUP_LOG,
    INPUT,
    OUTPUT,
    TRANSACTION_LOG,
    CrashWorld,
    Killed,
    Output,
)

#: The application's transactional id.
NAME = "app"
INPUTS_COUNT = 8
SESSION_MS, REBALANCE_MS, TRANSACTION_MS = 10_000, 60_000, 30_000
RETRY_MS = 100
#: Longer than any session or transaction timeout.
LONG_MS = 600_000

#: Errors that clients retry.
RETRIED = {
    ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.UNSTABLE_OFFSET_COMMIT, ErrorCode.REBALANCE_IN_PROGRESS,
}  # fmt: skip


class IncarnationEnded(Exception):
    """This incarnation has ended; a new one must take over."""


class Troubles:
    """Faults other than a killed broker, each once, keyed by the number of inputs read at that time."""

    def __init__(self) -> None:
        self._left = {2: "abort", 4: "die before the commit", 6: "die while writing"}

    def at(self, offset: int, trouble: str) -> bool:
        return self._left.get(offset) == trouble and bool(self._left.pop(offset))


class Application:
    """One incarnation, a member of a classic group; a lost connection ends it, or it retries."""

    RECOVERY_MS: ClassVar = 30_000  #: timeout after which the next incarnation can take over from this one

    def __init__(self, world: CrashWorld, version: int, troubles: Troubles, *, asks_again: bool) -> None:
        """`version` is the transaction.version that its requests imply."""
        self.world, self.version, self.troubles, self.asks_again = world, version, troubles, asks_again
        self.member_id, self.generation = "", -1
        self.who, self.sequence = (-1, -1), 0
        self.given_up_ms = world.now_ms + LONG_MS

    def run(self) -> None:
        """Process inputs from the first uncommitted one to the last.

        :raises IncarnationEnded: If this incarnation ends before.
        """
        self.join()
        given = self.call(lambda: self.ask(TRANSACTION_LOG, self._initialize))
        self.who = given.producer_id, given.producer_epoch
        while (offset := self.call(self._offset)) < INPUTS_COUNT:
            self.call(self.heartbeat)
            self.transform(offset)

    # One request

    def call(self, request: Callable[[], Any]) -> Any:
        """Return the response, with as many retries as it takes."""
        while True:
            try:
                return request()
            except Killed:
                self._lose_connection()
            except KafkaError as error:
                if error.code not in RETRIED:
                    raise IncarnationEnded from error
                self.wait(RETRY_MS)

    def _lose_connection(self) -> None:
        self.world.start()
        if not self.asks_again:
            raise IncarnationEnded

    def wait(self, duration_ms: int) -> None:
        """Let time pass, up to a limit."""
        assert self.world.now_ms < self.given_up_ms, "the wait does not end"
        try:
            self.world.wait(duration_ms)
        except Killed:
            self._lose_connection()

    def ask(self, log: TopicPartition, event: Callable[[Any, CoordinatorResult, Pending[Any]], None]) -> Any:
        """Return the response to a request, which may be pending at first."""
        pending = self.world.ask(log, event)
        while pending not in self.world.answers:
            assert self.world.now_ms < self.given_up_ms, "the wait does not end"
            self.world.wait(RETRY_MS)
        answer = self.world.answers.pop(pending)
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    # The group

    def join(self) -> None:
        """Join as the leader and only member of a generation."""
        while True:
            joined = self.call(lambda: self.ask(GROUP_LOG, self._join))
            self.member_id = joined.member_id
            if joined.error_code == ErrorCode.NONE:
                self.generation = joined.generation_id
                assert [each.member_id for each in joined.members] == [self.member_id]
                if self.call(self._sync):
                    return

    def _join(self, shard: GroupShard, result: CoordinatorResult, pending: Pending[Any]) -> None:
        subscription = write(ConsumerProtocolSubscription(topics=[INPUT.topic]), 1)
        request = JoinGroupRequest(
            group_id=GROUP,
            member_id=self.member_id,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=REBALANCE_MS,
            protocol_type="consumer",
            protocols=[JoinGroupRequestProtocol(name="range", metadata=subscription)],
        )
        try:
            shard.join_group(result, Join(request, JoiningClient(NAME, "/h", 9), pending))
        except KafkaError as error:
            if error.code is not ErrorCode.UNKNOWN_MEMBER_ID:
                raise
            self.member_id = ""
            self._join(shard, result, pending)

    def _sync(self) -> bool:
        """Whether the generation still exists."""
        request = SyncGroupRequest(
            group_id=GROUP,
            member_id=self.member_id,
            generation_id=self.generation,
            protocol_type="consumer",
            protocol_name="range",
            assignments=[SyncGroupRequestAssignment(member_id=self.member_id, assignment=b"all")],
        )
        try:
            self.ask(GROUP_LOG, lambda shard, result, pending: shard.sync_group(result, pending, request))
        except KafkaError as error:
            if error.code not in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
                raise
            return False
        return True

    def heartbeat(self) -> None:
        beat = Heartbeat(GROUP, self.generation, self.member_id)
        self.ask(
            GROUP_LOG, lambda shard, result, pending: result.answer(pending, shard.heartbeat(result, beat))
        )

    def _offset(self) -> int:
        """Return the group's committed offset."""
        topics = [OffsetFetchRequestTopics(INPUT.topic, partition_indexes=[INPUT.partition])]
        requested = OffsetFetchRequestGroup(GROUP, topics=topics)
        (found,) = self.world.groups.offsets.fetch(requested, require_stable=True).topics[0].partitions
        if found.error_code:
            raise KafkaError(ErrorCode(found.error_code))
        return max(found.committed_offset, 0)

    # The transaction

    def transform(self, offset: int) -> None:
        """Write two outputs, and commit the offset of their inputs."""
        numbers = range(offset, min(offset + 2, INPUTS_COUNT))
        self._add(OUTPUT)
        for number in numbers:
            output = Output(number, self.who, self.sequence)
            self.call(lambda sent=output: self.world.produce(sent))
            self.sequence += 1
        if self.troubles.at(offset, "die while writing"):
            raise IncarnationEnded
        self._add(GROUP_LOG)
        self.call(lambda: self.ask(GROUP_LOG, self._committing(numbers.stop)))
        if self.troubles.at(offset, "die before the commit"):
            raise IncarnationEnded
        self._end(commit=not self.troubles.at(offset, "abort"))

    def _initialize(self, shard: TransactionShard, result: CoordinatorResult, pending: Pending[Any]) -> None:
        shard.initialize(result, pending, Initialization(NAME, TRANSACTION_MS))

    def _add(self, partition: TopicPartition) -> None:
        requested = Addition(NAME, *self.who, (partition,), self.version)
        self.call(
            lambda: self.ask(
                TRANSACTION_LOG,
                lambda shard, result, pending: shard.add_partitions(result, pending, requested),
            )
        )

    def _committing(self, offset: int) -> Callable[[GroupShard, CoordinatorResult, Pending[Any]], None]:
        partitions = [TxnOffsetCommitRequestPartition(INPUT.partition, offset)]
        topics = [TxnOffsetCommitRequestTopic(INPUT.topic, partitions)]
        member = (self.generation, self.member_id, None)
        request = TxnOffsetCommitRequest(NAME, GROUP, *self.who, *member, topics)

        def event(shard: GroupShard, result: CoordinatorResult, pending: Pending[Any]) -> None:
            result.producer = TransactionalProducer(NAME, *self.who)
            shard.offsets.commit_in_transaction(result, pending, request, 5)

        return event

    def _end(self, *, commit: bool) -> None:
        requested = EndTxn(NAME, *self.who, commit, self.version)
        ended = self.call(
            lambda: self.ask(
                TRANSACTION_LOG, lambda shard, result, pending: shard.end(result, pending, requested)
            )
        )
        self.who = ended.producer_id, ended.producer_epoch


class ConsumerApplication(Application):
    """A member of a group of the consumer protocol (KIP-848); its generation is its epoch."""

    RECOVERY_MS = 120_000  #: session timeouts are longer in this protocol

    def join(self) -> None:
        """Join until the input is assigned; earlier incarnations may still hold it."""
        self.member_id = f"m{self.world.rng.getrandbits(64):x}"
        owned: list[Any] = []
        self.generation = 0
        while not owned:
            try:
                answer = self._beat()
            except Killed:
                self._lose_connection()
                continue
            except KafkaError as error:
                if error.code not in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.FENCED_MEMBER_EPOCH):
                    raise
                self.generation = 0
                continue
            self.generation = answer.member_epoch
            owned = answer.assignment.topic_partitions if answer.assignment else []
            self.wait(RETRY_MS * 10)
        self.call(self.heartbeat)

    def _beat(self) -> Any:
        request = (
            heartbeat_request(GROUP, self.member_id, self.generation)
            if self.generation
            else join_request(GROUP, self.member_id, INPUT.topic)
        )
        caller = Caller(NAME, "/h", 1)
        return self.ask(
            GROUP_LOG,
            lambda shard, result, pending: shard.consumer.heartbeat(result, pending, request, caller),
        )

    def heartbeat(self) -> None:
        self.generation = self._beat().member_epoch
