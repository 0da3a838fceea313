"""Client quotas: limits of users, client ids and addresses on each broker (KIP-13, KIP-546, KIP-612)."""

import ipaddress
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from barnabas.base.resource_names import quota_entity, quota_resource
from barnabas.config.definition import ConfigKey, ConfigType
from barnabas.config.keys.quota import ADDRESS_QUOTA_KEYS, CLIENT_QUOTA_KEYS
from barnabas.metadata.audit.difference import Difference, compare
from barnabas.metadata.decision import Decision
from barnabas.metadata.record_type import RecordRollback, RecordType, RowKeys, Table
from barnabas.metadata.store import StoreChange
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.metadata.audit.rollback import RollbackRules
    from barnabas.metadata.image import MetadataImage


#: The entity types, with their names in the protocol (`ClientQuotaEntity`).
USER, CLIENT_ID, IP = "user", "client-id", "ip"
ENTITY_TYPES = (USER, CLIENT_ID, IP)

#: (entity type, name) of each part, sorted by type; None is the default entity, for all that have no quota of their
#: own.
Entity = tuple[tuple[str, str | None], ...]

#: Tolerance for quotas that must be whole numbers.
_FRACTION_MAX = 1e-6

_LARGEST = {ConfigType.INT: float(2**31 - 1), ConfigType.LONG: float(2**63 - 1)}


@dataclass(frozen=True, slots=True)
class ClientQuota:
    """The quotas of one entity, of which there is at least one."""

    entity: Entity
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class QuotaAlteration:
    """The requested alteration of one entity: (key, value), where None removes the key."""

    entity: Entity
    operations: Sequence[tuple[str, float | None]]


@dataclass(frozen=True, slots=True)
class QuotaAlterationResult:
    entity: Entity
    error: KafkaError | None = None


def entity_of(parts: Mapping[str, str | None]) -> Entity:
    """Return the entity of these parts, in any order."""
    return tuple(sorted(parts.items()))


def entity_key(entity: Entity) -> str:
    """Return the record key of an entity."""
    return json.dumps(entity, separators=(",", ":"))


def _to_plain(quota: ClientQuota) -> Any:
    return {"entity": [list(part) for part in quota.entity], "values": dict(quota.values)}


def _from_plain(plain: Any) -> ClientQuota:
    return ClientQuota(tuple((kind, name) for kind, name in plain["entity"]), plain["values"])


def _row_keys(resource: str) -> RowKeys:
    entity = quota_entity(resource)
    return RowKeys() if entity is None else RowKeys((entity_key(entity),))


def _audit(
    _image: "MetadataImage", _key: str, before: ClientQuota | None, after: ClientQuota | None
) -> Iterator[Difference]:
    quota = after or before
    assert quota is not None
    old, new = (dict(quota.values) if quota else {} for quota in (before, after))
    return compare(quota_resource(quota.entity), old, new)


def _restore(
    image: "MetadataImage", states: Mapping[str, ClientQuota | None], rules: "RollbackRules"
) -> Decision[None]:
    alterations = []
    for key, state in states.items():
        present = image.quotas.get(key)
        quota = state or present
        before, after = (dict(quota.values) if quota else {} for quota in (present, state))
        changed = [key for key in {**before, **after} if before.get(key) != after.get(key)]
        if quota is not None and changed:
            alterations.append(QuotaAlteration(quota.entity, [(key, after.get(key)) for key in changed]))
    decision = decide_alter(image.quotas, alterations)
    for result in decision.response:
        if result.error is not None:
            raise result.error
    return Decision(None, decision.changes, decision.reads)


QUOTAS: RecordType[ClientQuota] = RecordType(
    "quotas", _to_plain, _from_plain, _audit, keeps_history=True, rollback=RecordRollback(_row_keys, _restore)
)


