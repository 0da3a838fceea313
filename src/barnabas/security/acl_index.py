"""ACLs indexed by resource, so that a decision checks few of many."""

import ipaddress
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TypeAlias

from barnabas.wire.acls import (
    FORBIDDING,
    GRANTING,
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)

_ALLOW, _DENY = AclPermission.ALLOW, AclPermission.DENY

#: The ACLs on one resource pattern, by principal.
Entries = dict[str, list[AclBinding]]


#: ALLOW or DENY, or None if no ACL applies to the resource; and the entries that are used by the decision: all that
#: allow exactly this operation, or the first that forbids it. An entry that allows it only by implication (WRITE
#: implies DESCRIBE) is used if no other allows it. A plain tuple, because it is created on the hot path.
Decided: TypeAlias = tuple[AclPermission | None, Sequence[AclBinding]]
_UNDECIDED: Decided = (None, ())
_DENIED_BY_NONE: Decided = (_DENY, ())


class AclIndex:
    """The ACLs of one resource type; follows the cluster's state entry by entry."""

    def __init__(self) -> None:
        self._literal: dict[str, Entries] = {}
        self._prefixed: dict[str, Entries] = {}
        #: length of a prefix -> number of prefixes of that length
        self._prefix_lengths: dict[int, int] = {}

    def add(self, binding: AclBinding) -> AclBinding:
        """Add an ACL; return the entry that `decide` returns for it."""
        binding = to_entry(binding)
        patterns = self._patterns(binding)
        name = binding.resource_name
        if name not in patterns:
            patterns[name] = {}
            if patterns is self._prefixed:
                self._prefix_lengths[len(name)] = self._prefix_lengths.get(len(name), 0) + 1
        patterns[name].setdefault(binding.principal, []).append(binding)
        return binding

    def remove(self, binding: AclBinding) -> AclBinding:
        """Remove an ACL from the index; returns the entry that `decide` reported for it."""
        binding = to_entry(binding)
        patterns = self._patterns(binding)
        name = binding.resource_name
        entries = patterns[name]
        own = entries[binding.principal]
        entry = own.pop(own.index(binding))
        if not own:
            del entries[binding.principal]
        if not entries:
            del patterns[name]
            if patterns is self._prefixed:
                self._prefix_lengths[len(name)] -= 1
                if not self._prefix_lengths[len(name)]:
                    del self._prefix_lengths[len(name)]
        return entry

    def _patterns(self, binding: AclBinding) -> dict[str, Entries]:
        return self._literal if binding.pattern_type is PatternType.LITERAL else self._prefixed

    def applying(self, name: str) -> list[Entries]:
        """Return the ACLs that apply to a resource: those on its name, on all names, and on prefixes of its name."""
        literal, prefixed = self._literal, self._prefixed
        found = []
        if name in literal:
            found.append(literal[name])
        if WILDCARD in literal and name != WILDCARD:
            found.append(literal[WILDCARD])
        for length in self._prefix_lengths:
            prefix = name[:length]
            if prefix in prefixed and len(prefix) == length:
                found.append(prefixed[prefix])
        return found

    def of_principal(self, principal: str) -> Iterator[AclBinding]:
        """Yield every ACL for a principal or for all principals."""
        for entries in chain(self._literal.values(), self._prefixed.values()):
            yield from entries.get(principal, ())
            if principal != WILDCARD_PRINCIPAL:
                yield from entries.get(WILDCARD_PRINCIPAL, ())


def canonical_address(host: str) -> str:
    """Return an address as sockets report it: Kafka's users also write 0:0:0:0:0:0:0:1 for ::1."""
    try:
        return str(ipaddress.ip_address(host))
    except ValueError:
        return host


def to_entry(binding: AclBinding) -> AclBinding:
    """Return an ACL in the form of the index."""
    return binding._replace(host=canonical_address(binding.host))


def decide(index: AclIndex, principal: str, host: str, operation: AclOperation, name: str) -> Decided:
    """Decide a request: DENY takes precedence over ALLOW, independent of pattern types."""
    applying = index.applying(name)
    if not applying:
        return _UNDECIDED
    granting, forbidding = GRANTING[operation], FORBIDDING[operation]
    allowing = []
    for entries in applying:
        for entry_principal in (principal, WILDCARD_PRINCIPAL):
            if entry_principal not in entries:
                continue
            for acl in entries[entry_principal]:
                _, _, _, _, its_host, its_operation, its_permission = acl
                if its_host != WILDCARD and its_host != host:
                    continue
                if its_permission is _DENY:
                    if its_operation in forbidding:
                        return _DENY, (acl,)
                elif its_operation in granting:
                    allowing.append(acl)
    if not allowing:
        return _DENIED_BY_NONE
    if len(allowing) > 1:
        allowing = [acl for acl in allowing if acl.operation in forbidding]
    return _ALLOW, allowing


def decide_any(index: AclIndex, principal: str, host: str, operation: AclOperation) -> bool:
    """Whether the operation may be allowed on some resource (KIP-679).

    That is so if an ALLOW is not wholly covered by a DENY. As in Apache Kafka, implied operations do not count.
    """
    allowing: list[AclBinding] = []
    denied: set[tuple[PatternType, str]] = set()
    for acl in index.of_principal(principal):
        if acl.host not in (WILDCARD, host) or acl.operation not in (operation, AclOperation.ALL):
            continue
        if acl.permission is _ALLOW:
            allowing.append(acl)
        elif acl.pattern_type is PatternType.LITERAL and acl.resource_name == WILDCARD:
            return False
        else:
            denied.add((acl.pattern_type, acl.resource_name))
    return any(not _is_covered(acl, denied) for acl in allowing)


def _is_covered(acl: AclBinding, denied: set[tuple[PatternType, str]]) -> bool:
    """Whether a DENY covers all that the ALLOW grants."""
    name = acl.resource_name
    if acl.pattern_type is PatternType.LITERAL and name == WILDCARD:
        return False
    if acl.pattern_type is PatternType.LITERAL and (PatternType.LITERAL, name) in denied:
        return True
    return any((PatternType.PREFIXED, name[:length]) in denied for length in range(1, len(name) + 1))


def indexes() -> dict[ResourceType, AclIndex]:
    """Return an empty index for each resource type."""
    return {resource_type: AclIndex() for resource_type in ResourceType}
