"""`barnabas groups list`, `describe`, `delete` and `remove-members`."""

from typing import Annotated

import typer

from barnabas.base.ids import TopicPartition
from barnabas.cli.groups.options import GroupId, GroupIds
from barnabas.cli.support.calls import with_cluster
from barnabas.cli.support.commands import command
from barnabas.cli.support.failures import wrong_use
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.outcomes import error_json, raise_all
from barnabas.cli.support.output import print_json, print_table
from barnabas.client.admin.group_messages import GroupDescription, LeavingMember, MemberDescription
from barnabas.client.admin.groups import Groups

_LIST_COLUMNS = ("group", "type", "protocol", "state")
_GROUP_COLUMNS = ("group", "type", "state", "assignor", "coordinator", "epoch", "members")
_MEMBER_COLUMNS = ("group", "member", "instance", "client", "host", "topics", "partitions")


@command(
    "list", example="groups list --state Empty", apis=("ListGroups",), needs=("describe group",), hides=True
)
def list_groups(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", help="Only groups in this state, such as Stable or Empty; may be repeated."),
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            "--type", help="Only groups of this type, such as classic or consumer; may be repeated."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List groups."""
    groups = with_cluster(bootstrap, lambda cluster: Groups(cluster).list(state or [], kind or []))
    if as_json:
        print_json([group._asdict() for group in groups])
    else:
        print_table(_LIST_COLUMNS, groups)


@command(
    "describe",
    example="groups describe billing",
    apis=("FindCoordinator", "ConsumerGroupDescribe", "DescribeGroups"),
    needs=("describe group",),
)
def describe_groups(names: GroupIds, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False) -> None:
    """Show groups, their members, and the partitions assigned to each member."""
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


@command("delete", example="groups delete billing", apis=("DeleteGroups",), needs=("delete group",))
def delete_groups(names: GroupIds, bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False) -> None:
    """Delete groups that have no members, with their offsets."""
    errors = with_cluster(bootstrap, lambda cluster: Groups(cluster).delete(names))
    if as_json:
        print_json([{"group": name, **error_json(error)} for name, error in errors.items()])
    else:
        for name, error in errors.items():
            if error is None:
                print(f"{name}: deleted")
    raise_all(errors.values())


@command(
    "remove-members",
    example="groups remove-members billing --instance worker-3",
    apis=("LeaveGroup",),
    needs=("read group",),
)
def remove_members(
    name: GroupId,
    instances: Annotated[
        list[str] | None,
        typer.Option(
            "--instance",
            metavar="ID",
            help="Static member to remove, by its group.instance.id; may be repeated.",
        ),
    ] = None,
    members: Annotated[
        list[str] | None,
        typer.Option(
            "--member",
            metavar="ID",
            help="Member to remove, by its id as shown by 'describe'; may be repeated.",
        ),
    ] = None,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Remove members from a classic group, such as static members that will not return."""
    leaving = [LeavingMember("", instance) for instance in instances or ()]
    leaving += [LeavingMember(member) for member in members or ()]
    if not leaving:
        raise wrong_use("no member specified", "use --instance or --member")
    errors = with_cluster(bootstrap, lambda cluster: Groups(cluster).remove_members(name, leaving))
    if as_json:
        print_json([member._asdict() | error_json(error) for member, error in errors.items()])
    for member, error in errors.items() if not as_json else ():
        if error is None:
            print(f"{member.instance_id or member.member_id}: removed")
    raise_all(errors.values())
