"""ElectLeaders: each partition is decided on its own (KIP-183, KIP-460)."""

from collections.abc import Iterable

from barnabas.metadata.decision import Decision
from barnabas.metadata.election_rules import DEFAULT_RULES, ElectionRules
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.partition_change_builder import (
    Election,
    PartitionChange,
    PartitionOutcome,
    TopicOutcome,
    brokers_up,
    build_partition_change,
    find_partition,
    partition_decision,
)
from barnabas.metadata.store import NEVER, PARTITIONS_MAX
from barnabas.metadata.topic_rotation import TopicRotation
from barnabas.metadata.topics import NO_LEADER, PartitionRegistration, TopicImage
from barnabas.wire.errors import ErrorCode, KafkaError

#: The error if no leader can be elected.
_NOBODY = {
    Election.PREFERRED: ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE,
    Election.UNCLEAN: ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE,
}

#: Outcomes that are left out of a request for all partitions: topics may be deleted meanwhile.
_UNNEEDED = (ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def decide_elect(
    image: MetadataImage,
    election: Election,
    requested: Iterable[tuple[str, Iterable[int]]],
    rules: ElectionRules = DEFAULT_RULES,
) -> Decision[list[TopicOutcome]]:
    outcomes = []
    changes: list[PartitionChange] = []
    for name, indexes in requested:
        partitions = []
        for index in indexes:
            try:
                changes.append(_elect(image, election, name, index, rules))
            except KafkaError as error:
                partitions.append(PartitionOutcome(index, error.without_traceback()))
            else:
                partitions.append(PartitionOutcome(index))
        outcomes.append(TopicOutcome(name, partitions))
    return partition_decision(outcomes, image, changes)


def decide_elect_preferred(
    image: MetadataImage,
    rules: ElectionRules = DEFAULT_RULES,
    limit: int = PARTITIONS_MAX,
    rotation: TopicRotation | None = None,
) -> Decision[int]:
    """Return leadership to preferred leaders that are in sync; return the number of partitions, at most `limit`."""
    up = brokers_up(image)
    changes: list[PartitionChange] = []
    rotation = rotation or TopicRotation()
    for topic in rotation.topics(image):
        for index in _changed_partitions(image, topic)[1]:
            state = image.partition(topic, index)
            preferred = state.replicas[0]
            if state.leader == preferred or preferred not in state.isr or preferred not in up:
                continue
            min_isr = rules.min_isr_with_elr(image, topic.name)
            after = build_partition_change(state, state, up, Election.PREFERRED, min_isr=min_isr)
            if after.leader == preferred:
                changes.append(PartitionChange(topic, index, after))
                if len(changes) == limit:
                    rotation.continue_in(topic)
                    return partition_decision(len(changes), image, changes)
    return partition_decision(len(changes), image, changes)


def changed_partitions(image: MetadataImage) -> list[tuple[str, list[int]]]:
    """Return all topics, with the partitions whose preferred leader may not lead."""
    return [_changed_partitions(image, topic) for topic in image.topics.values()]


def _changed_partitions(image: MetadataImage, topic: TopicImage) -> tuple[str, list[int]]:
    """Return the partitions of a topic whose state has changed since it was created, so that the preferred leader may
    not lead.
    """
    indexes = range(topic.partition_count)
    return topic.name, [index for index in indexes if image.partition_revision(topic, index) != NEVER]


def without_unneeded(outcome: TopicOutcome) -> TopicOutcome:
    """Leave out the partitions that needed no election, as in the response to a request for all partitions."""
    return TopicOutcome(
        outcome.name,
        [
            partition
            for partition in outcome.partitions
            if partition.error is None or partition.error.code not in _UNNEEDED
        ],
    )


def _elect(
    image: MetadataImage, election: Election, name: str, index: int, rules: ElectionRules
) -> PartitionChange:
    topic, state = find_partition(image, name, index)
    if election is Election.PREFERRED and state.leader == state.replicas[0]:
        message = f"{name}-{index} is led by its preferred leader {state.leader}."
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, message)
    if election is Election.UNCLEAN and state.leader != NO_LEADER:
        message = f"{name}-{index} has a leader: {state.leader}."
        raise KafkaError(ErrorCode.ELECTION_NOT_NEEDED, message)
    min_isr = rules.min_isr_with_elr(image, name)
    after = build_partition_change(state, state, brokers_up(image), election, min_isr=min_isr)
    if after is state:
        raise KafkaError(
            _NOBODY[election], f"{name}-{index} cannot be led by {_candidate_description(state, election)}."
        )
    return PartitionChange(topic, index, after)


def _candidate_description(state: PartitionRegistration, election: Election) -> str:
    if election is Election.PREFERRED:
        return f"its preferred leader {state.replicas[0]}, which is not both up and in sync"
    return f"any of its replicas {list(state.replicas)}: none is up"
