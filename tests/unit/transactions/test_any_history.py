"""Invariants under random requests of producers and coordinator failovers."""

import random

import pytest

from barnabas.base.ids import TopicPartition
from barnabas.transactions.states import PREPARED, TRANSITIONS, TransactionState
from barnabas.transactions.transaction import LAST_EPOCH, NO_EPOCH, TransactionMetadata
from barnabas.wire.errors import ErrorCode, KafkaError
from support.transaction_shards import TransactionWorld

NAMES = ("a", "b")
PARTITIONS = tuple(TopicPartition("t", index) for index in range(3))
EVENTS_COUNT = 400

#: Valid responses to any request.
VALID_ERRORS = {
    ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
}  # fmt: skip


class History:
    """Random events, with a check of the invariants after each."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.world = TransactionWorld(level=self.rng.choice([0, 1, 2]))
        self.given: list[tuple[int, int]] = [(-1, -1)]  #: every producer id and epoch ever assigned
        self.taken: set[tuple[int, int]] = set()  #: by a producer that started again
        self.seen: dict[str, TransactionMetadata] = {}

    def producer(self) -> tuple[int, int]:
        """Return a producer with an id, preferably a recent one."""
        return self.rng.choice(self.given[-4:] if self.rng.random() < 0.9 else self.given)

    def event(self) -> None:
        kind = self.rng.choices(
            ["init", "come back", "add", "end", "markers", "wait", "restart", "refuse", "far epoch", "ids"],
            [4, 4, 30, 30, 30, 4, 4, 3, 2, 2],
        )[0]
        getattr(self, f"_{kind.replace(' ', '_')}")()

    def _init(self) -> None:
        given = self.world.init(self.rng.choice(NAMES))
        who = (given.producer_id, given.producer_epoch)
        assert who not in self.taken, "two new producers never have the same identity"
        self.taken.add(who)
        self.given.append(who)

    def _come_back(self) -> None:
        given = self.world.init(self.rng.choice(NAMES), expected=self.producer())
        self.given.append((given.producer_id, given.producer_epoch))

    def _add(self) -> None:
        name, who = self.rng.choice(NAMES), self.producer()
        self.world.add(name, *who, self.rng.choice(PARTITIONS), version=self.rng.choice([0, 2]))
        self._was_current(name, who)

    def _end(self) -> None:
        name, who = self.rng.choice(NAMES), self.producer()
        version, commit = self.rng.choice([0, 2]), self.rng.random() < 0.5
        ended = self.world.end(name, *who, commit=commit, version=version)
        self.given.append((ended.producer_id, ended.producer_epoch))
        outcome = TransactionState.COMPLETE_COMMIT if commit else TransactionState.COMPLETE_ABORT
        assert ended.state is outcome or self.world[name].state is outcome

    def _was_current(self, name: str, who: tuple[int, int]) -> None:
        known = self.world[name]
        assert (known.producer_id, known.producer_epoch) == who, "a fenced producer never writes"

    def _markers(self) -> None:
        self.world.write_markers()

    def _wait(self) -> None:
        self.world.wait(self.rng.choice([1, 1000, 40_000]))

    def _restart(self) -> None:
        before = {name: self._stored(each) for name, each in self._transactions().items()}
        self.world.start()
        assert self._transactions() == before, "only the last request is forgotten"
        pending = {each.transactional_id for each in self.world.markers}
        assert pending == {name for name, each in before.items() if each.state in PREPARED}

    def _stored(self, transaction: TransactionMetadata) -> TransactionMetadata:
        """Return the state as far as it is stored."""
        if self.world.level >= 1:
            return transaction._replace(last_epoch=NO_EPOCH)
        return transaction._replace(
            last_epoch=NO_EPOCH, previous_producer_id=-1, next_producer_id=-1, client_version=0
        )

    def _refuse(self) -> None:
        refused = self.world.refusal is None
        self.world.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE) if refused else None

    def _ids(self) -> None:
        self.world.out_of_ids = not self.world.out_of_ids

    def _far_epoch(self) -> None:
        """Advance a producer's epoch close to the maximum."""
        for name, known in self._transactions().items():
            if known.state in PREPARED or known.producer_epoch > LAST_EPOCH - 2:
                continue
            far = known._replace(producer_epoch=LAST_EPOCH - 1, last_epoch=NO_EPOCH)
            self.world.overwrite(far)
            self.given.append((far.producer_id, far.producer_epoch))
            self.seen[name] = far
            return

    def _transactions(self) -> dict[str, TransactionMetadata]:
        return dict(self.world.shard.transactions)

    def check(self) -> None:
        """Check the invariants between two events."""
        for name, known in self._transactions().items():
            before = self.seen.get(name)
            if before is not None and before is not known and before.producer_id == known.producer_id:
                assert known.producer_epoch >= before.producer_epoch, "an epoch never decreases"
            if before is not None and before.state in PREPARED and known.state is not before.state:
                assert known.state in TRANSITIONS[before.state]
            self.seen[name] = known
        ids = [each.producer_id for each in self._transactions().values()]
        assert len(ids) == len(set(ids)), "a producer id belongs to one transactional id"


@pytest.mark.parametrize("seed", range(30))
def test_the_invariants_hold(seed: int) -> None:
    history = History(seed)
    for _ in range(EVENTS_COUNT):
        try:
            history.event()
        except KafkaError as error:
            if error.code not in VALID_ERRORS:
                raise
        history.check()


def test_a_retried_completion_does_not_complete_the_next_transaction() -> None:
    world = TransactionWorld(level=0)
    producer = world.init("a")
    who = producer.producer_id, producer.producer_epoch
    world.add("a", *who, PARTITIONS[0], version=0)
    world.end("a", *who, version=0)
    [prepared] = world.markers
    world.refusal = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    world.write_markers()
    world.refusal, world.markers = None, [prepared]
    world.write_markers()  # a second notification, before the retry
    world.wait(1)
    world.add("a", *who, PARTITIONS[0], version=0)
    world.end("a", *who, version=0)
    world.wait(1_000)
    assert world["a"].state is TransactionState.PREPARE_COMMIT
