import random
from collections.abc import Sequence
from typing import Any

import pytest

from barnabas.base.clock import ManualClock
from barnabas.replication import fetch_sessions as module
from barnabas.replication.fetch_sessions import (
    EVICTION_AGE_MS,
    FINAL_EPOCH,
    INITIAL_EPOCH,
    FetchContext,
    FetchSessionCache,
)
from barnabas.replication.fetch_targets import EndOfEpoch, FetchData, FetchedPartition, FetchTarget, Key
from barnabas.wire.errors import ErrorCode, KafkaError

EPOCH_MAX = 2**31 - 1


def fetch_request(
    *partitions: tuple[str, int, int],
    session: int = 0,
    epoch: int = 0,
    forgotten_topics: Sequence[tuple[str, int]] = (),
) -> FetchData:
    """Build a request for (topic, partition, offset)..., in this order."""
    return fetch_data(
        [
            ((topic, index), FetchTarget(topic, bytes(16), index, offset, 0, -1, -1, by_id=False))
            for topic, index, offset in partitions
        ],
        session,
        epoch,
        forgotten_topics,
    )


def fetch_data(
    requested: Sequence[tuple[Key, FetchTarget]] = (),
    session: int = 0,
    epoch: int = 0,
    forgotten_topics: Sequence[Key] = (),
) -> FetchData:
    return FetchData(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=0,
        isolation_level=0,
        session_id=session,
        session_epoch=epoch,
        requested=requested,
        forgotten=forgotten_topics,
    )


def targets(context: FetchContext) -> list[tuple[str, int, int]]:
    return [(target.topic, target.index, target.fetch_offset) for _, target in context.targets]


class Cache:
    """A cache with its clock."""

    def __init__(self, slots_count: int = 2) -> None:
        self.clock = ManualClock()
        self.cache = FetchSessionCache(slots_count, self.clock, random.Random(3))

    def begin(self, request: FetchData, *, ids: bool = False) -> FetchContext:
        return self.cache.begin(request, uses_topic_ids=ids)

    def refused(self, request: FetchData, *, ids: bool = False) -> KafkaError:
        before = self.cache.statistics()
        with pytest.raises(KafkaError) as raised:
            self.begin(request, ids=ids)
        assert self.cache.statistics() == before
        return raised.value


A0, A1, B0 = ("a", 0, 10), ("a", 1, 11), ("b", 0, 12)


def test_a_full_fetch_with_epoch_0_gets_a_session() -> None:
    context = Cache().begin(fetch_request(A0, B0))
    assert context.session_id > 0
    assert not context.is_incremental
    assert targets(context) == [A0, B0]


def test_a_client_without_sessions_gets_none() -> None:
    cache = Cache()
    context = cache.begin(fetch_request(A0, epoch=FINAL_EPOCH))
    assert (context.session_id, targets(context)) == (0, [A0])
    assert cache.cache.statistics()["sessions_count"] == 0


def test_a_session_may_start_empty_and_grow() -> None:
    cache = Cache()
    session = cache.begin(fetch_request(epoch=INITIAL_EPOCH)).session_id
    assert targets(cache.begin(fetch_request(A0, session=session, epoch=1))) == [A0]


def test_the_last_of_duplicate_partitions_applies() -> None:
    assert targets(Cache().begin(fetch_request(A0, B0, ("a", 0, 77)))) == [("a", 0, 77), B0]


def test_an_incremental_fetch_reads_every_partition_of_the_session() -> None:
    cache = Cache()
    session = cache.begin(fetch_request(A0, A1, B0)).session_id
    context = cache.begin(fetch_request(session=session, epoch=1))
    assert context.is_incremental
    assert context.session_id == session
    assert targets(context) == [A0, A1, B0]


def test_an_incremental_fetch_changes_adds_and_forgets_partitions() -> None:
    cache = Cache()
    session = cache.begin(fetch_request(A0, A1)).session_id
    request = fetch_request(
        ("a", 1, 99), B0, session=session, epoch=1, forgotten_topics=[("a", 0), ("never", 3)]
    )
    assert targets(cache.begin(request)) == [("a", 1, 99), B0]
    assert targets(cache.begin(fetch_request(session=session, epoch=2))) == [("a", 1, 99), B0]


def test_a_changed_partition_replaces_all_former_fields() -> None:
    cache = Cache()
    session = cache.begin(fetch_request(A0)).session_id
    requested = FetchTarget("a", bytes(16), 0, 1, 2, 3, 4, by_id=False)
    [(_, target)] = cache.begin(fetch_data([(("a", 0), requested)], session, 1)).targets
    assert target == requested


def test_sessions_by_topic_id_are_keyed_by_id() -> None:
    cache = Cache()
    topic_id = b"i" * 16
    requested = FetchTarget("", topic_id, 0, 5, 0, -1, -1, by_id=True)
    session = cache.begin(fetch_data([((topic_id, 0), requested)]), ids=True).session_id
    assert cache.begin(fetch_data([], session, 1, [(topic_id, 0)]), ids=True).targets == []


