from barnabas.metadata.image import MetadataImage
from barnabas.metadata.producer_ids import BLOCK_COUNT, KEY, PRODUCER_IDS, decide_allocate_block
from barnabas.metadata.store import NEVER
from support.images import replayed


def test_blocks_are_consecutive_from_0() -> None:
    image, blocks = MetadataImage(), []
    for _ in range(3):
        decision = decide_allocate_block(image.producer_ids)
        blocks.append(decision.response)
        image = replayed(image, decision)
    assert blocks == [range(1000), range(1000, 2000), range(2000, 3000)]
    assert image.producer_ids[KEY] == 3 * BLOCK_COUNT


def test_a_block_depends_on_the_last_one_so_that_blocks_are_unique() -> None:
    first = decide_allocate_block(MetadataImage().producer_ids)
    assert first.reads == {PRODUCER_IDS.key(KEY): NEVER}
    image = replayed(MetadataImage(), first)
    assert decide_allocate_block(image.producer_ids).reads == {PRODUCER_IDS.key(KEY): image.revision}
