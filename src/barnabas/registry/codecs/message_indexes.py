"""Messages of Protobuf by their indexes: of a message in its file, then of one within that.

The messages that maps consist of count, as for Confluent's serializers, which go by the descriptors of generated code.
"""

from collections.abc import Sequence
from typing import Any


def message_at(file: Any, indexes: Sequence[int]) -> Any:
    """Return the descriptor of a message; None for indexes without a message, or of the entry of a map."""
    siblings, found = list(file.message_types_by_name.values()), None
    for index in indexes:
        if not 0 <= index < len(siblings):
            return None
        found = siblings[index]
        siblings = list(found.nested_types)
    return None if found is None or found.GetOptions().map_entry else found


def message_indexes(descriptor: Any) -> tuple[int, ...]:
    """Return the indexes of a message."""
    parent = descriptor.containing_type
    if parent is None:
        return (list(descriptor.file.message_types_by_name).index(descriptor.name),)
    names = [sibling.name for sibling in parent.nested_types]
    return (*message_indexes(parent), names.index(descriptor.name))
