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
    return must_ask(context, AclOperation.WRITE, ResourceType.TOPIC, _written(context, request)) or must_ask(
        context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, _transactional_ids(request)
    )


async def ask_to_produce(context: RequestContext, request: ProduceData) -> None:
    await ask_authorizer(context, AclOperation.WRITE, ResourceType.TOPIC, _written(context, request))
    transactional_ids = _transactional_ids(request)
    await ask_authorizer(context, AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_ids)


def _written(context: RequestContext, request: ProduceData) -> Iterator[str]:
    by_id = context.broker.image.topic_names
    for topic, _ in request.topics:
        name = by_id.get(topic) if isinstance(topic, bytes) else topic
        if name is not None:
            yield name


def _transactional_ids(request: ProduceData) -> tuple[str, ...]:
    return () if request.transactional_id is None else (request.transactional_id,)


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
