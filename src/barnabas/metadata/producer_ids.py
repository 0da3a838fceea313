"""Producer ids, which brokers get in blocks, so that each is used once."""

from barnabas.metadata.decision import Decision
from barnabas.metadata.record_type import RecordType, Table

#: As in Apache Kafka (`ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE`).
BLOCK_COUNT = 1000

KEY = "next"

PRODUCER_IDS: RecordType[int] = RecordType("producer_ids", int, int)


def decide_allocate_block(table: Table[int]) -> Decision[range]:
    """Allocate the next block of producer ids."""
    first = table.get(KEY, 0)
    block = range(first, first + BLOCK_COUNT)
    return Decision(block, (PRODUCER_IDS.put(KEY, block.stop),), {PRODUCER_IDS.key(KEY): table.revision(KEY)})


def decide_continue_after(table: Table[int], used: int) -> Decision[None]:
    """Allocate only ids that are larger than one that is used; -1 for none."""
    if used < table.get(KEY, 0):
        return Decision(None)
    return Decision(None, (PRODUCER_IDS.put(KEY, used + 1),), {PRODUCER_IDS.key(KEY): table.revision(KEY)})
