"""Decides on compatibility levels and modes; an empty subject stands for all that have none."""

from barnabas.registry import errors
from barnabas.registry.errors import RegistryError
from barnabas.registry.levels import COMPATIBILITY_DEFAULT, CompatibilityLevel, RegistryMode
from barnabas.registry.records import CompatibilitySetting, ModeSetting
from barnabas.registry.registration import RegistryDecision, check_writable
from barnabas.registry.state import RegistryState


def decide_level(
    state: RegistryState, subject: str, level: CompatibilityLevel | None, normalizes: bool | None
) -> RegistryDecision:
    """Set a level, or whether schemas are normalized; None keeps what there is."""
    check_writable(state, subject)
    before = state.setting(subject) or CompatibilitySetting(subject, None)
    after = before._replace(
        level=before.level if level is None else level,
        normalizes=before.normalizes if normalizes is None else normalizes,
    )
    return RegistryDecision(after, () if after == state.setting(subject) else (after,))


def decide_level_removal(state: RegistryState, subject: str) -> RegistryDecision:
    """Remove a level; the result is the setting that there was.

    :raises RegistryError: If a subject has none.
    """
    check_writable(state, subject)
    before = state.setting(subject)
    if before is None and subject:
        raise errors.subject_not_found(subject)
    if before is None:
        return RegistryDecision(CompatibilitySetting("", COMPATIBILITY_DEFAULT))
    return RegistryDecision(before, (CompatibilitySetting(subject, None),))


def decide_mode(state: RegistryState, subject: str, mode: RegistryMode, *, force: bool) -> RegistryDecision:
    """Set a mode.

    :raises RegistryError: If schemas exist that an import could change.
    """
    if mode is RegistryMode.IMPORT and not force and state.mode(subject) is not mode:
        existing = (
            [subject] if subject and state.versions(subject) else [] if subject else list(state.subjects())
        )
        if existing:
            message = f"Cannot import since found existing subjects: {', '.join(existing[:10])}"
            raise RegistryError(errors.OPERATION_NOT_PERMITTED, message)
    return RegistryDecision(mode, () if state.own_mode(subject) is mode else (ModeSetting(subject, mode),))


def decide_mode_removal(state: RegistryState, subject: str) -> RegistryDecision:
    """Remove a mode; the result is the mode that there was.

    :raises RegistryError: If a subject has none.
    """
    before = state.own_mode(subject)
    if before is None and subject:
        raise errors.subject_not_found(subject)
    if before is None:
        return RegistryDecision(RegistryMode.READWRITE)
    return RegistryDecision(before, (ModeSetting(subject, None),))
