"""Compatibility levels and modes."""

from enum import StrEnum


class CompatibilityLevel(StrEnum):
    """Which versions of a subject must be able to read each other's data."""

    NONE = "NONE"
    BACKWARD = "BACKWARD"
    BACKWARD_TRANSITIVE = "BACKWARD_TRANSITIVE"
    FORWARD = "FORWARD"
    FORWARD_TRANSITIVE = "FORWARD_TRANSITIVE"
    FULL = "FULL"
    FULL_TRANSITIVE = "FULL_TRANSITIVE"

    @property
    def is_transitive(self) -> bool:
        """Whether all versions are compared, not only the last one."""
        return self.value.endswith("_TRANSITIVE")

    @property
    def is_backward(self) -> bool:
        """Whether the new schema must read data of the old ones."""
        return self.value.startswith(("BACKWARD", "FULL"))

    @property
    def is_forward(self) -> bool:
        """Whether the old schemas must read data of the new one."""
        return self.value.startswith(("FORWARD", "FULL"))


COMPATIBILITY_DEFAULT = CompatibilityLevel.BACKWARD


class RegistryMode(StrEnum):
    """What may be written."""

    READWRITE = "READWRITE"
    READONLY = "READONLY"
    #: Globally: of subjects with any mode of their own, too.
    READONLY_OVERRIDE = "READONLY_OVERRIDE"
    #: Versions and ids are those of the client.
    IMPORT = "IMPORT"