def test_the_final_epoch_ends_a_session() -> None:
    cache = Cache()
    session = cache.begin(fetch_request(A0)).session_id
    assert cache.begin(fetch_request(A0, session=session, epoch=FINAL_EPOCH)).session_id == 0
    error = cache.refused(fetch_request(session=session, epoch=1))
    assert error.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_session_without_partitions_ends() -> None:
    cache = Cache()
    session = cache.begin(fetch_request(A0)).session_id
    last = cache.begin(fetch_request(session=session, epoch=1, forgotten_topics=[("a", 0)]))
    assert (last.session_id, last.targets, last.is_incremental) == (0, [], False)
    error = cache.refused(fetch_request(A0, session=session, epoch=2))
    assert error.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_a_partition_that_is_added_and_forgotten_at_once_is_read_if_it_is_the_only_one() -> None:
    cache = Cache()
    session = cache.begin(fetch_request(A0)).session_id
    request = fetch_request(B0, session=session, epoch=1, forgotten_topics=[("a", 0), ("b", 0)])
    last = cache.begin(request)
    assert (last.session_id, targets(last)) == (0, [B0])


def test_the_initial_epoch_replaces_a_session() -> None:
    cache = Cache()
    old = cache.begin(fetch_request(A0)).session_id
    new = cache.begin(fetch_request(B0, session=old, epoch=INITIAL_EPOCH)).session_id
    assert new not in (0, old)
    assert cache.cache.statistics()["sessions_count"] == 1
    assert targets(cache.begin(fetch_request(session=new, epoch=1))) == [B0]


def test_an_unknown_session_is_an_error() -> None:
    error = Cache().refused(fetch_request(session=77, epoch=1))
    assert error.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert "77" in error.message


@pytest.mark.parametrize("epoch", [2, 5, EPOCH_MAX])
def test_an_unexpected_epoch_is_an_error_and_the_session_is_kept(epoch: int) -> None:
    cache = Cache()
    session = cache.begin(fetch_request(A0)).session_id
    error = cache.refused(fetch_request(B0, session=session, epoch=epoch))
    assert error.code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    assert f"expects epoch 1, not {epoch}" in error.message
    assert targets(cache.begin(fetch_request(session=session, epoch=1))) == [A0]


def test_a_repeated_epoch_is_an_error() -> None:
    cache = Cache()
    session = cache.begin(fetch_request(A0)).session_id
    cache.begin(fetch_request(session=session, epoch=1))
    assert (
        cache.refused(fetch_request(session=session, epoch=1)).code is ErrorCode.INVALID_FETCH_SESSION_EPOCH
    )


def test_epochs_wrap_to_1_and_never_to_the_initial_one() -> None:
    cache = Cache()
    context = cache.begin(fetch_request(A0))
    assert context.session is not None
    context.session.epoch = EPOCH_MAX
    cache.begin(fetch_request(session=context.session_id, epoch=EPOCH_MAX))
    assert context.session.epoch == 1
    cache.begin(fetch_request(session=context.session_id, epoch=1))


@pytest.mark.parametrize("ids", [False, True])
def test_a_session_does_not_mix_names_and_ids(ids: bool) -> None:
    cache = Cache()
    session = cache.begin(fetch_request(A0), ids=ids).session_id
    error = cache.refused(fetch_request(session=session, epoch=1), ids=not ids)
    assert error.code is ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR


def test_a_full_cache_serves_new_clients_without_a_session() -> None:
    cache = Cache(slots_count=1)
    first = cache.begin(fetch_request(A0)).session_id
    context = cache.begin(fetch_request(B0))
    assert (context.session_id, targets(context)) == (0, [B0])
    assert cache.begin(fetch_request(session=first, epoch=1)).session_id == first


def test_the_least_recently_used_session_is_evicted_once_it_is_old() -> None:
    cache = Cache(slots_count=2)
    first, second = cache.begin(fetch_request(A0)).session_id, cache.begin(fetch_request(A1)).session_id
    cache.clock.advance(1)
    cache.begin(fetch_request(session=first, epoch=1))
    cache.clock.advance(EVICTION_AGE_MS - 2)
    assert cache.begin(fetch_request(B0)).session_id == 0
    cache.clock.advance(1)
    third = cache.begin(fetch_request(B0)).session_id
    assert third > 0
    assert cache.refused(fetch_request(session=second, epoch=1)).code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.begin(fetch_request(session=first, epoch=2)).session_id == first
    assert cache.cache.statistics() == {"sessions_count": 2, "partitions_count": 2, "evictions_count": 1}


def test_a_session_that_grows_beyond_the_limit_of_a_request_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "SESSION_TARGETS_COUNT_MAX", 2)
    cache = Cache()
    session = cache.begin(fetch_request(A0, A1)).session_id
    assert (
        len(cache.begin(fetch_request(B0, session=session, epoch=1, forgotten_topics=[("a", 0)])).targets)
        == 2
    )
    with pytest.raises(KafkaError, match="at most 2 partitions each") as raised:
        cache.begin(fetch_request(A0, session=session, epoch=2))
    assert raised.value.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert cache.cache.statistics()["partitions_count"] == 0


