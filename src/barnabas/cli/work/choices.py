"""What commands on declared states are asked for."""

import fnmatch
import os
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.failures import wrong_use
from barnabas.cli.login import current_login
from barnabas.declared.parser import read_state
from barnabas.declared.plan import PlanRequest
from barnabas.declared.secrets import Secrets
from barnabas.declared.state import CONFIG_SECTIONS, Choice, DeclaredState, Section
from barnabas.wire.acls import ResourceType

#: What stands before the name of a thing: ACLs are named by what they are about.
KINDS = tuple(
    sorted(
        {
            each.name.lower().replace("_", "-")
            for each in (*CONFIG_SECTIONS.values(), *ResourceType)
            if each > ResourceType.ANY
        }
        | {"user", "quota"}
    )
)
_WILD = set("*?[")


def resource_filter(
    include: Sequence[str] | None, exclude: Sequence[str] | None, sections: Sequence[str] | None
) -> Choice:
    """The things that are meant.

    :raises Failure: When a pattern can match no name.
    """
    for pattern in (*(include or ()), *(exclude or ())):
        _check(pattern)
    chosen = frozenset(Section(each.replace("-", "_")) for each in sections or Section)
    return Choice(tuple(include or ()), tuple(exclude or ()), chosen)


def _check(pattern: str) -> None:
    """A pattern with a typing error would silently choose nothing."""
    kind, slash, _ = pattern.partition("/")
    if not _WILD & set(kind) and not (slash and kind in KINDS):
        raise wrong_use(f"no name matches '{pattern}'", f"KIND/NAME, of {', '.join(KINDS)}")


def plan_request(file: Path, choice: Choice, renewed: Sequence[str] | None = None) -> PlanRequest:
    """What a file declares, wished for by whoever logs in.

    :raises FileNotFoundError: When there is no such file.
    :raises DeclarationError: When it declares no state.
    :raises Failure: When nothing in it is meant.
    """
    file.stat()
    login = current_login()
    principal = f"User:{login.user}" if login else "User:ANONYMOUS"
    secrets = Secrets(os.environ, file.parent)
    declared = read_state(file)
    _check_choice(file, declared, choice)
    for pattern in renewed or ():
        if not any(fnmatch.fnmatchcase(user, pattern) for user in declared.users):
            raise wrong_use(f"{file}: declares no user '{pattern}', whose password could be set again")
    return PlanRequest(declared, secrets, principal, choice, tuple(renewed or ()))


def _check_choice(file: Path, declared: DeclaredState, choice: Choice) -> None:
    """What is pruned is not in the file: whether anything is meant, the cluster alone knows then."""
    if declared.sections and not choice.of(declared).sections:
        raise wrong_use(
            f"{file}: declares nothing of what was chosen", "see --include, --exclude and --section"
        )
