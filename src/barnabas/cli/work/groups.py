"""Implementation of `barnabas groups list|describe|delete|remove-members`."""

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
    """Print the groups that match the filters; empty filters match all groups."""
    groups = with_cluster(bootstrap, lambda cluster: Groups(cluster).list(states, types))
    if as_json:
        print_json([group._asdict() for group in groups])
    else:
        print_table(_LIST_COLUMNS, groups)


def describe(bootstrap: str, names: Sequence[str], *, as_json: bool) -> None:
    """Print groups and their members.

    :raises KafkaError: For groups that cannot be described, after the others are printed.
    """
    results = with_cluster(bootstrap, lambda cluster: Groups(cluster).describe(names))
    groups = [group for group in results.values() if isinstance(group, GroupDescription)]
    if as_json:
        print_json([_as_json(group) for group in groups])
    elif groups:
        print_table(_GROUP_COLUMNS, [_group_row(group) for group in groups])
        members = [_member_row(group.group_id, member) for group in groups for member in group.members]
        if members:
            print()
            print_table(_MEMBER_COLUMNS, members)
    raise_all(results.values())


def delete(bootstrap: str, names: Sequence[str], *, as_json: bool) -> None:
    """Delete groups, and print the results.

    :raises KafkaError: For groups that were not deleted, after the others are printed.
    """
    errors = with_cluster(bootstrap, lambda cluster: Groups(cluster).delete(names))
    if as_json:
        print_json([{"group": name, "error": error and error.code.name} for name, error in errors.items()])
    else:
        for name, error in errors.items():
            if error is None:
                print(f"{name}: deleted")
    raise_all(errors.values())


def remove_members(
    bootstrap: str, name: str, instances: Sequence[str], members: Sequence[str], *, as_json: bool
) -> None:
    """Remove members, and print the results.

    :raises CommandError: If no member is given.
    :raises KafkaError: For members that were not removed, after the others are printed.
    """
    leaving = [LeavingMember("", instance) for instance in instances]
    leaving += [LeavingMember(member) for member in members]
    if not leaving:
        raise wrong_use("no member specified", "use --instance or --member")
    errors = with_cluster(bootstrap, lambda cluster: Groups(cluster).remove_members(name, leaving))
    if as_json:
        print_json(
            [member._asdict() | {"error": error and error.code.name} for member, error in errors.items()]
        )
    for member, error in errors.items() if not as_json else ():
        if error is None:
            print(f"{member.instance_id or member.member_id}: removed")
    raise_all(errors.values())


def _group_row(group: GroupDescription) -> tuple[object, ...]:
    epoch = "" if group.epoch is None else group.epoch
    counts = (group.coordinator, epoch, len(group.members))
    return (group.group_id, group.type, group.state, group.assignor, *counts)


def _member_row(group_id: str, member: MemberDescription) -> tuple[object, ...]:
    identity = (member.member_id, member.instance_id or "", member.client_id, member.client_host)
    return (group_id, *identity, ", ".join(member.subscription), ", ".join(map(str, member.assignment)))


def _as_json(group: GroupDescription) -> dict[str, object]:
    members = [
        member._asdict() | {"assignment": [_tp_json(tp) for tp in member.assignment]}
        for member in group.members
    ]
    return group._asdict() | {"members": members}


def _tp_json(tp: TopicPartition) -> dict[str, object]:
    return tp._asdict()
