"""Lists and descriptions of groups (ListGroups, DescribeGroups)."""

from collections.abc import Collection, Iterable

from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.member import ClassicGroupMember
from barnabas.groups.classic.states import ClassicState
from barnabas.groups.group import Group
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.describe_groups import DescribedGroup, DescribedGroupMember
from barnabas.wire.messages.list_groups import ListedGroup


def lower_names(names: Iterable[str]) -> frozenset[str]:
    """Return the states or types of a filter in lower case."""
    return frozenset(name.strip().lower() for name in names)


def listed(groups: Iterable[Group], states: Collection[str], types: Collection[str]) -> list[ListedGroup]:
    """List groups in one of these states and of one of these types, in lower case; empty filters match all."""
    return [
        ListedGroup(
            group_id=group.group_id,
            protocol_type=group.protocol_type,
            group_state=group.state_name,
            group_type=group.group_type,
        )
        for group in groups
        if (not states or group.state_name.lower() in states) and (not types or group.group_type in types)
    ]


def described(group: Group | None, group_id: str) -> DescribedGroup:
    """Describe a classic group and its members; assignments are shown while it is stable.

    :raises KafkaError: GROUP_ID_NOT_FOUND.
    """
    if group is None:
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} not found.")
    if not isinstance(group, ClassicGroup):
        message = f"Group {group_id} is not a classic group."
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, message)
    protocol = group.protocol if group.state is ClassicState.STABLE else None
    return DescribedGroup(
        group_id=group_id,
        group_state=group.state_name,
        protocol_type=group.protocol_type,
        protocol_data=protocol or "",
        members=[_described_member(member, protocol) for member in group.members.values()],
    )


def _described_member(member: ClassicGroupMember, protocol: str | None) -> DescribedGroupMember:
    return DescribedGroupMember(
        member_id=member.member_id,
        group_instance_id=member.group_instance_id,
        client_id=member.client_id,
        client_host=member.client_host,
        member_metadata=b"" if protocol is None else member.protocols[protocol],
        member_assignment=member.assignment,
    )
