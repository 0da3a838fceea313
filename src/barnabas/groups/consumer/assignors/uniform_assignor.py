"""The assignor `uniform`: equal numbers of partitions for all members, with as few moves as possible."""

from barnabas.groups.consumer.assignors.group_spec import GroupSpec, Partitions
from barnabas.groups.consumer.assignors.heterogeneous import assign_heterogeneous
from barnabas.groups.consumer.assignors.homogeneous import assign_homogeneous


def assign_uniformly(group: GroupSpec) -> dict[str, Partitions]:
    """Assign all partitions to their subscribers."""
    if not group.members:
        return {}
    return assign_homogeneous(group) if group.is_homogeneous else assign_heterogeneous(group)
