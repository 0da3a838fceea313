"""Records of classic groups in Kafka's format."""

from collections.abc import Mapping

from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.member import ClassicGroupMember
from barnabas.groups.classic.states import ClassicState
from barnabas.wire.coordinator_records.group_metadata import GroupMetadataValue, MemberMetadata

#: Replaces a time in old records.
_UNKNOWN_MS = -1


def new_group_record(group: ClassicGroup) -> GroupMetadataValue:
    """Return the record of a new group without members."""
    return GroupMetadataValue(
        protocol_type="",
        generation=0,
        protocol=None,
        leader=None,
        current_state_timestamp=_timestamp(group),
        members=[],
    )


def group_record(group: ClassicGroup, assignments: Mapping[str, bytes]) -> GroupMetadataValue:
    """Return the record of a generation: members and their assignments, by member id."""
    return GroupMetadataValue(
        protocol_type=group.protocol_type,
        generation=group.generation,
        protocol=group.protocol,
        leader=group.leader,
        current_state_timestamp=_timestamp(group),
        members=[
            _member_record(member, group.protocol or "", assignments[member.member_id])
            for member in group.members.values()
        ],
    )


def assignments_of(group: ClassicGroup) -> dict[str, bytes]:
    """Return the assignment of each member."""
    return {member.member_id: member.assignment for member in group.members.values()}


def group_of(group_id: str, value: GroupMetadataValue) -> ClassicGroup:
    """Return the group of a record."""
    known_ms = value.current_state_timestamp
    group = ClassicGroup(group_id, None if known_ms == _UNKNOWN_MS else known_ms)
    for metadata in value.members:
        group.add(_member_of(metadata, value.protocol or ""), value.protocol_type)
    group.state = ClassicState.STABLE if value.members else ClassicState.EMPTY
    group.generation = value.generation
    group.protocol_type = value.protocol_type
    group.protocol = value.protocol
    if value.leader in group.members:
        group.leader = value.leader
    group.update_subscriptions()
    return group


def _timestamp(group: ClassicGroup) -> int:
    return _UNKNOWN_MS if group.state_since_ms is None else group.state_since_ms


def _member_record(member: ClassicGroupMember, protocol: str, assignment: bytes) -> MemberMetadata:
    return MemberMetadata(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout=member.rebalance_timeout_ms,
        session_timeout=member.session_timeout_ms,
        subscription=member.protocols[protocol],
        assignment=assignment,
    )


def _member_of(metadata: MemberMetadata, protocol: str) -> ClassicGroupMember:
    rebalance_timeout_ms = (
        metadata.session_timeout if metadata.rebalance_timeout < 0 else metadata.rebalance_timeout
    )
    return ClassicGroupMember(
        metadata.member_id,
        metadata.group_instance_id,
        metadata.client_id,
        metadata.client_host,
        rebalance_timeout_ms,
        metadata.session_timeout,
        {protocol: bytes(metadata.subscription)},
        bytes(metadata.assignment),
    )
