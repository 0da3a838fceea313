"""Hints after a failure, made from the arguments of the command: similar names, missing permissions."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from barnabas.cli.support import live
from barnabas.cli.support.login import current_login

#: The resource type on which a permission is missing, by the error.
_RESOURCES = {
    "TOPIC_AUTHORIZATION_FAILED": "topic",
    "GROUP_AUTHORIZATION_FAILED": "group",
    "CLUSTER_AUTHORIZATION_FAILED": "cluster",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "transactional-id",
    "DELEGATION_TOKEN_AUTHORIZATION_FAILED": "user",
}
_QUOTED = re.compile(r"'([^']+)'")

#: Queries for the existing names of a kind, by the error that reports such a name as not found.
_QUERIES: Mapping[str, live.Query[Iterable[str]]] = {
    "UNKNOWN_TOPIC_OR_PARTITION": live.topics,
    "GROUP_ID_NOT_FOUND": live.groups,
    "TRANSACTIONAL_ID_NOT_FOUND": live.transactional_ids,
    "RESOURCE_NOT_FOUND": live.users,
}
_MATCHES_COUNT_MAX = 3


def permission_hint(needs: Sequence[str], kind: str, message: str) -> str:
    """Return the command that grants the missing permission; "" if the error is not an authorization error.

    :param needs: The permissions that the command needs, as "operation kind".
    :param kind: Name of the error.
    """
    resource = _RESOURCES.get(kind)
    operations = [need.split()[0] for need in needs if need.split()[1] == resource]
    if not operations:
        return ""
    login = current_login()
    options = "".join(f" --operation {operation}" for operation in operations)
    quoted = _QUOTED.search(message)
    name = "" if resource == "cluster" else f" {quoted[1] if quoted else 'NAME'}"
    user = "ANONYMOUS" if login is None else login.user
    return f"'barnabas acls add --principal {user}{options} --{resource}{name}', or log in as another user"


def similar_names(kind: str, arguments: Mapping[str, object]) -> list[str]:
    """Return at most three existing names that are similar to the unknown names among `arguments`.

    :param kind: Name of the error.
    """
    query = _QUERIES.get(kind)
    if query is None:
        return []
    names = sorted(live.call_with_timeout(str(arguments.get("bootstrap")), query) or ())
    missing = [word for word in _words(arguments) if word not in names]
    matches = [
        name for word in missing for name in difflib.get_close_matches(word, names, _MATCHES_COUNT_MAX)
    ]
    return list(dict.fromkeys(matches))[:_MATCHES_COUNT_MAX]


def _words(arguments: Mapping[str, object]) -> Iterator[str]:
    """Return the names among the arguments, without their partitions and values."""
    for key, value in arguments.items():
        for text in value if isinstance(value, list) else [value]:
            if isinstance(text, str) and key != "bootstrap":
                yield re.split(r"[:=]", text)[0]
