"""Conversion of groups between the classic and the consumer protocol (KIP-848).

A group is upgraded when its first member of the consumer protocol joins, and downgraded when the last one leaves.
"""

from collections.abc import Collection, Sequence

from barnabas.coordinator.result import CoordinatorResult
from barnabas.coordinator.shard import RecordPosition
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.member import ClassicGroupMember
from barnabas.groups.classic.records import group_record
from barnabas.groups.classic.responses import refuse_joining, refuse_syncing
from barnabas.groups.classic.timers import join_timer, session_timer, sync_timer
from barnabas.groups.consumer.assignors.group_spec import Partitions
from barnabas.groups.consumer.embedded import decode_assignment, encode_assignment
from barnabas.groups.consumer.group import PROTOCOL_TYPE, ConsumerGroup
from barnabas.groups.consumer.member import ConsumerGroupMember
from barnabas.groups.consumer.records import (
    append_assignment_epoch,
    append_current,
    append_group_epoch,
    append_group_tombstones,
    append_member,
    append_target,
)
from barnabas.groups.consumer.replay import ConsumerReplay
from barnabas.groups.consumer.settings import Settings
from barnabas.groups.consumer.subscriptions import metadata_hash
from barnabas.groups.consumer.timers import cancel_timers, set_session_timer
from barnabas.groups.group import Group
from barnabas.metadata.image import MetadataImage
from barnabas.wire.codec import DecodeError
from barnabas.wire.consumer_protocol.versioned import read_subscription
from barnabas.wire.coordinator_records.consumer_group_member_metadata import (
    ClassicMemberMetadata,
    ClassicProtocol,
)
from barnabas.wire.coordinator_records.group_metadata import GroupMetadataKey
from barnabas.wire.coordinator_records.serde import CoordinatorRecord
from barnabas.wire.errors import ErrorCode, KafkaError

#: A timer that is due immediately: the members of a downgraded group must rejoin.
DOWNGRADED = "consumer-downgraded"


# Upgrade


def check_upgrade(group: ClassicGroup, settings: Settings) -> None:
    """Check that a classic group may be upgraded.

    :raises KafkaError: GROUP_ID_NOT_FOUND.
    """
    if not settings.migration_policy().allows_upgrade:
        raise _upgrade_error(group, "online upgrade is disabled")
    if group.protocol_type != PROTOCOL_TYPE:
        raise _upgrade_error(group, "the group does not use the consumer embedded protocol")
    if len(group.members) > settings.size_max():
        raise _upgrade_error(group, "the group size exceeds the consumer group maximum size")


def upgrade(result: CoordinatorResult, group: ClassicGroup, settings: Settings) -> ConsumerGroup:
    """Write a classic group as a consumer group; return the group as it will be after the replay.

    :raises KafkaError: GROUP_ID_NOT_FOUND.
    """
    image = settings.context.image()
    try:
        members = [_upgraded_member(group, member, image) for member in group.members.values()]
    except DecodeError:
        raise _upgrade_error(group, "the embedded consumer protocol is malformed") from None
    group.append_tombstones(result)
    first = len(result.records)
    _append_group(result, group, members, image)
    upgraded = _replay_into_new_group(group.group_id, result.records[first:])
    for member in members:
        _fail_waiting_requests(result, group, group.members[member.member_id])
        set_session_timer(result, upgraded, member, settings.session_timeout_ms(group.group_id))
    result.cancel_timer(join_timer(group.group_id))
    result.cancel_timer(sync_timer(group.group_id))
    return upgraded


def _upgraded_member(
    group: ClassicGroup, member: ClassicGroupMember, image: MetadataImage
) -> ConsumerGroupMember:
    favourite = next(iter(member.protocols))  #: before the members have agreed on a protocol
    subscription = read_subscription(member.protocols[group.protocol or favourite])
    assigned, has_more = decode_assignment(member.assignment, image)
    if has_more:
        why = (
            "an unsupported custom assignor is in use. Please refer to the documentation or switch to a default "
            "assignor before re-attempting the upgrade"
        )
        raise _upgrade_error(group, why)
    return ConsumerGroupMember(
        member.member_id,
        member.group_instance_id,
        subscription.rack_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        frozenset(subscription.topics),
        classic=ClassicMemberMetadata(
            session_timeout_ms=member.session_timeout_ms,
            supported_protocols=[
                ClassicProtocol(name=name, metadata=metadata) for name, metadata in member.protocols.items()
            ],
        ),
        member_epoch=group.generation,
        previous_epoch=group.generation,
        assigned={
            topic_id: dict.fromkeys(indexes, group.generation) for topic_id, indexes in assigned.items()
        },
    )


