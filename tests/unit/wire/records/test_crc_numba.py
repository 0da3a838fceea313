from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.wire.records import crc_numba
from barnabas.wire.records.arrow_fields import Numbers
from barnabas.wire.records.batch import CRC_START
from barnabas.wire.records.batches_numba import START, read_batches
from barnabas.wire.records.crc_numba import first_wrong, first_wrong_by_library
from barnabas.wire.records.record import Record, encode_batch
from barnabas.wire.records.walk import END
from support.guarded import guarded

ways = pytest.mark.parametrize("find", [first_wrong, first_wrong_by_library])
Find = Callable[[memoryview, Numbers], int | None]

#: Value sizes for batches of any number of words, with any number of trailing bytes, and of very different lengths.
sizes = st.lists(st.integers(0, 40) | st.integers(0, 20_000), max_size=8)


def buffer_of(sizes_bytes: list[int]) -> bytearray:
    batches = [
        encode_batch([Record(0, 0, None, bytes(range(256)) * (size // 256) + bytes(size % 256))])
        for size in sizes_bytes
    ]
    return bytearray(b"".join(batches))


@ways
@given(sizes)
def test_valid_batches_pass(find: Find, sizes_bytes: list[int]) -> None:
    buffer = buffer_of(sizes_bytes)
    assert find(memoryview(buffer), read_batches(buffer)) is None


@ways
@given(sizes.filter(bool), st.data())
def test_the_first_batch_with_a_changed_bit_is_found(
    find: Find, sizes_bytes: list[int], data: st.DataObject
) -> None:
    buffer = buffer_of(sizes_bytes)
    batches = read_batches(buffer)
    damaged = sorted(data.draw(st.sets(st.integers(0, len(sizes_bytes) - 1), min_size=1, max_size=3)))
    for index in damaged:
        covered = st.integers(int(batches[index, START]) + CRC_START, int(batches[index, END]) - 1)
        buffer[data.draw(covered)] ^= 1 << data.draw(st.integers(0, 7))
    assert find(memoryview(buffer), batches) == damaged[0]


@pytest.mark.parametrize("has_instruction", [False, True])
def test_without_the_cpu_instruction_the_library_is_used(
    monkeypatch: pytest.MonkeyPatch, has_instruction: bool
) -> None:
    used = []
    monkeypatch.setattr(crc_numba, "has_crc_instruction", lambda: has_instruction)
    monkeypatch.setattr(crc_numba, "first_wrong_by_library", lambda *_: used.append("library"))
    monkeypatch.setattr(crc_numba, "find_wrong", lambda *_: used.append("instruction") or -1)
    buffer = buffer_of([1])
    assert first_wrong(memoryview(buffer), read_batches(buffer)) is None
    assert used == ["instruction" if has_instruction else "library"]


@ways
def test_no_byte_after_the_last_batch_is_read(find: Find) -> None:
    for size in range(16):
        buffer = buffer_of([size, 100, size])
        with guarded(len(buffer)) as memory:
            at_the_edge = memory[len(memory) - len(buffer) :]
            at_the_edge[:] = buffer
            assert find(at_the_edge, read_batches(buffer)) is None
