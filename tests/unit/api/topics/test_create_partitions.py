from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.create_partitions import (
    CreatePartitionsAssignment,
    CreatePartitionsRequest,
    CreatePartitionsTopic,
)
from support.images import new_topic
from support.loop import on_loop
from support.nodes import running_node


@pytest.mark.parametrize("validate_only", [False, True])
@pytest.mark.parametrize("version", range(4))
def test_each_topic_has_its_own_result(tmp_path: Path, version: int, validate_only: bool) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t"), new_topic("same"))
            manually_assigned = [CreatePartitionsAssignment(broker_ids=[1]) for _ in range(2)]
            request = CreatePartitionsRequest(
                topics=[
                    CreatePartitionsTopic(name="t", count=3, assignments=manually_assigned),
                    CreatePartitionsTopic(name="same", count=1, assignments=None),
                    CreatePartitionsTopic(name="gone", count=2, assignments=None),
                ],
                timeout_ms=1000,
                validate_only=validate_only,
            )
            answers = (await node.ask(request, version)).results
            assert [(answer.name, answer.error_code) for answer in answers] == [
                ("t", ErrorCode.NONE),
                ("same", ErrorCode.INVALID_PARTITIONS),
                ("gone", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ]
            assert [bool(answer.error_message) for answer in answers] == [False, True, True]
            open_count = sum(partition.topic == "t" for partition in node.broker.replicas)
            assert open_count == (1 if validate_only else 3)

    scenario()
