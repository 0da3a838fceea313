import pytest

from barnabas.metadata.decision import Decision
from barnabas.metadata.features import (
    FINALIZED_FEATURES,
    KNOWN,
    FeatureUpdate,
    decide_finalize,
    decide_update_features,
    supported_features,
)
from barnabas.metadata.image import MetadataImage
from barnabas.wire.errors import ErrorCode, KafkaError
from support.images import replayed

EVERY_API = range(100)
SUPPORTED = supported_features(EVERY_API)
DEFAULTS = {
    "metadata.version": 30,
    "transaction.version": 2,
    "group.version": 1,
    "eligible.leader.replicas.version": 1,
    "share.version": 1,
    "streams.version": 1,
}
UP, SAFE, UNSAFE = 1, 2, 3


def fresh() -> MetadataImage:
    """Return a cluster with finalized features."""
    return replayed(MetadataImage(), decide_finalize(MetadataImage().finalized_features, SUPPORTED))


def update(
    image: MetadataImage, *updates: tuple[str, int, int], validate_only: bool = False
) -> Decision[None]:
    requested_levels = [FeatureUpdate(*each) for each in updates]
    return decide_update_features(
        image.finalized_features, SUPPORTED, requested_levels, broker_id=1, validate_only=validate_only
    )


def refused(image: MetadataImage, *updates: tuple[str, int, int]) -> str:
    with pytest.raises(KafkaError) as caught:
        update(image, *updates)
    assert caught.value.code is ErrorCode.INVALID_UPDATE_VERSION
    return caught.value.message


def levels(image: MetadataImage) -> dict[str, int]:
    return dict(image.finalized_features)


def test_a_new_cluster_has_every_feature_at_its_highest_level() -> None:
    assert levels(fresh()) == DEFAULTS


def test_a_cluster_with_features_keeps_them() -> None:
    image = replayed(fresh(), update(fresh(), ("group.version", 0, SAFE)))
    assert decide_finalize(image.finalized_features, SUPPORTED).changes == ()


def test_a_feature_is_supported_if_its_apis_are_served() -> None:
    always = {"metadata.version", "eligible.leader.replicas.version"}
    assert set(supported_features([])) == always
    assert set(supported_features([68])) == always
    assert set(supported_features([68, 69])) == {*always, "group.version"}
    assert len({feature.name for feature in KNOWN}) == len(KNOWN)


@pytest.mark.parametrize("kind", [SAFE, UNSAFE])
def test_a_level_can_be_lowered_and_raised_again(kind: int) -> None:
    image = replayed(fresh(), update(fresh(), ("transaction.version", 1, kind)))
    assert levels(image) == {**DEFAULTS, "transaction.version": 1}
    image = replayed(image, update(image, ("transaction.version", 2, UP)))
    assert levels(image) == DEFAULTS


def test_a_feature_at_level_0_is_disabled() -> None:
    image = replayed(fresh(), update(fresh(), ("group.version", 0, SAFE)))
    assert "group.version" not in levels(image)
    assert update(image, ("group.version", 0, UP)).changes == ()


@pytest.mark.parametrize("kind", [UP, SAFE, UNSAFE])
def test_the_same_level_succeeds_without_change(kind: int) -> None:
    assert update(fresh(), ("group.version", 1, kind), ("metadata.version", 30, kind)).changes == ()


@pytest.mark.parametrize(
    ("requested_levels", "why"),
    [
        (
            ("group.version", 0, UP),
            "Can't downgrade the version of this feature without setting the upgrade type to either safe or",
        ),
        (
            ("group.version", 2, UP),
            "Invalid update version 2 for feature group.version. Local controller 1 only supports versions 0-1",
        ),
        (("group.version", -1, SAFE), "cannot be less than 0"),
        (("group.version", 1, 0), "does not support the given upgrade type"),
        (("group.version", 1, 4), "does not support the given upgrade type"),
        (("group.version", 1, -1), "does not support the given upgrade type"),
        (("nope", 1, UP), "version 1 for feature nope. Local controller 1 does not support this feature."),
        (("", 0, UP), "does not support this feature"),
        (("kraft.version", 1, UP), "does not support this feature"),
        (("metadata.version", 31, UP), "only supports versions 7-30"),
        (("metadata.version", 6, SAFE), "only supports versions 7-30"),
        (("metadata.version", 0, UNSAFE), "only supports versions 7-30"),
        (("metadata.version", 29, UP), "without setting the upgrade type"),
        (("metadata.version", 29, SAFE), "downgrade from 30 to 29. Refusing to perform"),
        (("metadata.version", 29, UNSAFE), "Unsafe metadata downgrade is not supported"),
    ],
)
def test_an_invalid_level_is_rejected_with_all_updates_beside_it(
    requested_levels: tuple[str, int, int], why: str
) -> None:
    assert why in refused(fresh(), requested_levels)
    assert why in refused(fresh(), ("transaction.version", 1, SAFE), requested_levels)


@pytest.mark.parametrize("kind", [SAFE, UNSAFE])
def test_a_downgrade_cannot_raise_a_level(kind: int) -> None:
    image = replayed(fresh(), update(fresh(), ("group.version", 0, SAFE)))
    assert "Can't downgrade to a newer version." in refused(image, ("group.version", 1, kind))


def test_the_last_of_two_updates_for_one_feature_applies() -> None:
    image = replayed(fresh(), update(fresh(), ("group.version", 9, UP), ("group.version", 0, SAFE)))
    assert "group.version" not in levels(image)


def test_validate_only_returns_the_same_and_changes_nothing() -> None:
    assert update(fresh(), ("group.version", 0, SAFE), validate_only=True) == Decision(None)
    with pytest.raises(KafkaError):
        update(fresh(), ("group.version", 0, UP), validate_only=True)


def test_an_update_depends_on_the_levels_that_it_read() -> None:
    image = fresh()
    decision = update(image, ("group.version", 0, SAFE), ("share.version", 1, UP))
    assert decision.changes == (FINALIZED_FEATURES.remove("group.version"),)
    assert decision.reads == dict.fromkeys(
        ["finalized_features/group.version", "finalized_features/share.version"], image.revision
    )
