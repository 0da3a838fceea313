# cython: language_level=3, annotation_typing=False, boundscheck=False, wraparound=False, initializedcheck=False
# cython: cdivision=True
"""The kernels of the table of keys: their latest offsets, by open addressing with double hashing.

Where the package is built with a C compiler, this is a compiled module with the C types of `key_table.pxd`. Elsewhere
numba compiles the same source (`key_table_numba.py`).

A slot is a digest of the key, of two words, and its offset plus one; 0 means empty. The digest is SipHash-2-4 of 128
bits. Without the secret, which each table draws, two keys with the same digest cannot be found.
"""

from collections.abc import MutableSequence, Sequence
from typing import TypeAlias

from barnabas.base.buffers import Buffer

#: Whether this module is machine code.
COMPILED = not __file__.endswith(".py")

#: 64-bit integers that are written to: an `array("q")`, or an array of numpy.
Longs: TypeAlias = MutableSequence[int]

#: 64 bits, none of which is a sign.
Word: TypeAlias = int

SLOT_WORDS = 3

# In the compiled module these are C integers.
_INT64_MAX = (1 << 63) - 1
_ALL_BITS = (1 << 64) - 1
#: The beginning of SipHash's state, "somepseudorandomlygeneratedbytes".
_SOME, _RANDOM, _LYGENERA, _TEDBYTES = (
    0x736F6D6570736575,
    0x646F72616E646F6D,
    0x6C7967656E657261,
    0x7465646279746573,
)


def put_rows(
    slots: Longs,
    slots_count: int,
    room_count: int,
    latest_offset: int,
    secret: Sequence[int],
    data: Buffer,
    rows: Sequence[int],
    first: int,
    end: int,
    first_offset: int,
    offsets: Sequence[int],
    key_positions: Sequence[int],
    key_sizes: Sequence[int],
) -> tuple[int, int, int]:
    """Put the keys of `rows[first:end]` from `first_offset` on into the table, until `room_count` of them are new.

    Return the index of the first row that is not done, how many keys are new, and the last offset. An offset that
    is not larger than the last is not put either.

    :param slots: `SLOT_WORDS` for each of a prime number of slots, larger than 2 and than the number of keys.
    :param secret: Two numbers of 63 bits.
    """
    added_count = 0
    for index in range(first, end):
        row = rows[index]
        size, offset = key_sizes[row], offsets[row]
        if size < 0 or offset < first_offset:
            continue
        if room_count <= added_count or offset <= latest_offset:
            return index, added_count, latest_offset
        one, other = digest(data, key_positions[row], size, secret[0], secret[1])
        slot = _find(slots, slots_count, one, other)
        if slots[slot + 2] == 0:
            slots[slot] = _signed(one)
            slots[slot + 1] = _signed(other)
            added_count += 1
        slots[slot + 2] = offset + 1
        latest_offset = offset
    return end, added_count, latest_offset


def mark_obsolete(
    slots: Sequence[int],
    slots_count: int,
    latest_offset: int,
    secret: Sequence[int],
    data: Buffer,
    first: int,
    end: int,
    offsets: Sequence[int],
    key_positions: Sequence[int],
    key_sizes: Sequence[int],
    obsolete: MutableSequence[int],
) -> None:
    """Set `obsolete` to 1 for rows of [`first`, `end`) that have no key or are not the latest of their key.

    Rows after `latest_offset` are left out.
    """
    for row in range(first, end):
        if offsets[row] <= latest_offset:
            if key_sizes[row] < 0:
                obsolete[row] = 1
            else:
                one, other = digest(data, key_positions[row], key_sizes[row], secret[0], secret[1])
                if offsets[row] < slots[_find(slots, slots_count, one, other) + 2] - 1:
                    obsolete[row] = 1


def _find(slots: Sequence[int], slots_count: int, one: Word, other: Word) -> int:
    """Return where the slot of a digest begins, or the empty slot in which to put it."""
    slot = (one & _INT64_MAX) % slots_count
    step = (other & _INT64_MAX) % (slots_count - 1) + 1
    first, second = _signed(one), _signed(other)
    while slots[3 * slot + 2] != 0:
        if slots[3 * slot] == first and slots[3 * slot + 1] == second:
            break
        slot += step
        if slot >= slots_count:
            slot -= slots_count
    return 3 * slot


def digest(data: Buffer, position: int, size: int, secret: Word, other_secret: Word) -> tuple[Word, Word]:
    """Return SipHash-2-4 of 128 bits of the `size` bytes at `position`."""
    a, b = secret ^ _SOME, other_secret ^ _RANDOM ^ 0xEE
    c, d = secret ^ _LYGENERA, other_secret ^ _TEDBYTES
    for _ in range(size >> 3):
        word = _read_word(data, position, 8)
        position += 8
        a, b, c, d = _mix(a, b, c, d ^ word, 2)
        a ^= word
    word = _read_word(data, position, size & 7)
    length = size & 0xFF
    word |= length << 56
    a, b, c, d = _mix(a, b, c, d ^ word, 2)
    a, b, c, d = _mix(a ^ word, b, c ^ 0xEE, d, 4)
    one = a ^ b ^ c ^ d
    a, b, c, d = _mix(a, b ^ 0xDD, c, d, 4)
    return one, a ^ b ^ c ^ d


def _read_word(data: Buffer, position: int, size: int) -> Word:
    """Return the number of up to eight bytes, the lowest first."""
    word = 0
    for index in range(size):
        byte = data[position + index]
        word |= byte << 8 * index
    return word


def _mix(a: Word, b: Word, c: Word, d: Word, rounds_count: int) -> tuple[Word, Word, Word, Word]:
    for _ in range(rounds_count):
        a = _cut(a + b)
        c = _cut(c + d)
        b = _rotate(b, 13) ^ a
        d = _rotate(d, 16) ^ c
        a = _rotate(a, 32)
        c = _cut(c + b)
        a = _cut(a + d)
        b = _rotate(b, 17) ^ c
        d = _rotate(d, 21) ^ a
        c = _rotate(c, 32)
    return a, b, c, d


def _rotate(word: Word, bits_count: int) -> Word:
    return _cut(word << bits_count) | word >> (64 - bits_count)


def _cut(word: int) -> Word:
    """Return the lowest 64 bits; in machine code a word has no others."""
    return word & _ALL_BITS


def _signed(word: Word) -> int:
    """Return the same bits, of which the highest is the sign; in machine code these are numbers of one size."""
    return word if word <= _INT64_MAX else word - _ALL_BITS - 1