def _append_group(
    result: CoordinatorResult,
    group: ClassicGroup,
    members: Collection[ConsumerGroupMember],
    image: MetadataImage,
) -> None:
    group_id, epoch = group.group_id, group.generation
    for member in members:
        append_member(result, group_id, member)
    append_group_epoch(result, group_id, epoch, metadata_hash(members, {}, image))
    for member in members:
        partitions = {topic_id: frozenset(epochs) for topic_id, epochs in member.assigned.items()}
        append_target(result, group_id, member.member_id, partitions)
    append_assignment_epoch(result, group_id, epoch, 0)
    for member in members:
        append_current(result, group_id, member)


def _replay_into_new_group(group_id: str, records: Collection[object]) -> ConsumerGroup:
    groups: dict[str, Group] = {}
    replays = ConsumerReplay(groups).by_record()
    for record in records:
        assert isinstance(record, CoordinatorRecord), record
        replays[type(record.key)](record.key, record.value, RecordPosition(0, 0))
    group = groups.get(group_id)
    assert isinstance(group, ConsumerGroup), group
    return group


def _fail_waiting_requests(
    result: CoordinatorResult, group: ClassicGroup, member: ClassicGroupMember
) -> None:
    """Fail the waiting requests of the classic group with REBALANCE_IN_PROGRESS; its members then join the consumer
    group.
    """
    refuse_joining(result, member, ErrorCode.REBALANCE_IN_PROGRESS)
    error = KafkaError(
        ErrorCode.REBALANCE_IN_PROGRESS, "The group is being upgraded to the consumer protocol."
    )
    refuse_syncing(result, member, error)
    result.cancel_timer(session_timer(group.group_id, member.member_id))


def _upgrade_error(group: ClassicGroup, why: str) -> KafkaError:
    message = f"Cannot upgrade classic group {group.group_id} to consumer group because {why}."
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)


# Downgrade


def may_downgrade(
    group: ConsumerGroup,
    leaving: Collection[ConsumerGroupMember],
    settings: Settings,
    *,
    joining_count: int = 0,
) -> bool:
    """Return whether all remaining and joining members use the classic protocol, and the group may be downgraded."""
    ids = {member.member_id for member in leaving}
    staying = [member for member_id, member in group.members.items() if member_id not in ids]
    size_max = settings.context.config().integer("group.max.size")
    return (
        settings.migration_policy().allows_downgrade
        and 0 < len(staying) + joining_count <= size_max
        and all(member.uses_classic_protocol for member in staying)
    )


def downgrade(
    result: CoordinatorResult,
    group: ConsumerGroup,
    members: Sequence[tuple[ConsumerGroupMember, Partitions]],
    image: MetadataImage,
    *,
    rebalances: bool,
) -> None:
    """Write a consumer group as a classic one with these members and their targets."""
    ids = sorted(group.members.keys() | {member.member_id for member, _ in members})
    append_group_tombstones(result, group.group_id, ids, group.regexes)
    for member_id in ids:
        cancel_timers(result, group, member_id)
    classic = ClassicGroup(group.group_id, result.now_ms)
    for member, _ in members:
        classic.add(_classic_member(member), PROTOCOL_TYPE)
    classic.generation = group.epoch
    classic.protocol = classic.selected_protocol()
    assignments = {
        member.member_id: encode_assignment(
            target, classic.members[member.member_id].protocols[classic.protocol], image
        )
        for member, target in members
    }
    result.append(GroupMetadataKey(group=group.group_id), group_record(classic, assignments))
    for classic_member in classic.members.values():
        timer = session_timer(group.group_id, classic_member.member_id)
        result.set_timer(timer, classic_member.session_timeout_ms)
    if rebalances:
        result.set_timer((DOWNGRADED, group.group_id), 0)


def _classic_member(member: ConsumerGroupMember) -> ClassicGroupMember:
    assert member.classic is not None, member
    return ClassicGroupMember(
        member.member_id,
        member.instance_id,
        member.client_id,
        member.client_host,
        member.rebalance_timeout_ms,
        member.classic.session_timeout_ms,
        {protocol.name: bytes(protocol.metadata) for protocol in member.classic.supported_protocols},
    )
