import asyncio
from collections.abc import Iterable
from types import SimpleNamespace
from typing import cast

import pytest

from barnabas.client.admin.admin import Admin
from barnabas.client.admin.model import NewTopic
from barnabas.declared.cluster_checks import with_refusals
from barnabas.declared.diff import Level, ResourceChange, diff_states
from barnabas.declared.secrets import Secrets
from barnabas.declared.state import ClusterState, TopicState
from barnabas.wire.errors import ErrorCode, KafkaError

CHANGES = diff_states(ClusterState(topics={"orders": TopicState(1)}), ClusterState())


def validated(error: KafkaError) -> tuple[list[ResourceChange], set[ErrorCode]]:
    """Return the changes after each has got this error."""

    async def create_topics(topics: Iterable[NewTopic], *, validate_only: bool) -> dict[str, KafkaError]:
        assert validate_only
        return {topic.name: error for topic in topics}

    admin = cast("Admin", SimpleNamespace(create_topics=create_topics))
    return asyncio.run(with_refusals(admin, CHANGES, cast("Secrets", None)))


def test_a_change_that_the_cluster_refuses_is_impossible() -> None:
    changes, codes = validated(KafkaError(ErrorCode.POLICY_VIOLATION, "no"))
    assert {each.diagnostics for each in changes} == {((Level.IMPOSSIBLE, "refused: POLICY_VIOLATION: no"),)}
    assert codes == {ErrorCode.POLICY_VIOLATION}


@pytest.mark.parametrize(
    "code",
    [ErrorCode.THROTTLING_QUOTA_EXCEEDED, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER],
)
def test_a_change_that_cannot_be_validated_now_is_possible_with_a_note(code: ErrorCode) -> None:
    changes, codes = validated(KafkaError(code, "later"))
    assert {each.diagnostics for each in changes} == {((Level.NOTE, f"not validated: {code.name}: later"),)}
    assert all(each.is_possible for each in changes)
    assert codes == set()
