"""Fetches of followers: up to the log end, and from the position that the follower has reached (KIP-227, KIP-903)."""

import asyncio
from collections.abc import Iterator

from barnabas.api.authorization import require_broker
from barnabas.api.context import EncodedResponse, RequestContext
from barnabas.api.data.fetch_codec import write_response
from barnabas.base.ids import TopicIdPartition
from barnabas.replication.fetch_targets import FetchedPartition
from barnabas.replication.follower_session import FollowedPartition, FollowerSession
from barnabas.replication.follower_sessions import topics_of
from barnabas.wire.errors import KafkaError
from barnabas.wire.messages.fetch import FetchPartition, FetchRequest, FetchTopic


def is_replica_fetch(context: RequestContext, replica_id: int) -> bool:
    """Whether a Fetch with this replica id is that of another broker of the cluster."""
    broker = context.broker
    return replica_id >= 0 and replica_id != broker.broker_id and str(replica_id) in broker.image.brokers


async def fetch_replica(context: RequestContext, request: FetchRequest) -> EncodedResponse:
    """Respond to a follower; wait if there is nothing new for it."""
    await require_broker(context)
    sessions, follower = context.broker.follower_sessions, request.replica_state
    try:
        session = sessions.begin(follower.replica_id, request.session_id, request.session_epoch)
    except KafkaError as error:
        return write_response(context.api_version, 0, (), error.code)
    async for topic, partition in context.each(_named(request)):
        target = FollowedPartition(
            partition.fetch_offset,
            partition.current_leader_epoch,
            partition.last_fetched_epoch,
            partition.log_start_offset,
            partition.partition_max_bytes,
        )
        key = TopicIdPartition(topic.topic_id, partition.partition)
        sessions.update_target(session, key, target, follower.replica_epoch)
    sessions.store_missing_positions(session, follower.replica_epoch)
    async for forgotten in context.each(request.forgotten_topics_data):
        for index in forgotten.partitions:
            sessions.remove(session, TopicIdPartition(forgotten.topic_id, index))
    responses = await _read(context, session, request.max_bytes)
    if not responses and request.max_wait_ms > 0:
        await session.wait(request.max_wait_ms)
        responses = await _read(context, session, request.max_bytes)
    return write_response(context.api_version, session.session_id, topics_of(responses))


def _named(request: FetchRequest) -> Iterator[tuple[FetchTopic, FetchPartition]]:
    return ((topic, partition) for topic in request.topics for partition in topic.partitions)


async def _read(
    context: RequestContext, session: FollowerSession, max_bytes: int
) -> list[tuple[TopicIdPartition, FetchedPartition]]:
    """Read until there is something new, in several turns if many partitions are marked."""
    sessions = context.broker.follower_sessions
    responses = sessions.read(session, max_bytes)
    while not responses and session.has_marked:
        await asyncio.sleep(0)
        responses = sessions.read(session, max_bytes)
    return responses