def decide_alter(
    table: Table[ClientQuota], alterations: Sequence[QuotaAlteration], *, validate_only: bool = False
) -> Decision[list[QuotaAlterationResult]]:
    """Alter each entity's quotas, all of them or none.

    If an entity occurs twice, the first alteration is applied and the result names the second, as in Kafka.
    """
    outcomes: dict[Entity, QuotaAlterationResult] = {}
    changes: list[StoreChange] = []
    reads: dict[str, int] = {}
    for alteration in alterations:
        entity = alteration.entity
        if entity in outcomes:
            outcomes[entity] = QuotaAlterationResult(
                entity, _invalid(f"{shown(entity)} is requested twice: only the first alteration is applied.")
            )
            continue
        try:
            change = _alter(table, alteration)
        except KafkaError as error:
            outcomes[entity] = QuotaAlterationResult(entity, error.without_traceback())
            continue
        outcomes[entity] = QuotaAlterationResult(entity)
        if change is not None:
            changes.append(change)
            reads[change.key] = table.revision(entity_key(entity))
    response = list(outcomes.values())
    return Decision(response) if validate_only else Decision(response, tuple(changes), reads)


def _alter(table: Table[ClientQuota], alteration: QuotaAlteration) -> StoreChange | None:
    """Return the change that writes the entity's new quotas; None if nothing changes."""
    entity = alteration.entity
    keys = _keys_for(entity)
    names = [key for key, _ in alteration.operations]
    for name in names:
        if names.count(name) > 1:
            raise _invalid(f"'{name}' is requested twice for {shown(entity)}: only once is allowed.")
    row = entity_key(entity)
    before = table[row].values if row in table else {}
    after = dict(before)
    for name, value in alteration.operations:
        if value is None:
            after.pop(name, None)
        else:
            _check_value(keys, name, value, entity)
            after[name] = value
    if after == before:
        return None
    return QUOTAS.put(row, ClientQuota(entity, after)) if after else QUOTAS.remove(row)


def _keys_for(entity: Entity) -> Mapping[str, ConfigKey]:
    """Return the quotas that such an entity can have.

    :raises KafkaError: INVALID_REQUEST for an unknown entity type.
    """
    if not entity:
        raise _invalid("The request has no entity: expected 'user', 'client-id', both, or 'ip'.")
    for kind, name in entity:
        if kind not in ENTITY_TYPES:
            raise _invalid(f"'{kind}' is not an entity type: it must be 'user', 'client-id' or 'ip'.")
        if name == "":
            raise _invalid(f"The name of a {kind} is empty: use null for the default.")
    parts = dict(entity)
    if IP not in parts:
        return CLIENT_QUOTA_KEYS
    if len(parts) > 1:
        raise _invalid(
            "Invalid quota entity combination: 'ip' cannot be combined with 'user' or 'client-id'."
        )
    if parts[IP] is not None and not _is_address(str(parts[IP])):
        raise _invalid(f"'{parts[IP]}' is not a valid IP address.")
    return ADDRESS_QUOTA_KEYS


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _check_value(keys: Mapping[str, ConfigKey], name: str, value: float, entity: Entity) -> None:
    """Check a value.

    :raises KafkaError: INVALID_REQUEST if the key does not allow it, or the entity cannot have the key.
    """
    if name not in keys:
        raise _invalid(
            f"Invalid quota '{name}' of {shown(entity)}: it must be one of {', '.join(sorted(keys))}."
        )
    if math.isnan(value) or value <= 0:
        raise _invalid(f"{name}={value} is not valid: it must be larger than 0.")
    largest = _LARGEST.get(keys[name].type)
    if largest is None:
        return
    if value > largest:
        raise _invalid(f"{name}={value} is too large: it must be at most {largest:.0f}.")
    if value % 1 > _FRACTION_MAX:
        raise _invalid(f"{name}={value} is not valid: it must be a whole number.")


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def shown(entity: Entity) -> str:
    """Return the entity as text."""
    return ", ".join(f"{kind} {'(default)' if name is None else repr(name)}" for kind, name in entity)


@dataclass(frozen=True, slots=True)
class Match:
    """A condition on entities: that they have a part of this type, and its name."""

    entity_type: str
    name: str | None = None  #: None: the default
    any_name: bool = False  #: any name, including the default

    def holds(self, parts: Mapping[str, str | None]) -> bool:
        """Return whether an entity of these parts meets the condition."""
        if self.entity_type not in parts:
            return False
        return self.any_name or parts[self.entity_type] == self.name


def find(table: Table[ClientQuota], matches: Sequence[Match], *, strict: bool) -> list[ClientQuota]:
    """Return the quotas of entities that meet every condition; with `strict`, only those without other parts."""
    return [
        quota
        for _, quota in sorted(table.items())
        if (not strict or len(quota.entity) == len(matches))
        and all(match.holds(dict(quota.entity)) for match in matches)
    ]
