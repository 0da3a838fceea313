from pathlib import Path

import pytest

from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from support.images import new_topic
from support.loop import on_loop
from support.nodes import running_node


def by_name(version: int, *names: str) -> DeleteTopicsRequest:
    if version < 6:
        return DeleteTopicsRequest(topic_names=list(names), timeout_ms=1000)
    return DeleteTopicsRequest(topics=[DeleteTopicState(name=name) for name in names], timeout_ms=1000)


@pytest.mark.parametrize("version", range(1, 7))
def test_a_deleted_topic_is_gone_and_others_stay(tmp_path: Path, version: int) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path) as node:
            await node.create(new_topic("t"), new_topic("stays"))
            topic_id = node.topic_id("t")
            answers = (await node.ask(by_name(version, "t", "gone"), version)).responses
            assert [(answer.name, answer.error_code) for answer in answers] == [
                ("t", ErrorCode.NONE),
                ("gone", ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
            ]
            assert set(node.broker.image.topics) == {"stays"}
            if version >= 5:
                assert [bool(answer.error_message) for answer in answers] == [False, True]
            if version >= 6:
                assert answers[0].topic_id == topic_id

    scenario()


@on_loop
async def test_a_topic_is_deleted_by_id_and_returned_with_its_name(tmp_path: Path) -> None:
    async with running_node(tmp_path) as node:
        await node.create(new_topic("t"))
        topic_id = node.topic_id("t")
        request = DeleteTopicsRequest(
            topics=[DeleteTopicState(name=None, topic_id=topic_id)], timeout_ms=1000
        )
        [answer] = (await node.ask(request)).responses
        assert (answer.name, answer.topic_id, answer.error_code) == ("t", topic_id, 0)


@pytest.mark.parametrize(
    ("version", "code"),
    [(1, ErrorCode.INVALID_REQUEST), (2, ErrorCode.INVALID_REQUEST), (3, ErrorCode.TOPIC_DELETION_DISABLED)],
)
def test_topic_deletion_can_be_disabled(tmp_path: Path, version: int, code: ErrorCode) -> None:
    @on_loop
    async def scenario() -> None:
        async with running_node(tmp_path, delete_topic_enable="false") as node:
            await node.create(new_topic("t"))
            answers = (await node.ask(by_name(version, "t", "gone"), version)).responses
            assert [(answer.name, answer.error_code) for answer in answers] == [("t", code), ("gone", code)]
            assert set(node.broker.image.topics) == {"t"}

    scenario()
