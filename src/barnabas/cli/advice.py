"""What to try after a failure, by what the command was called with: names that were meant, permissions that lack."""

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping

from barnabas.cli import live
from barnabas.cli.catalogue import ENTRIES
from barnabas.cli.login import current_login

_AUTHORIZATION = re.compile(r"(TOPIC|GROUP|CLUSTER|TRANSACTIONAL_ID)_AUTHORIZATION_FAILED")
_QUOTED = re.compile(r"'([^']+)'")

#: What there is of that kind, by the names of errors that say that something is not there.
_ASKS: Mapping[str, live.Ask[Iterable[str]]] = {
    "UNKNOWN_TOPIC_OR_PARTITION": live.topics,
    "GROUP_ID_NOT_FOUND": live.groups,
    "TRANSACTIONAL_ID_NOT_FOUND": live.transactional_ids,
    "RESOURCE_NOT_FOUND": live.users,
}
_MATCHES_COUNT_MAX = 3


def permission(command: str, kind: str, message: str) -> str:
    """How a permission comes about that a command needs; nothing where that is not about permissions.

    :param kind: the name of the error.
    """
    match = _AUTHORIZATION.fullmatch(kind)
    entry = ENTRIES.get(command)
    if match is None or entry is None:
        return ""
    resource = match[1].lower().replace("_", "-")
    operations = [each.split()[0] for each in entry.needs if each.split()[1] == resource]
    if not operations:
        return ""
    login = current_login()
    wanted = "".join(f" --operation {each}" for each in operations)
    named = _QUOTED.search(message)
    name = "" if resource == "cluster" else f" {named[1] if named else 'NAME'}"
    who = "ANONYMOUS" if login is None else login.user
    return f"have it allowed by 'barnabas acls add --principal {who}{wanted} --{resource}{name}', or log in as another"


def similar_names(kind: str, arguments: Mapping[str, object]) -> list[str]:
    """Names that there are and that resemble those of `arguments` that there are not; few, or none.

    :param kind: the name of the error.
    """
    ask = _ASKS.get(kind)
    if ask is None:
        return []
    names = sorted(live.call_with_timeout(str(arguments.get("bootstrap")), ask) or ())
    missing = [word for word in _words(arguments) if word not in names]
    found = [each for word in missing for each in difflib.get_close_matches(word, names, _MATCHES_COUNT_MAX)]
    return list(dict.fromkeys(found))[:_MATCHES_COUNT_MAX]


def _words(arguments: Mapping[str, object]) -> Iterator[str]:
    """The names among arguments, without the partitions and values behind them."""
    for key, value in arguments.items():
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str) and key != "bootstrap":
                yield re.split(r"[:=]", each)[0]
