"""The differences that a change makes to a resource, by key and without secrets.

A resource is named by its kind and name: `topic/orders`, `topic/ord*` for what a prefixed ACL covers, `broker/1`,
`broker/` for the default of all brokers, `quota/user=alice,client-id` where a missing name is the default,
`user/alice`.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from barnabas.base.resource_names import HIDDEN


class Difference(NamedTuple):
    """One key of a resource before and after a change; None where it has no value."""

    resource: str
    key: str
    before: Any
    after: Any


def compare(
    resource: str, before: Mapping[str, Any], after: Mapping[str, Any], secrets: Iterable[str] = ()
) -> Iterator[Difference]:
    """Yield the keys whose values differ; {} stands for a resource that does not exist.

    :param secrets: Keys whose values are hidden.
    """
    hidden = frozenset(secrets)
    for key in sorted(before.keys() | after.keys()):
        old, new = before.get(key), after.get(key)
        if old == new:
            continue
        if key in hidden:
            old, new = (None if value is None else HIDDEN for value in (old, new))
        yield Difference(resource, key, old, new)
