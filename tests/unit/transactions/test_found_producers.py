from pathlib import Path

from barnabas.replication.partition import Partition
from barnabas.transactions.found_producers import largest_producer_id
from barnabas.wire.coordinator_records import serde
from barnabas.wire.coordinator_records.transaction_log import TransactionLogKey, TransactionLogValue
from barnabas.wire.records.record import Record, encode_batch
from support.images import new_topic
from support.loop import on_loop
from support.nodes import running_node

TOPIC = "__transaction_state"


def write(partition: Partition, *values: TransactionLogValue | None) -> None:
    records = [Record(0, 0, *serde.encode(TransactionLogKey("t"), value)) for value in values]
    records.append(Record(0, 0, b"\0\x63", b"of a newer broker"))
    partition.append_as_leader(memoryview(encode_batch(records)), -1)


@on_loop
async def test_the_largest_used_or_reserved_producer_id_is_found(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic(TOPIC))
        partition = node.partition(TOPIC)
        assert largest_producer_id(partition.log) == -1
        write(partition, TransactionLogValue(producer_id=41), None)
        assert largest_producer_id(partition.log) == 41
        write(partition, TransactionLogValue(producer_id=7, next_producer_id=99))
        write(partition, TransactionLogValue(producer_id=8))
        assert largest_producer_id(partition.log) == 99
