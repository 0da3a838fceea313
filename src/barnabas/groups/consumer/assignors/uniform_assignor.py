"""The assignor `uniform`: as many partitions for one member as for another, and as few moves as that allows."""

from barnabas.groups.consumer.assignors.group_spec import GroupSpec, Partitions
from barnabas.groups.consumer.assignors.heterogeneous import assign_heterogeneous
from barnabas.groups.consumer.assignors.homogeneous import assign_homogeneous


def assign_uniformly(group: GroupSpec) -> dict[str, Partitions]:
    """Spread all partitions over their subscribers."""
    if not group.members:
        return {}
    return assign_homogeneous(group) if group.is_homogeneous else assign_heterogeneous(group)
