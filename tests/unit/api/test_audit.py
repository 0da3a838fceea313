"""Refused changes of requests, and warnings about changes that were made, in the audit."""

from pathlib import Path

from barnabas.api.audit import warnings_of_successes
from barnabas.metadata.audit.records import Refusal
from barnabas.metadata.audit.refusals import LEFT_OUT, REQUEST_COUNT_MAX
from barnabas.wire.errors import ErrorCode
from barnabas.wire.messages.create_topics import CreatableTopic, CreateTopicsRequest
from support.acls import ALICE, AUTHORIZED
from support.loop import on_loop
from support.nodes import running_node

FAILED = ErrorCode.POLICY_VIOLATION


def warned(*resources: str) -> list[Refusal]:
    return [Refusal(resource, "POLICY_VIOLATION", "is discouraged") for resource in resources]


def test_a_warning_is_kept_if_a_change_of_its_resource_succeeded() -> None:
    results = [
        ("topic/a", 0, None),
        ("topic/b", FAILED, "no"),
        ("topic/b", 0, None),
        ("topic/c", FAILED, "no"),
    ]
    assert warnings_of_successes(warned("topic/a", "topic/b", "topic/c"), results) == warned(
        "topic/a", "topic/b"
    )


def test_a_warning_about_a_new_name_is_kept_if_anything_succeeded() -> None:
    assert warnings_of_successes(warned("topic/new"), [("topic/old", 0, None)]) == warned("topic/new")
    assert warnings_of_successes(warned("topic/new"), [("topic/old", FAILED, "no")]) == []


@on_loop
async def test_a_refused_request_with_thousands_of_names_adds_little_to_the_audit(tmp_path: Path) -> None:
    names = [f"t{number}" for number in range(4_000)]
    request = CreateTopicsRequest(topics=[CreatableTopic(name=name) for name in names], timeout_ms=1_000)
    async with running_node(tmp_path, audited=True, **AUTHORIZED) as running:
        running.connection.principal = ALICE
        response = await running.ask(request)
        assert {topic.error_code for topic in response.topics} == {ErrorCode.TOPIC_AUTHORIZATION_FAILED}
        [record] = running.broker.image.audit.values()
    resources = [refusal.resource for refusal in record.refusals]
    assert resources == [f"topic/{name}" for name in names[:REQUEST_COUNT_MAX]] + [LEFT_OUT]
    assert (
        record.refusals[-1].message == f"{4_000 - REQUEST_COUNT_MAX} more changes in the request were refused"
    )
