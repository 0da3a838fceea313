"""The protocol's numbers for feature updates."""

from enum import IntEnum


class UpgradeType(IntEnum):
    """The direction of a feature update (`FeatureUpdate.UpgradeType`)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3
