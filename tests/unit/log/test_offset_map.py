import tracemalloc

from barnabas.log.offset_map import ENTRY_BYTES, OffsetMap


def test_the_latest_offset_of_a_key_counts() -> None:
    offsets = OffsetMap(10)
    for offset, key in enumerate((b"a", b"b", b"a")):
        offsets.put(key, offset)
    assert (offsets.latest(b"a"), offsets.latest(b"b"), offsets.latest(b"c")) == (2, 1, -1)
    assert (len(offsets), offsets.latest_offset) == (2, 2)


def test_long_keys_are_told_apart_from_each_other_and_from_their_digests() -> None:
    offsets = OffsetMap(10)
    long = [bytes([number]) * 100 for number in range(3)]
    for offset, key in enumerate(long):
        offsets.put(key, offset)
    assert [offsets.latest(key) for key in long] == [0, 1, 2]
    assert [offsets.latest(digest) for digest in offsets._offsets] == [-1, -1, -1]


def test_what_has_no_key_is_passed_over_and_never_goes_back() -> None:
    offsets = OffsetMap(10)
    assert offsets.latest_offset == -1
    offsets.pass_over(5)
    offsets.pass_over(3)
    assert offsets.latest_offset == 5


def test_it_is_full_with_the_keys_that_its_memory_has_room_for() -> None:
    offsets = OffsetMap.of_size(ENTRY_BYTES * 4, 0.5)
    offsets.put(b"a", 0)
    assert not offsets.is_full
    offsets.put(b"b", 1)
    assert offsets.is_full
    assert OffsetMap.of_size(1, 0.9).keys_count_max == 1


def test_a_key_takes_no_more_memory_than_is_counted_for_it() -> None:
    tracemalloc.start()
    try:
        for count in (20_000, 44_000):  # before and after its table has grown
            before, _ = tracemalloc.get_traced_memory()
            offsets = OffsetMap(count)
            for offset in range(count):
                offsets.put(b"%040d" % offset, offset + 1_000)
            used, _ = tracemalloc.get_traced_memory()
            assert (used - before) / count < ENTRY_BYTES
            del offsets
    finally:
        tracemalloc.stop()
