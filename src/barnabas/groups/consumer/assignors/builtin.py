"""The built-in assignors, by their names in `group.consumer.assignors` and in requests."""

from collections.abc import Mapping
from types import MappingProxyType

from barnabas.groups.consumer.assignors.group_spec import Assignor
from barnabas.groups.consumer.assignors.range_assignor import assign_ranges
from barnabas.groups.consumer.assignors.uniform_assignor import assign_uniformly

ASSIGNORS: Mapping[str, Assignor] = MappingProxyType({"uniform": assign_uniformly, "range": assign_ranges})
