"""Arguments and options of the commands on declared states, and what they stand for."""

import fnmatch
import os
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli.support.failures import wrong_use
from barnabas.cli.support.login import current_login, current_tls
from barnabas.client.auth.principal import known_principal
from barnabas.declared.parser import read_state
from barnabas.declared.plan import PlanRequest
from barnabas.declared.secrets import Secrets
from barnabas.declared.state import CONFIG_SECTIONS, ClusterState, ResourceFilter, Section
from barnabas.wire.acls import ResourceType

#: The APIs that read the state of a cluster, and the permissions for them.
READING_APIS = ("Metadata", "DescribeConfigs")
READING_NEEDS = ("describe topic", "describe-configs topic", "describe cluster", "describe-configs cluster")

#: Kinds of resources in patterns (KIND/NAME); for ACLs the kind of the resource that they apply to.
KINDS = tuple(
    sorted(
        {
            kind.name.lower().replace("_", "-")
            for kind in (*CONFIG_SECTIONS.values(), *ResourceType)
            if kind > ResourceType.ANY
        }
        | {"user", "quota"}
    )
)
_WILD = set("*?[")


class SectionArg(StrEnum):
    """Sections of a file, as in arguments."""

    TOPICS = "topics"
    ACLS = "acls"
    QUOTAS = "quotas"
    USERS = "users"
    GROUPS = "groups"
    BROKERS = "brokers"
    CLIENT_METRICS = "client-metrics"


File = Annotated[
    Path, typer.Argument(metavar="FILE", help="YAML file with the declared state.", show_default=False)
]
Include = Annotated[
    list[str] | None,
    typer.Option(
        "--include",
        "-i",
        metavar="KIND/NAME",
        help="Only resources that match, such as 'topic/orders*'; may be repeated.",
    ),
]
Exclude = Annotated[
    list[str] | None,
    typer.Option(
        "--exclude",
        "-x",
        metavar="KIND/NAME",
        help="Leave out resources that match, such as 'topic/test-*'; may be repeated.",
    ),
]
Sections = Annotated[
    list[SectionArg] | None,
    typer.Option("--section", "-s", help="Only this section (default: all); may be repeated."),
]
RenewPassword = Annotated[
    list[str] | None,
    typer.Option(
        "--renew-password",
        metavar="PATTERN",
        help="Set the passwords of matching users again, because stored passwords cannot be compared with those of "
        "the file; may be repeated.",
    ),
]


def resource_filter_of(
    include: Sequence[str] | None, exclude: Sequence[str] | None, sections: Sequence[str] | None
) -> ResourceFilter:
    """Return a filter made from options; without patterns and sections it matches everything.

    :raises CommandError: If a pattern cannot match any name.
    """
    for pattern in (*(include or ()), *(exclude or ())):
        _check(pattern)
    chosen = frozenset(Section(name.replace("-", "_")) for name in sections or Section)
    return ResourceFilter(tuple(include or ()), tuple(exclude or ()), chosen)


def _check(pattern: str) -> None:
    """Reject a pattern that cannot match any name: a typing error would silently select nothing."""
    kind, slash, _ = pattern.partition("/")
    if not _WILD & set(kind) and not (slash and kind in KINDS):
        raise wrong_use(f"invalid pattern '{pattern}'", f"KIND/NAME, where KIND is one of {', '.join(KINDS)}")


def plan_request(
    file: Path, resource_filter: ResourceFilter, renew_password_patterns: Sequence[str] | None = None
) -> PlanRequest:
    """Return the plan request for a file, with the principal of the current login if it is known.

    :raises FileNotFoundError: If the file does not exist.
    :raises StateFileError: If it is not a valid declared state.
    :raises CommandError: If the filter matches nothing in it.
    """
    file.stat()
    principal = known_principal(current_login(), current_tls())
    secrets = Secrets(os.environ, file.parent)
    declared = read_state(file)
    _check_filter(file, declared, resource_filter)
    for pattern in renew_password_patterns or ():
        if not any(fnmatch.fnmatchcase(user, pattern) for user in declared.users):
            raise wrong_use(f"--renew-password {pattern}: no matching user is declared in {file}")
    return PlanRequest(declared, secrets, principal, resource_filter, tuple(renew_password_patterns or ()))


def _check_filter(file: Path, declared: ClusterState, resource_filter: ResourceFilter) -> None:
    """Reject a filter that matches nothing in the file.

    A pruned section counts as a match: only the cluster knows the resources that would be deleted.
    """
    if declared.sections and not resource_filter.apply(declared).sections:
        raise wrong_use(
            f"{file}: the filters match no declared resource", "check --include, --exclude and --section"
        )
