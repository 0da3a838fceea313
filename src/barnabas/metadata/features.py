"""Features of the cluster: the supported levels, and the finalized one (KIP-584, KIP-1022)."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.metadata.audit.difference import Difference
from barnabas.metadata.decision import Decision
from barnabas.metadata.record_type import RecordType, Table
from barnabas.metadata.store import StoreChange
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.features import UpgradeType

if TYPE_CHECKING:
    from barnabas.metadata.image import MetadataImage


METADATA_VERSION = "metadata.version"
ELR_VERSION = "eligible.leader.replicas.version"

_FAILED = "The update failed for all features since the following feature had an error:"


#: feature -> finalized level; features that are not used have no record
def _audit(_image: "MetadataImage", key: str, before: int | None, after: int | None) -> Iterator[Difference]:
    yield Difference(f"feature/{key}", "level", before, after)


FINALIZED_FEATURES: RecordType[int] = RecordType("finalized_features", int, int, _audit)


@dataclass(frozen=True, slots=True)
class FeatureDefinition:
    """A feature of Apache Kafka 4.3 and its levels."""

    name: str
    level_min: int
    level_max: int
    #: the APIs that it enables: it is supported if all of them are served
    api_keys: frozenset[int] = frozenset()


#: `kraft.version` is missing because consensus belongs to the metadata store.
KNOWN = (
    FeatureDefinition(METADATA_VERSION, 7, 30),
    FeatureDefinition("transaction.version", 0, 2, frozenset({24, 25, 26, 28})),
    FeatureDefinition("group.version", 0, 1, frozenset({68, 69})),
    FeatureDefinition("share.version", 0, 1, frozenset({76, 77, 78, 79})),
    FeatureDefinition(ELR_VERSION, 0, 1),
    FeatureDefinition("streams.version", 0, 1, frozenset({88, 89})),
)


@dataclass(frozen=True, slots=True)
class FeatureUpdate:
    """The requested level of a feature; 0 disables it."""

    name: str
    level: int
    upgrade_type: int = UpgradeType.UPGRADE


def supported_features(api_keys: Collection[int]) -> Mapping[str, FeatureDefinition]:
    """Return the features by name that a broker supports which serves these APIs."""
    return {feature.name: feature for feature in KNOWN if all(key in api_keys for key in feature.api_keys)}


def decide_finalize(table: Table[int], supported: Mapping[str, FeatureDefinition]) -> Decision[None]:
    """Finalize every feature at its highest level in a new cluster."""
    if METADATA_VERSION in table:
        return Decision(None)
    changes = tuple(FINALIZED_FEATURES.put(name, feature.level_max) for name, feature in supported.items())
    return Decision(None, changes, _reads(table, supported))


def decide_update_features(
    table: Table[int],
    supported: Mapping[str, FeatureDefinition],
    updates: Sequence[FeatureUpdate],
    *,
    broker_id: int,
    validate_only: bool,
) -> Decision[None]:
    """Change the levels of features, all or none. If a feature occurs several times, the last update counts.

    :param broker_id: The deciding broker; errors name it as Apache Kafka's name the controller.
    :raises KafkaError: INVALID_UPDATE_VERSION, with the feature that cannot be updated.
    """
    by_name = {update.name: update for update in updates}
    for update in by_name.values():
        why = _update_error(table.get(update.name, 0), supported.get(update.name), update, broker_id)
        if why is not None:
            raise KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"{_FAILED} {why}")
    if validate_only:
        return Decision(None)
    changed = [update for update in by_name.values() if update.level != table.get(update.name, 0)]
    return Decision(None, tuple(map(_change, changed)), _reads(table, by_name))


def _update_error(
    level: int, feature: FeatureDefinition | None, update: FeatureUpdate, broker_id: int
) -> str | None:
    """Return why a feature cannot be updated, in the words of Kafka's `FeatureControlManager`; None if it can."""
    why = _level_error(level, feature, update, f"Local controller {broker_id}")
    if why is not None:
        return f"Invalid update version {update.level} for feature {update.name}. {why}"
    if update.name == METADATA_VERSION and update.level < level:
        return f"Unsupported metadata.version downgrade from {level} to {update.level}. {_downgrade_error(update)}"
    return None


def _level_error(
    level: int, feature: FeatureDefinition | None, update: FeatureUpdate, controller: str
) -> str | None:
    if update.upgrade_type not in set(UpgradeType):
        return "The controller does not support the given upgrade type."
    if update.level < 0:
        return "A feature version cannot be less than 0."
    if feature is None:
        return f"{controller} does not support this feature."
    if not feature.level_min <= update.level <= feature.level_max:
        return f"{controller} only supports versions {feature.level_min}-{feature.level_max}"
    if update.level < level and update.upgrade_type == UpgradeType.UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or "
            "unsafe downgrade."
        )
    if update.level > level and update.upgrade_type != UpgradeType.UPGRADE:
        return "Can't downgrade to a newer version."
    return None


def _downgrade_error(update: FeatureUpdate) -> str:
    if update.upgrade_type == UpgradeType.SAFE_DOWNGRADE:
        return "Refusing to perform the requested downgrade because it might delete metadata information."
    return "Unsafe metadata downgrade is not supported in this version."


def _change(update: FeatureUpdate) -> StoreChange:
    if update.level == 0:
        return FINALIZED_FEATURES.remove(update.name)
    return FINALIZED_FEATURES.put(update.name, update.level)


def _reads(table: Table[int], names: Collection[str]) -> dict[str, int]:
    return {FINALIZED_FEATURES.key(name): table.revision(name) for name in names}
