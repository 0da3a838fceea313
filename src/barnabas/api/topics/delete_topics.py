"""DeleteTopics (20), v1-v6: gone for clients when it is answered, gone from the disks soon after.

v1: throttle time.  v3: TOPIC_DELETION_DISABLED.  v5: error messages (KIP-599).  v6: topics by id (KIP-516).
Errors, per topic: UNKNOWN_TOPIC_OR_PARTITION, UNKNOWN_TOPIC_ID, INVALID_REQUEST, TOPIC_DELETION_DISABLED,
POLICY_VIOLATION, REQUEST_TIMED_OUT.
"""

from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.metadata.topic_deletion import Deleted, TopicToDelete, decide_delete
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.delete_topics import (
    DeletableTopicResult,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)


def _asked(request: DeleteTopicsRequest) -> list[TopicToDelete]:
    by_name = [TopicToDelete(name) for name in request.topic_names]
    return by_name + [TopicToDelete(topic.name, topic.topic_id) for topic in request.topics]


def refuse(request: DeleteTopicsRequest, error: KafkaError) -> DeleteTopicsResponse:
    """Every topic asked for, in error."""
    outcomes = [Deleted(asked.name, asked.topic_id, error) for asked in _asked(request)]
    return DeleteTopicsResponse(responses=[_result(outcome) for outcome in outcomes])


@serves(DeleteTopicsRequest, DeleteTopicsResponse, 1, 6, refuse=refuse)
async def handle(context: RequestContext, request: DeleteTopicsRequest) -> DeleteTopicsResponse:
    """Decide for each topic and commit; the logs follow when the commit comes back."""
    node = context.node
    if not node.config.boolean("delete.topic.enable"):
        code = ErrorCode.INVALID_REQUEST if context.api_version < 3 else ErrorCode.TOPIC_DELETION_DISABLED
        raise KafkaError(code, "Topics cannot be deleted here: delete.topic.enable is false.")
    started_ns = node.tracer.now_ns()
    asked = _asked(request)
    check = node.policies.check_delete_topic
    outcomes = await node.metadata.write(lambda image: decide_delete(image, asked, check), request.timeout_ms)
    for outcome in outcomes:
        if node.tracer.enabled and outcome.error is None:
            node.tracer.record("barnabas.topic.delete", started_ns, context.span, topic=outcome.name)
    return DeleteTopicsResponse(responses=[_result(outcome) for outcome in outcomes])


def _result(outcome: Deleted) -> DeletableTopicResult:
    if outcome.error is None:
        return DeletableTopicResult(name=outcome.name, topic_id=outcome.topic_id)
    return DeletableTopicResult(
        name=outcome.name,
        topic_id=outcome.topic_id,
        error_code=outcome.error.code,
        error_message=outcome.error.message or None,
    )
