"""Every flaw of a batch, in topics of every kind, is treated as in Kafka."""

import pytest

from barnabas.wire.records.compression import Compression
from differential.batches import FLAWS, PACKED_FLAWS, TAKEN, Batch
from differential.sequences import beginning, produce
from differential.test_histories import check
from differential.world import World

RECORDS = ((1000, b"k", b"v"), (2000, b"k", b"w" * 50))


@pytest.mark.parametrize("flaw", FLAWS)
@pytest.mark.parametrize("topic", ["a", "stamped", "compacted"])
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4], ids=str)
def test_a_flawed_batch_is_treated_as_in_kafka(
    world: World, topic: str, compression: Compression, flaw: str
) -> None:
    check(world, beginning())
    batches = [Batch(RECORDS, compression, flaw=flaw), Batch(RECORDS, compression, producer=1, flaw=flaw)]
    check(world, produce(topic, *batches[: 1 if flaw in TAKEN else 2]))
    if flaw not in TAKEN:  # the state of the log after these depends on whether they were appended
        check(world, produce(topic, Batch(RECORDS)))


@pytest.mark.parametrize("flaw", PACKED_FLAWS)
@pytest.mark.parametrize("topic", ["a", "compacted"])
@pytest.mark.parametrize("compression", [codec for codec in Compression if codec], ids=str)
def test_data_that_cannot_be_decompressed_is_treated_as_in_kafka(
    world: World, topic: str, compression: Compression, flaw: str
) -> None:
    check(world, beginning())
    check(world, produce(topic, Batch(RECORDS, compression, flaw=flaw)))
