"""Which ACLs allowed or denied the requests of the audit."""

from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

from barnabas.reports.audit.analysis import NEEDS, Grant, Need, Use
from barnabas.reports.audit.events import LoggedEvent
from barnabas.wire.acls import AclOperation, AclPermission, PatternType

UNAUTHORIZED = "_AUTHORIZATION_FAILED"
_ANYBODY = "User:*"
_CLUSTER_NAME = "kafka-cluster"
#: Kinds of requests for which the matching ACLs are remembered.
_REMEMBERED_COUNT = 10_000


class UseCounts:
    """Counts the requests that each ACL decided; if several ACLs match a request, each counts."""

    def __init__(self, grants: Sequence[Grant]) -> None:
        self._grants = grants
        self._uses: dict[int, Use] = {}
        self._last_revision: dict[int, int] = {}
        self._of_principals: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for number, grant in enumerate(grants):
            outcome = "changed" if grant.binding.permission is AclPermission.ALLOW else "refused"
            self._of_principals[grant.binding.principal, outcome].append(number)
        self._needs: defaultdict[tuple[str, str], list[Need]] = defaultdict(list)
        for need in NEEDS:
            self._needs[need.api, need.kind].append(need)
        self._matching = lru_cache(_REMEMBERED_COUNT)(self._find_matching)

    def add(self, event: LoggedEvent) -> None:
        """Count an event; those of a request follow one another."""
        if not (event.is_change or (event.error or "").endswith(UNAUTHORIZED)):
            return
        request = (event.api, event.kind, event.principal, event.client_host, event.resource, event.outcome)
        for number in self._matching(*request):
            grant = self._grants[number]
            if (grant.made or 0) <= event.time and (grant.removed is None or event.time <= grant.removed):
                self._count(number, event)

    def uses(self) -> list[Use]:
        return list(self._uses.values())

    def _count(self, number: int, event: LoggedEvent) -> None:
        _, requests_count, last = self._uses.get(number, Use(number, 0, event.time))
        is_new = self._last_revision.get(number) != event.revision
        self._last_revision[number] = event.revision
        self._uses[number] = Use(number, requests_count + is_new, max(last, event.time))

    def _find_matching(
        self, api: str, kind: str, principal: str, host: str, resource: str, outcome: str
    ) -> tuple[int, ...]:
        """Return the ACLs that decide such a request while they exist."""
        candidates = [
            number
            for name in {principal, _ANYBODY}
            for number in self._of_principals.get((name, outcome), ())
            if self._grants[number].binding.host in ("*", host)
        ]
        needs = self._needs.get((api, kind), [])
        own_name = resource[len(kind) + 1 :]
        return tuple(
            number
            for number in candidates
            if any(
                _covers(self._grants[number], need, own_name if need.is_own else _CLUSTER_NAME)
                for need in needs
            )
        )


def _covers(grant: Grant, need: Need, name: str) -> bool:
    binding = grant.binding
    if need.resource_type is not binding.resource_type:
        return False
    if binding.operation not in (need.operation, AclOperation.ALL):
        return False
    if binding.pattern_type is PatternType.PREFIXED:
        return name.startswith(binding.resource_name)
    return binding.resource_name in ("*", name)
