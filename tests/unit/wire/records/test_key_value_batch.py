"""The key-value codec writes the same bytes as the general one."""

import random

import pytest

from barnabas.wire.records.batch import BATCH_HEADER_BYTES, read_header
from barnabas.wire.records.compression import Compression
from barnabas.wire.records.key_value_batch import Pair, encode_pairs, split_pairs
from barnabas.wire.records.record import Record, decode_records, encode_batch

SIZES = [0, 1, 30, 63, 64, 511, 512, 8191, 8192, 20_000]


def random_pairs(rng: random.Random, count: int) -> list[Pair]:
    return [
        (
            rng.randbytes(rng.choice(SIZES[:-3])),
            None if rng.random() < 0.2 else rng.randbytes(rng.choice(SIZES[:-3])),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.ZSTD])
def test_a_key_value_batch_equals_one_of_records(seed: int, compression: Compression) -> None:
    rng = random.Random(seed)
    pairs = random_pairs(rng, rng.choice([1, 2, 60, 70, 600]))
    records = [Record(0, 1_234, key, value) for key, value in pairs]
    assert encode_pairs(pairs, 1_234, compression=compression) == encode_batch(
        records, compression=compression
    )
    options = {"producer_id": 7, "producer_epoch": 3, "transactional": True}
    assert encode_pairs(pairs, 1_234, **options) == encode_batch(records, **options)  # type: ignore[arg-type]


def split(batch: bytearray) -> list[tuple[int, bytes, bytes | None]] | None:
    return split_pairs(bytes(batch[BATCH_HEADER_BYTES:]), read_header(batch))


@pytest.mark.parametrize("seed", range(20))
def test_a_key_value_body_is_decoded_like_records(seed: int) -> None:
    rng = random.Random(seed)
    pairs = random_pairs(rng, rng.choice([1, 2, 60, 70, 600]))
    assert split(encode_pairs(pairs, 1_234)) == [(delta, *pair) for delta, pair in enumerate(pairs)]


@pytest.mark.parametrize(
    "records",
    [
        [Record(0, 5, b"k", b"v"), Record(1, 6, b"k", b"v")],
        [Record(0, 5, b"k", b"v", (("name", b"header"),))],
        [Record(0, 5, None, b"v")],
        [Record(0, 5, b"k" * 9_000, b"v")],
        [Record(0, 5, b"k", b"v" * 9_000)],
    ],
)
def test_other_records_are_left_to_the_general_codec(records: list[Record]) -> None:
    assert split(encode_batch(records)) is None


def test_damage_is_left_to_the_general_codec_or_makes_no_difference() -> None:
    rng = random.Random(3)
    for _ in range(500):
        pairs = random_pairs(rng, 3)
        batch = encode_pairs(pairs, 5)
        batch[rng.randrange(BATCH_HEADER_BYTES, len(batch))] ^= 1 << rng.randrange(8)
        assert split(batch[:-1]) is None
        found = split(batch)
        if found is not None:
            records = decode_records(batch)
            assert found == [(record.offset, record.key, record.value) for record in records]


@pytest.mark.parametrize("size", SIZES)
def test_keys_and_values_may_have_any_size(size: int) -> None:
    pairs: list[Pair] = [(b"k" * size, b"v" * size), (b"k" * size, None)]
    read = decode_records(encode_pairs(pairs, 5))
    assert [(record.key, record.value, record.timestamp_ms) for record in read] == [
        (*each, 5) for each in pairs
    ]
