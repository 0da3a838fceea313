"""`barnabas features`: list features, set their levels."""

from enum import StrEnum
from typing import Annotated

import typer

from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.failures import wrong_use
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, ValidateOnly, key_value_pairs
from barnabas.cli.support.output import print_json, print_table
from barnabas.wire.features import UpgradeType


class Downgrade(StrEnum):
    """Which downgrades are allowed."""

    SAFE = "safe"
    UNSAFE = "unsafe"


_UPGRADE_TYPES = {
    None: UpgradeType.UPGRADE,
    Downgrade.SAFE: UpgradeType.SAFE_DOWNGRADE,
    Downgrade.UNSAFE: UpgradeType.UNSAFE_DOWNGRADE,
}


@command("list", example="features list", apis=("ApiVersions",), hides=True)
def list_features(bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False) -> None:
    """List the features: the level in use, and the levels that the broker supports."""
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


@command(
    "set", example="features set metadata.version=30", apis=("UpdateFeatures",), needs=("alter cluster",)
)
def set_features(
    levels: Annotated[
        list[str],
        typer.Argument(
            metavar="FEATURE=LEVEL...",
            help="New level of a feature; 0 disables it.",
            show_default=False,
            autocompletion=candidates.features,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    downgrade: Annotated[
        Downgrade | None,
        typer.Option("--downgrade", help="Allow downgrades; 'unsafe' also allows those that lose metadata."),
    ] = None,
    validate_only: ValidateOnly = False,
    as_json: Json = False,
) -> None:
    """Set the levels of features, all of them or none."""
    level_by_name = _parse_levels(levels)
    kind = _UPGRADE_TYPES[downgrade]
    with_admin(
        bootstrap, lambda admin: admin.update_features(level_by_name, kind, validate_only=validate_only)
    )
    if as_json:
        print_json(
            [{"feature": name, "level": level, "error": None} for name, level in level_by_name.items()]
        )
        return
    for name, level in level_by_name.items():
        print(f"{name}: {'could be' if validate_only else 'is'} at level {level}")


def _parse_levels(levels: list[str]) -> dict[str, int]:
    pairs = dict(key_value_pairs(levels, "FEATURE=LEVEL"))
    for name, level in pairs.items():
        if not level.isdecimal():
            raise wrong_use(f"{name}={level}: the level must be a number")
    return {name: int(level) for name, level in pairs.items()}


app = command_group(list_features, set_features)
