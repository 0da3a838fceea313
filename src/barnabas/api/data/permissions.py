"""The permissions that Produce and Fetch need, for an authorizer that must be asked before they begin."""

from collections.abc import Iterable, Iterator

from barnabas.api.authorization import ask_authorizer, must_ask
from barnabas.api.context import RequestContext
from barnabas.api.data.produce_codec import ProduceData
from barnabas.replication.fetch_targets import FetchData, FetchTarget, Key
from barnabas.wire.acls import CLUSTER_NAME, AclOperation, ResourceType

#: What a fetch as a replica needs.
_AS_REPLICA = AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, (CLUSTER_NAME,)


def must_ask_to_produce(context: RequestContext, request: ProduceData) -> bool:
    topics, transactional_ids = _written(context, request)
    return must_ask(context, AclOperation.WRITE, ResourceType.TOPIC, topics) or must_ask(
        context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_ids
    )


async def ask_to_produce(context: RequestContext, request: ProduceData) -> None:
    topics, transactional_ids = _written(context, request)
    await ask_authorizer(context, AclOperation.WRITE, ResourceType.TOPIC, topics)
    await ask_authorizer(context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_ids)


def _written(context: RequestContext, request: ProduceData) -> tuple[list[str], list[str]]:
    """Return the names of the topics, and the transactional id if there is one."""
    by_id = context.broker.image.topic_names
    names = [by_id.get(topic) if isinstance(topic, bytes) else topic for topic, _ in request.topics]
    transactional_id = request.transactional_id
    return [name for name in names if name is not None], [] if transactional_id is None else [
        transactional_id
    ]


def must_ask_to_fetch(
    context: RequestContext, request: FetchData, targets: Iterable[tuple[Key, FetchTarget]]
) -> bool:
    if request.has_replica_id:
        return must_ask(context, *_AS_REPLICA)
    return must_ask(context, AclOperation.READ, ResourceType.TOPIC, _read(context, targets))


async def ask_to_fetch(
    context: RequestContext, request: FetchData, targets: Iterable[tuple[Key, FetchTarget]]
) -> None:
    if request.has_replica_id:
        await ask_authorizer(context, *_AS_REPLICA)
    else:
        await ask_authorizer(context, AclOperation.READ, ResourceType.TOPIC, _read(context, targets))


def _read(context: RequestContext, targets: Iterable[tuple[Key, FetchTarget]]) -> Iterator[str]:
    for _, target in targets:
        name = topic_of(context, target)
        if name is not None:
            yield name


def topic_of(context: RequestContext, target: FetchTarget) -> str | None:
    """Return the name of a target's topic; None for an unknown id."""
    return context.broker.image.topic_names.get(target.topic_id) if target.by_id else target.topic
