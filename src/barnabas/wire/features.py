"""Numbers of the protocol that features go by."""

from enum import IntEnum


class UpgradeType(IntEnum):
    """Which way a feature's level may go (`FeatureUpdate.UpgradeType`)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3
