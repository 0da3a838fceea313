"""Decides on deletions of subjects and versions: first soft, which keeps their ids, then permanent."""

from barnabas.registry import errors
from barnabas.registry.errors import RegistryError
from barnabas.registry.records import (
    CompatibilitySetting,
    DeletedSubject,
    ModeSetting,
    RegisteredVersion,
    RegistryRecord,
    RemovedVersion,
)
from barnabas.registry.registration import RegistryDecision, check_writable
from barnabas.registry.state import RegistryState, soft_deleted


def decide_subject_deletion(state: RegistryState, subject: str, *, permanent: bool) -> RegistryDecision:
    """Delete a subject; the result are the numbers of its versions.

    :raises RegistryError: If there is none, others refer to it, or it is in another state of deletion.
    """
    check_writable(state, subject)
    versions = state.versions(subject, deleted=True)
    if not versions:
        raise errors.subject_not_found(subject)
    active = [each for each in versions if not each.deleted]
    if permanent and active:
        message = f"Subject '{subject}' was not deleted first before being permanently deleted"
        raise RegistryError(errors.SUBJECT_NOT_SOFT_DELETED, message)
    if not permanent and not active:
        message = f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently"
        raise RegistryError(errors.SUBJECT_SOFT_DELETED, message)
    for each in versions if permanent else active:
        _check_unreferenced(state, each, deleted=permanent)
    if permanent:
        removed = tuple(RemovedVersion(subject, each.version) for each in versions)
        return RegistryDecision([each.version for each in versions], removed)
    records = (DeletedSubject(subject, active[-1].version), *_settings_of(state, subject))
    return RegistryDecision([each.version for each in active], records)


def decide_version_deletion(
    state: RegistryState, subject: str, version: int, *, permanent: bool
) -> RegistryDecision:
    """Delete a version; the result is its number.

    :raises RegistryError: If there is none, others refer to it, or it is in another state of deletion.
    """
    check_writable(state, subject)
    if not state.versions(subject, deleted=True):
        raise errors.subject_not_found(subject)
    found = state.version(subject, version, deleted=True)
    if found is None:
        raise errors.version_not_found(version)
    if permanent and not found.deleted:
        message = f"Subject '{subject}' Version {found.version} was not deleted first before being permanently deleted"
        raise RegistryError(errors.VERSION_NOT_SOFT_DELETED, message)
    if not permanent and found.deleted:
        name = f"Subject '{subject}' Version {found.version}"
        message = f"{name} was soft deleted. Set permanent=true to delete permanently"
        raise RegistryError(errors.VERSION_SOFT_DELETED, message)
    _check_unreferenced(state, found, deleted=permanent)
    if permanent:
        return RegistryDecision(found.version, (RemovedVersion(subject, found.version),))
    is_last = len(state.versions(subject)) == 1
    settings = _settings_of(state, subject) if is_last else []
    return RegistryDecision(found.version, (soft_deleted(found), *settings))


def _check_unreferenced(state: RegistryState, version: RegisteredVersion, *, deleted: bool) -> None:
    """:param deleted: Deleted versions of others count, because their records may still be read."""
    referrers = state.referrers(version.subject, version.version, deleted=deleted)
    referrers = [each for each in referrers if each.subject != version.subject]
    if referrers:
        key = f"{{magic=1,keytype=SCHEMA,subject={version.subject},version={version.version}}}"
        names = ", ".join(f"{each.subject} version {each.version}" for each in referrers)
        message = f"One or more references exist to the schema {key}: {names}"
        raise RegistryError(errors.REFERENCE_EXISTS, message)


def _settings_of(state: RegistryState, subject: str) -> list[RegistryRecord]:
    """Return the records that remove the settings of a subject; those of the empty one are for all others."""
    if not subject:
        return []
    records: list[RegistryRecord] = []
    if state.own_mode(subject) is not None:
        records.append(ModeSetting(subject, None))
    if state.setting(subject) is not None:
        records.append(CompatibilitySetting(subject, None))
    return records
