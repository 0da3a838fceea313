"""Statistics of transactional ids."""

from barnabas.base.ids import TopicPartition
from barnabas.transactions.statistics import TransactionCounts
from support.transaction_shards import TransactionWorld

A = TopicPartition("a", 0)


def test_ids_are_counted_by_the_state_of_their_transaction() -> None:
    world = TransactionWorld()
    for name in ("x", "y"):
        world.add(name, *_who(world, name), A)
    _who(world, "z")
    world.end("y", world["y"].producer_id, world["y"].producer_epoch)
    statistics = world.shard.statistics()
    assert statistics["transactional_ids"] == {"Ongoing": 1, "PrepareCommit": 1, "Empty": 1}
    assert statistics["transactional_ids_count"] == 3


def test_timeouts_and_expirations_are_counted_and_a_restart_is_not() -> None:
    world = TransactionWorld(transactional_id_expiration_ms="200000")
    world.add("x", *_who(world, "x"), A)
    world.wait(80_000)
    assert world.counts == TransactionCounts(timed_out_count=1)
    world.write_markers()
    world.start()
    world.wait(4_000_000)
    assert world.counts == TransactionCounts(timed_out_count=1, expired_ids_count=1)


def test_a_transaction_that_began_on_a_clock_far_ahead_is_aborted_after_its_timeout() -> None:
    world = TransactionWorld()
    world.now_ms = 3_600_000
    world.add("x", *_who(world, "x"), A)
    world.now_ms = 0
    world.start()  # another broker coordinates now
    world.wait(30_000)
    assert world.counts.timed_out_count == 0
    world.wait(50_000)
    assert world.counts.timed_out_count == 1


def _who(world: TransactionWorld, name: str) -> tuple[int, int]:
    given = world.init(name)
    return given.producer_id, given.producer_epoch
