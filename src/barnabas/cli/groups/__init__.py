"""`barnabas groups`: list, describe, explain and delete groups, manage their offsets and members."""

from barnabas.cli.groups.explain import explain_group
from barnabas.cli.groups.groups import delete_groups, describe_groups, list_groups, remove_members
from barnabas.cli.groups.offsets import delete_offsets, reset_group_offsets, show_offsets
from barnabas.cli.support.commands import command_group

app = command_group(
    list_groups,
    describe_groups,
    explain_group,
    delete_groups,
    show_offsets,
    reset_group_offsets,
    delete_offsets,
    remove_members,
)
