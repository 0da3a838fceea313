"""What `barnabas groups list|describe|delete|remove-members` do."""

from collections.abc import Sequence

from barnabas.base.ids import TopicPartition
from barnabas.cli.failures import wrong_use
from barnabas.cli.output import print_json, print_table
from barnabas.cli.work.calls import with_cluster
from barnabas.cli.work.outcomes import raise_all
from barnabas.client.admin.group_messages import GroupDescription, LeavingMember, MemberDescription
from barnabas.client.admin.groups import Groups

_LIST_COLUMNS = ("group", "type", "protocol", "state")
_GROUP_COLUMNS = ("group", "type", "state", "assignor", "coordinator", "epoch", "members")
_MEMBER_COLUMNS = ("group", "member", "instance", "client", "host", "topics", "partitions")


def show_list(bootstrap: str, states: Sequence[str], types: Sequence[str], *, as_json: bool) -> None:
    """Print all groups, or those that pass the filters."""
    found = with_cluster(bootstrap, lambda cluster: Groups(cluster).list(states, types))
    if as_json:
        print_json([each._asdict() for each in found])
    else:
        print_table(_LIST_COLUMNS, found)


def describe(bootstrap: str, names: Sequence[str], *, as_json: bool) -> None:
    """Print groups and their members.

    :raises KafkaError: For those that cannot be described, when the others are printed.
    """
    found = with_cluster(bootstrap, lambda cluster: Groups(cluster).describe(names))
    groups = [group for group in found.values() if isinstance(group, GroupDescription)]
    if as_json:
        print_json([_as_json(group) for group in groups])
    elif groups:
        print_table(_GROUP_COLUMNS, [_group_row(group) for group in groups])
        members = [_member_row(group.group_id, member) for group in groups for member in group.members]
        if members:
            print()
            print_table(_MEMBER_COLUMNS, members)
    raise_all(found.values())


def delete(bootstrap: str, names: Sequence[str], *, as_json: bool) -> None:
    """Delete groups and print what became of each.

    :raises KafkaError: For those that are refused, when the others are printed.
    """
    outcomes = with_cluster(bootstrap, lambda cluster: Groups(cluster).delete(names))
    if as_json:
        print_json([{"group": name, "error": error and error.code.name} for name, error in outcomes.items()])
    else:
        for name, error in outcomes.items():
            if error is None:
                print(f"{name}: deleted")
    raise_all(outcomes.values())


def remove_members(
    bootstrap: str, name: str, instances: Sequence[str], members: Sequence[str], *, as_json: bool
) -> None:
    """Make members leave and print what became of each.

    :raises Failure: When none is named.
    :raises KafkaError: For those that are refused, when the others are printed.
    """
    wanted = [LeavingMember("", each) for each in instances] + [LeavingMember(each) for each in members]
    if not wanted:
        raise wrong_use("no member is named", "name some by --instance or --member")
    outcomes = with_cluster(bootstrap, lambda cluster: Groups(cluster).remove_members(name, wanted))
    if as_json:
        print_json(
            [each._asdict() | {"error": error and error.code.name} for each, error in outcomes.items()]
        )
    for member, error in outcomes.items() if not as_json else ():
        if error is None:
            print(f"{member.instance_id or member.member_id}: removed")
    raise_all(outcomes.values())


def _group_row(group: GroupDescription) -> tuple[object, ...]:
    epoch = "" if group.epoch is None else group.epoch
    counts = (group.coordinator, epoch, len(group.members))
    return (group.group_id, group.type, group.state, group.assignor, *counts)


def _member_row(group_id: str, member: MemberDescription) -> tuple[object, ...]:
    who = (member.member_id, member.instance_id or "", member.client_id, member.client_host)
    return (group_id, *who, ", ".join(member.subscription), ", ".join(map(str, member.assignment)))


def _as_json(group: GroupDescription) -> dict[str, object]:
    members = [
        member._asdict() | {"assignment": [_place(place) for place in member.assignment]}
        for member in group.members
    ]
    return group._asdict() | {"members": members}


def _place(place: TopicPartition) -> dict[str, object]:
    return place._asdict()
