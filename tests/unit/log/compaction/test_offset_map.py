import struct
import tracemalloc
from array import array
from collections.abc import Callable, Sequence
from functools import partial
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.log.compaction import offset_map
from barnabas.log.compaction.offset_map import (
    ENTRY_BYTES,
    MANY_KEYS_COUNT,
    SLOT_BYTES,
    OffsetMap,
    PlainOffsetMap,
    TableOffsetMap,
    offset_map_of_size,
)
from barnabas.wire.records import key_table
from barnabas.wire.records.columns import RecordColumns
from support.guarded import guarded
from support.kernels import INTERPRETED_TABLE, TABLE_BY_NUMBA, TABLE_FORMS

MakeMap = Callable[[int], OffsetMap]


def table(keys_count_max: int, kernels: ModuleType) -> TableOffsetMap:
    """Make a table with as few slots as possible."""
    primes = (3, 5, 7, 11, 13, 17, 19, 23)
    return TableOffsetMap(keys_count_max, next(prime for prime in primes if prime > keys_count_max), kernels)


TABLES = {name: partial(table, kernels=kernels) for name, kernels in TABLE_FORMS.items()}
MAPS: dict[str, MakeMap] = {"dictionary": PlainOffsetMap, **TABLES}
EVERY = pytest.mark.parametrize("make", MAPS.values(), ids=MAPS)
EVERY_TABLE = pytest.mark.parametrize("kernels", TABLE_FORMS.values(), ids=TABLE_FORMS)


def rows_of(first_offset: int, *keys: bytes | None) -> RecordColumns:
    """Make columns of consecutive records that have only keys and offsets."""
    sizes = array("q", [-1 if key is None else len(key) for key in keys])
    positions, end = array("q"), 0
    for size in sizes:
        positions.append(end)
        end += max(size, 0)
    nothing = array("q", bytes(8 * len(keys)))
    offsets = array("q", range(first_offset, first_offset + len(keys)))
    data = b"".join(key or b"" for key in keys)
    return RecordColumns(
        data, [], [0], nothing, nothing, offsets, nothing, positions, sizes, nothing, nothing
    )


def put(offsets: OffsetMap, first_offset: int, *keys: bytes | None, from_offset: int = 0) -> bool:
    return offsets.put_rows(rows_of(first_offset, *keys), range(len(keys)), from_offset)


def obsolete(offsets: OffsetMap, first_offset: int, *keys: bytes | None) -> list[int]:
    return list(offsets.obsolete_rows(rows_of(first_offset, *keys)))


@EVERY
def test_the_latest_record_of_a_key_is_not_obsolete(make: MakeMap) -> None:
    offsets = make(10)
    assert put(offsets, 0, b"a", b"b", b"a")
    assert put(offsets, 3, b"c", b"b")
    assert obsolete(offsets, 0, b"a", b"b", b"a", b"c", b"b") == [1, 1, 0, 0, 0]
    assert (len(offsets), offsets.latest_offset) == (3, 4)


@EVERY
def test_records_not_in_the_map_are_not_obsolete_unless_they_have_no_key(make: MakeMap) -> None:
    offsets = make(10)
    put(offsets, 0, b"a", None, b"")
    assert obsolete(offsets, 0, b"a", None, b"", None, b"a") == [0, 1, 0, 0, 0]
    assert obsolete(offsets, 0, b"x", b"") == [0, 1]
    assert obsolete(make(10), 0, b"a", None) == [0, 0]


@EVERY
def test_only_the_given_rows_from_the_first_offset_on_are_put(make: MakeMap) -> None:
    offsets = make(10)
    keys = (b"a", b"b", b"c", b"d")
    assert offsets.put_rows(rows_of(5, *keys), [0, 2, 3], 6)
    assert obsolete(offsets, 1, *keys) == [0, 0, 1, 1]
    assert offsets.put_rows(rows_of(9, *keys), [], 0)
    assert offsets.latest_offset == 8


@EVERY
def test_the_latest_offset_never_decreases(make: MakeMap) -> None:
    offsets = make(10)
    assert offsets.latest_offset == -1
    offsets.update_latest_offset(5)
    offsets.update_latest_offset(3)
    assert offsets.latest_offset == 5


@EVERY
def test_a_full_map_reports_the_offset_up_to_which_all_keys_are_put(make: MakeMap) -> None:
    offsets = make(2)
    assert put(offsets, 0, b"a", b"a", b"b")
    assert not put(offsets, 3, None, b"a")
    assert offsets.latest_offset == 2
    again = make(2)
    assert not put(again, 0, b"a", b"a", b"b", b"b", b"c", b"a")
    assert (len(again), again.latest_offset) == (2, 2)


@EVERY
def test_offsets_must_ascend(make: MakeMap) -> None:
    offsets = make(3)
    put(offsets, 5, b"a")
    with pytest.raises(AssertionError):
        put(offsets, 5, b"b")


def test_long_keys_are_distinct_from_each_other_and_from_their_digests() -> None:
    offsets = PlainOffsetMap(10)
    long = [bytes([number]) * 100 for number in range(3)]
    put(offsets, 0, *long)
    assert obsolete(offsets, 0, *long, *long[:2]) == [0, 0, 0, 0, 0]
    assert obsolete(offsets, 0, *reversed(offsets._offsets)) == [0, 0, 0]


