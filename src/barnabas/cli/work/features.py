"""Implementation of `barnabas features`."""

from collections.abc import Mapping

from barnabas.cli.output import print_json, print_table
from barnabas.cli.work.calls import with_admin
from barnabas.wire.features import UpgradeType

_DOWNGRADES = {
    None: UpgradeType.UPGRADE,
    "safe": UpgradeType.SAFE_DOWNGRADE,
    "unsafe": UpgradeType.UNSAFE_DOWNGRADE,
}


def show_list(bootstrap: str, *, as_json: bool) -> None:
    """Print all features."""
    features = with_admin(bootstrap, lambda admin: admin.describe_features())
    if as_json:
        print_json([feature._asdict() for feature in features])
        return
    rows = [
        (
            feature.name,
            feature.level,
            "none" if feature.supported is None else "{} to {}".format(*feature.supported),
        )
        for feature in features
    ]
    print_table(("feature", "level", "supported"), rows)


def update(
    bootstrap: str, levels: Mapping[str, int], *, downgrade: str | None, validate_only: bool, as_json: bool
) -> None:
    """Set the levels of features, and print them."""
    kind = _DOWNGRADES[downgrade]
    with_admin(bootstrap, lambda admin: admin.update_features(levels, kind, validate_only=validate_only))
    if as_json:
        print_json([{"feature": name, "level": level, "error": None} for name, level in levels.items()])
        return
    for name, level in levels.items():
        print(f"{name}: {'could be' if validate_only else 'is'} at level {level}")
