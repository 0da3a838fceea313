"""Producer ids, which brokers get in blocks, so that each is used once."""

from barnabas.metadata.decision import Decision
from barnabas.metadata.record_type import RecordType, Table

#: As in Apache Kafka (`ProducerIdsBlock.PRODUCER_ID_BLOCK_SIZE`).
BLOCK_COUNT = 1000

#: Other brokers may have larger ids in their logs than the one that continues after its own.
SKIPPED_COUNT = 1_000 * BLOCK_COUNT

KEY = "next"

PRODUCER_IDS: RecordType[int] = RecordType("producer_ids", int, int)


def decide_allocate_block(table: Table[int]) -> Decision[range]:
    """Allocate the next block of producer ids."""
    first = table.get(KEY, 0)
    block = range(first, first + BLOCK_COUNT)
    return Decision(block, (PRODUCER_IDS.put(KEY, block.stop),), {PRODUCER_IDS.key(KEY): table.revision(KEY)})


def decide_continue_after(table: Table[int], used: int) -> Decision[None]:
    """Skip the ids that may be in use.

    :param used: The largest id in the logs of one broker; -1 for none.
    """
    first = max(used + 1, table.get(KEY, 0)) + SKIPPED_COUNT
    return Decision(None, (PRODUCER_IDS.put(KEY, first),), {PRODUCER_IDS.key(KEY): table.revision(KEY)})
