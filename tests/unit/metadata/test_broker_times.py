from collections.abc import Awaitable, Callable
from dataclasses import replace

from barnabas.base.clock import ManualClock
from barnabas.metadata.broker_times import UNKNOWN_MS, BrokerTimes
from barnabas.metadata.brokers import BROKERS, BrokerRegistration
from barnabas.metadata.changed_keys import ChangedKeys
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.store import Commit, StoreChange
from support.images import broker
from support.loop import on_loop

LIVE = replace(broker(2), epoch=1)


def following(times: BrokerTimes, image: MetadataImage) -> Callable[[StoreChange], Awaitable[None]]:
    """Return a function that commits a change and shows it."""
    current = image

    async def commit(change: StoreChange) -> None:
        nonlocal current
        before = current
        current = before.replay(Commit(before.revision + 1, (change,)))
        await times.apply(before, current, ChangedKeys((change,)))

    return commit


def put(registration: BrokerRegistration) -> StoreChange:
    return BROKERS.put("2", registration)


@on_loop
async def test_a_time_is_that_of_the_last_change_of_epoch_or_fencing() -> None:
    clock = ManualClock()
    times = BrokerTimes(clock)
    commit = following(times, MetadataImage())
    assert times.since_ms(2) == UNKNOWN_MS
    await commit(put(LIVE))
    joined_ms = times.since_ms(2)
    assert joined_ms == clock.wall_ms()
    clock.advance(1_000)
    await commit(put(replace(LIVE, rack="b")))
    assert times.since_ms(2) == joined_ms
    await commit(put(replace(LIVE, fenced=True)))
    assert times.since_ms(2) == joined_ms + 1_000
    clock.advance(1_000)
    await commit(put(replace(LIVE, epoch=9)))
    assert times.since_ms(2) == joined_ms + 2_000
    await commit(BROKERS.remove("2"))
    assert times.since_ms(2) == UNKNOWN_MS


@on_loop
async def test_what_happened_before_the_start_is_not_known() -> None:
    times = BrokerTimes(ManualClock())
    commit = following(times, MetadataImage().replay(Commit(1, (put(LIVE),))))
    await commit(put(replace(LIVE, rack="b")))
    assert times.since_ms(2) == UNKNOWN_MS