def test_a_session_whose_id_is_not_sent_is_discarded() -> None:
    cache = Cache()
    begun = cache.begin(fetch_request(A0))
    assert cache.cache.session_id_when_throttled(begun) == 0
    assert cache.cache.statistics()["sessions_count"] == 0
    session = cache.begin(fetch_request(A0)).session_id
    assert (
        cache.cache.session_id_when_throttled(cache.begin(fetch_request(session=session, epoch=1))) == session
    )
    assert cache.cache.session_id_when_throttled(cache.begin(fetch_request(A0, epoch=FINAL_EPOCH))) == 0
    assert cache.cache.statistics()["sessions_count"] == 1


def test_the_number_of_partitions_in_all_sessions_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TARGETS_COUNT_MAX", 3)
    cache = Cache(slots_count=10)
    session = cache.begin(fetch_request(A0, A1)).session_id
    unremembered = cache.begin(fetch_request(A0, A1))
    assert (unremembered.session_id, len(unremembered.targets)) == (0, 2)
    assert cache.begin(fetch_request(B0)).session_id > 0
    assert len(cache.begin(fetch_request(A0, session=session, epoch=1)).targets) == 2
    with pytest.raises(KafkaError, match="3 in all sessions"):
        cache.begin(fetch_request(B0, session=session, epoch=2))
    assert cache.cache.statistics()["partitions_count"] == 1


@pytest.mark.parametrize("name", ["n" * 250, "ä"])
def test_a_name_that_no_topic_can_have_is_not_stored(name: str) -> None:
    cache, impossible = Cache(), (name, 0, 10)
    full = cache.begin(fetch_request(A0, impossible))
    assert (full.session_id, targets(full)) == (0, [A0, impossible])
    session = cache.begin(fetch_request(A0, B0)).session_id
    request = fetch_request(impossible, session=session, epoch=1, forgotten_topics=[("a", 0)])
    last = cache.begin(request)
    assert (last.session_id, targets(last), last.is_incremental) == (0, [B0, impossible], False)
    assert cache.cache.statistics()["sessions_count"] == 0
    error = cache.refused(fetch_request(session=session, epoch=2))
    assert error.code is ErrorCode.FETCH_SESSION_ID_NOT_FOUND


def test_the_longest_name_of_a_topic_is_stored() -> None:
    cache, longest = Cache(), ("n" * 249, 0, 10)
    session = cache.begin(fetch_request(A0)).session_id
    assert session > 0
    assert cache.begin(fetch_request(longest, session=session, epoch=1)).session_id == session
    assert cache.begin(fetch_request(longest)).session_id > 0


def test_a_cache_without_slots_has_no_sessions() -> None:
    assert Cache(slots_count=0).begin(fetch_request(A0)).session_id == 0


def test_session_ids_are_unique() -> None:
    class Stubborn(random.Random):
        drawn = iter([5, 5, 5, 6])

        def randrange(self, *bounds: int) -> int:  # type: ignore[override]
            return next(self.drawn)

    cache = FetchSessionCache(10, ManualClock(), Stubborn())
    ids = [cache.begin(fetch_request(A0), uses_topic_ids=False).session_id for _ in range(2)]
    assert ids == [5, 6]


def test_partitions_with_data_move_to_the_end() -> None:
    cache = Cache()
    context = cache.begin(fetch_request(A0, A1, B0))
    assert context.session is not None
    context.session.served(("a", 0))
    assert targets(cache.begin(fetch_request(session=context.session_id, epoch=1))) == [A1, B0, A0]


def test_a_partition_forgotten_during_a_read_stays_forgotten() -> None:
    cache = Cache()
    context = cache.begin(fetch_request(A0, A1))
    assert context.session is not None
    cache.begin(fetch_request(session=context.session_id, epoch=1, forgotten_topics=[("a", 0)]))
    context.session.served(("a", 0))
    assert targets(cache.begin(fetch_request(session=context.session_id, epoch=2))) == [A1]


def new_target() -> FetchTarget:
    return FetchTarget("a", bytes(16), 0, 0, 100, -1, -1, by_id=False)


def data(**fields: Any) -> FetchedPartition:
    return FetchedPartition(**{"partition_index": 0, "high_watermark": 5, "log_start_offset": 0, **fields})


def test_a_partition_is_included_the_first_time_and_omitted_while_unchanged() -> None:
    target = new_target()
    assert target.record_sent(data())
    assert not target.record_sent(data())


@pytest.mark.parametrize(
    "fields",
    [
        {"records": b"x"},
        {"error_code": ErrorCode.OFFSET_OUT_OF_RANGE},
        {"high_watermark": 6},
        {"log_start_offset": 1},
        {"diverging_epoch": EndOfEpoch(0, 0)},
    ],
)
def test_any_difference_is_a_change(fields: dict[str, Any]) -> None:
    target = new_target()
    target.record_sent(data())
    assert target.record_sent(data(**fields))


def test_records_errors_and_divergence_are_always_included() -> None:
    target = new_target()
    for fields in (
        {"records": b"x"},
        {"error_code": 1},
        {"diverging_epoch": EndOfEpoch(0, 0)},
    ):
        assert target.record_sent(data(**fields))
        assert target.record_sent(data(**fields))
