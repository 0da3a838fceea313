"""Creation of topics, requested or automatic: decide, evaluate the policies, commit."""

from collections.abc import Iterable, Sequence

from barnabas.api.context import BrokerContext, RequestContext
from barnabas.config.topics import validate_topic_overrides
from barnabas.metadata.internal_topics import BROKER_TOPICS, decide_create_internal_topics
from barnabas.metadata.topic_creation import (
    CreationRules,
    TopicCreationResult,
    TopicToCreate,
    decide_create,
)
from barnabas.metadata.topics import TopicImage
from barnabas.policy import CreateTopicPolicy
from barnabas.policy.policies import Policies
from barnabas.quotas.mutations import UNLIMITED, ControllerMutationQuota
from barnabas.wire.errors import KafkaError


def creation_rules(broker: BrokerContext) -> CreationRules:
    """Return the defaults and checks for new topics."""
    return CreationRules(
        partition_count_default=broker.config.integer("num.partitions"),
        replication_factor_default=broker.config.integer("default.replication.factor"),
        check_configs=lambda overrides: validate_topic_overrides(broker.config, overrides),
    )


async def create_topics(
    context: RequestContext,
    requested: Sequence[TopicToCreate],
    *,
    validate_only: bool,
    quota: ControllerMutationQuota = UNLIMITED,
    timeout_ms: int | None = None,
) -> list[TopicCreationResult]:
    """Create the valid topics; return one result for each name.

    :raises KafkaError: As `decide_create`, for the whole request; REQUEST_TIMED_OUT if `timeout_ms` is over before the
        topics exist: they may still be created.
    """
    broker, names = context.broker, [new.name for new in requested]
    rules = creation_rules(broker)
    refused: dict[str, TopicCreationResult] = {}
    if broker.policies.guards_creation:
        # Policies are evaluated once, because they take time and depend on the request alone, for the topics that are
        # valid now. They are not evaluated again when the commit meets a conflict.
        checked = decide_create(broker.image, requested, rules, broker.rng, validate_only=True).response
        refused = await _refused_topics(context.policies, requested, checked)
        requested = [new for new in requested if new.name not in refused]
    results = await context.write_each(
        requested,
        lambda image, part: decide_create(
            image, part, rules, broker.rng, validate_only=validate_only, admit=quota.admit(part)
        ),
        lambda new, error: TopicCreationResult(new.name, error=error),
        timeout_ms,
        key=lambda new: new.name,
    )
    by_name = {result.name: result for result in results} | refused
    return [by_name[name] for name in dict.fromkeys(names)]


async def create_missing_topics(
    context: RequestContext, names: Iterable[str], quota: ControllerMutationQuota = UNLIMITED
) -> list[TopicCreationResult]:
    """Create topics automatically; policies do not apply to topics of coordinators.

    :raises KafkaError: As `create_topics`.
    """
    broker, names = context.broker, list(names)
    others = [TopicToCreate(name) for name in names if name not in BROKER_TOPICS]
    created = await create_topics(context, others, validate_only=False, quota=quota) if others else []
    own = [name for name in names if name in BROKER_TOPICS]
    if own:
        rules, config, rng = creation_rules(broker), broker.config, broker.rng
        created_internal = await context.write(
            lambda image: decide_create_internal_topics(image, own, config, rules, rng, quota.admit(own))
        )
        created += created_internal
    return created


async def _refused_topics(
    policies: Policies, requested: Sequence[TopicToCreate], checked: Sequence[TopicCreationResult]
) -> dict[str, TopicCreationResult]:
    """Return the results of topics that fail anyway, and of those that a policy refuses."""
    refused: dict[str, TopicCreationResult] = {}
    by_name = {new.name: new for new in requested}
    for result in checked:
        if result.topic is None:
            refused[result.name] = result
            continue
        try:
            await policies.check_create_topic(_request_metadata(by_name[result.name], result.topic))
        except KafkaError as error:
            refused[result.name] = TopicCreationResult(result.name, error=error.without_traceback())
    return refused


def _request_metadata(new: TopicToCreate, topic: TopicImage) -> CreateTopicPolicy.RequestMetadata:
    by_hand = bool(new.assignments)
    return CreateTopicPolicy.RequestMetadata(
        topic=new.name,
        num_partitions=None if by_hand else topic.partition_count,
        replication_factor=None if by_hand else topic.replication_factor,
        replicas_assignments=new.assignments if by_hand else None,
        configs={key: value for key, value in (new.configs or {}).items() if value is not None},
    )


async def create_internal_topic(broker: BrokerContext, name: str) -> None:
    """Create a topic that this broker writes to, unless it exists.

    :raises KafkaError: If it cannot be created.
    """
    if name in broker.image.topics:
        return
    config, rules, rng = broker.config, creation_rules(broker), broker.rng
    [created] = await broker.metadata.write(
        lambda image: decide_create_internal_topics(image, [name], config, rules, rng)
    )
    if created.error is not None and name not in broker.image.topics:
        raise created.error
