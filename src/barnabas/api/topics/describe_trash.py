"""DescribeTrash (32002), v0: deleted topics that can be restored, and for how long.

An API of Barnabas. Topics that the principal may not describe are left out.

Errors: none.
"""

import asyncio

from barnabas.api.authorization import filter_allowed
from barnabas.api.context import RequestContext
from barnabas.api.registry import serves
from barnabas.wire.acls import AclOperation, ResourceType
from barnabas.wire.barnabas_messages.describe_trash import (
    DescribeTrashRequest,
    DescribeTrashResponse,
    TrashedTopic,
)
from barnabas.wire.errors import KafkaError


def error_response(_request: DescribeTrashRequest, error: KafkaError) -> DescribeTrashResponse:
    return DescribeTrashResponse(error_code=error.code, error_message=error.message or None)


@serves(
    DescribeTrashRequest,
    DescribeTrashResponse,
    0,
    0,
    error_response=error_response,
    needs_latest_metadata=True,
)
async def handle(context: RequestContext, _request: DescribeTrashRequest) -> DescribeTrashResponse:
    """Return the topics with their sizes on the disks of this broker; the latest deleted first."""
    broker = context.broker
    trashed = sorted(broker.image.trashed_topics.values(), key=lambda topic: -topic.deleted_ms)
    names = {topic.name for topic in trashed}
    visible = await filter_allowed(context, AclOperation.DESCRIBE, ResourceType.TOPIC, names)
    sizes_bytes = await asyncio.to_thread(broker.replicas.trash.sizes_bytes) if visible else {}
    retention_ms = broker.config.integer("barnabas.trash.retention.ms")
    return DescribeTrashResponse(
        topics=[
            TrashedTopic(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_count=topic.topic.partition_count,
                size_bytes=sizes_bytes.get(topic.topic_id, 0),
                deleted_ms=topic.deleted_ms,
                deleted_by=topic.deleted_by,
                expires_ms=topic.deleted_ms + retention_ms,
            )
            async for topic in context.each(trashed)
            if topic.name in visible
        ]
    )