@given(
    st.lists(
        st.lists(st.none() | st.sampled_from([b"", b"a", b"b", b"c" * 40, b"d"]), max_size=9), max_size=6
    )
)
def test_tables_agree_with_the_dictionary(steps: Sequence[Sequence[bytes | None]]) -> None:
    plain, tables, offset = PlainOffsetMap(3), [make(3) for make in TABLES.values()], 0
    for keys in steps:
        fits = put(plain, offset, *keys)
        assert [put(each, offset, *keys) for each in tables] == [fits] * len(tables)
        offset += len(keys)
    everything = [key for keys in steps for key in keys]
    for each in tables:
        assert obsolete(each, 0, *everything) == obsolete(plain, 0, *everything)
        assert (len(each), each.latest_offset) == (len(plain), plain.latest_offset)


@given(keys=st.lists(st.binary(max_size=70), min_size=1, max_size=9))
def test_every_form_of_a_table_has_the_same_slots(keys: list[bytes]) -> None:
    tables = [make(9) for make in TABLES.values()]
    for each in tables:
        each._secret = tables[0]._secret
        assert put(each, 0, *keys)
        assert each._slots == tables[0]._slots


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (0, "a3817f04ba25a8e66df67214c7550293"),
        (15, "5493e99933b0a8117e08ec0f97cfc3d9"),
    ],
)
@pytest.mark.parametrize("kernels", [key_table, INTERPRETED_TABLE], ids=["installed", "interpreted"])
def test_the_digest_is_siphash(kernels: ModuleType, size: int, expected: str) -> None:
    secret = struct.unpack("<QQ", bytes(range(16)))  # of the reference's test vectors
    words = kernels.digest(bytes(range(size)), 0, size, *secret)
    assert struct.pack("<QQ", *words).hex() == expected


@EVERY_TABLE
def test_no_byte_behind_a_key_is_read(kernels: ModuleType) -> None:
    with guarded(4_096) as memory:
        for size in range(20):
            columns = rows_of(0, bytes(range(size)))
            memory[len(memory) - size :] = columns.data
            offsets = table(3, kernels)
            at_the_edge = columns._replace(data=memory[len(memory) - size :])  # type: ignore[arg-type]
            assert offsets.put_rows(at_the_edge, [0], 0)
            assert list(offsets.obsolete_rows(at_the_edge)) == [0]
            assert obsolete(offsets, -1, bytes(range(size)), b"other") == [1, 0]


@EVERY_TABLE
def test_many_keys_are_found_in_an_almost_full_table(kernels: ModuleType) -> None:
    count = 500 if kernels is INTERPRETED_TABLE else 25_000
    offsets = TableOffsetMap.of_size(count * SLOT_BYTES, 1.0, count, kernels)
    keys = [b"%d" % number for number in range(offsets.keys_count_max)]
    assert len(keys) > 0.97 * count
    assert put(offsets, 0, *keys[:-1], keys[7], keys[-1])
    assert not put(offsets, count + 1, b"one more")
    assert obsolete(offsets, 0, *keys) == [number in (7, len(keys) - 1) for number in range(len(keys))]


@pytest.mark.parametrize(
    ("load_factor", "keys_count"),
    [(0.9, 1_000_000), (0.9, MANY_KEYS_COUNT), (0.1, 1_000_000), (0.0, 1_000_000), (7.0, 1_000_000)],
)
def test_a_table_uses_its_memory_for_as_many_keys_as_fit(load_factor: float, keys_count: int) -> None:
    size_bytes = 1 << 20
    slots_count = size_bytes // SLOT_BYTES
    tracemalloc.start()
    try:
        offsets = TableOffsetMap.of_size(size_bytes, load_factor, keys_count, INTERPRETED_TABLE)
        used_bytes, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    room_count = min(int(slots_count * load_factor), slots_count - 1)
    assert 0.99 * min(keys_count, room_count) <= offsets.keys_count_max <= max(room_count, 1)
    assert used_bytes <= most_bytes <= size_bytes + 4_096


def test_a_table_is_used_where_there_is_machine_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(INTERPRETED_TABLE, "COMPILED", True)
    monkeypatch.setattr(offset_map, "key_table", INTERPRETED_TABLE)
    monkeypatch.setattr(offset_map, "find_table_kernels", lambda: INTERPRETED_TABLE)
    assert isinstance(offset_map_of_size(1 << 20, 0.9, 1), TableOffsetMap)


def test_without_it_a_dictionary_is_used_for_few_keys_or_without_numba(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(offset_map, "key_table", INTERPRETED_TABLE)
    monkeypatch.setattr(offset_map, "find_table_kernels", lambda: TABLE_BY_NUMBA)
    assert isinstance(offset_map_of_size(1 << 20, 0.9, MANY_KEYS_COUNT), TableOffsetMap)
    assert isinstance(offset_map_of_size(1 << 20, 0.9, MANY_KEYS_COUNT - 1), PlainOffsetMap)
    monkeypatch.setattr(offset_map, "find_table_kernels", lambda: None)
    assert isinstance(offset_map_of_size(1 << 20, 0.9, 1_000_000), PlainOffsetMap)


def test_a_dictionary_holds_fewer_keys_in_the_same_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(offset_map, "key_table", INTERPRETED_TABLE)
    assert offset_map_of_size(ENTRY_BYTES * 4, 0.5, 9).keys_count_max == 2
    assert offset_map_of_size(1, 0.9, 9).keys_count_max == 1


def test_a_key_in_a_dictionary_uses_at_most_the_memory_accounted_for_it() -> None:
    tracemalloc.start()
    try:
        for count in (20_000, 44_000):  # before and after its table has grown
            before, _ = tracemalloc.get_traced_memory()
            offsets = PlainOffsetMap(count)
            for offset in range(1_000, count + 1_000, 1_000):
                put(offsets, offset, *(b"%040d" % number for number in range(offset, offset + 1_000)))
            used, _ = tracemalloc.get_traced_memory()
            assert (used - before) / count < ENTRY_BYTES
            del offsets
    finally:
        tracemalloc.stop()
