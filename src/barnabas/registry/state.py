"""What a registry knows: the replay of its topic."""

from collections.abc import Collection, Iterator

from barnabas.registry.levels import COMPATIBILITY_DEFAULT, CompatibilityLevel, RegistryMode
from barnabas.registry.records import (
    ClearedSubject,
    CompatibilitySetting,
    DeletedSubject,
    ModeSetting,
    RegisteredVersion,
    RegistryRecord,
    RemovedVersion,
)
from barnabas.registry.schemas import SchemaText

#: A version that stands for the last one.
LATEST = -1


class RegistryState:
    """Subjects, versions, ids and settings. Only `replay` changes it."""

    def __init__(self) -> None:
        self._subjects: dict[str, dict[int, RegisteredVersion]] = {}
        self._by_id: dict[int, dict[tuple[str, int], RegisteredVersion]] = {}
        #: by what they refer to
        self._referrers: dict[tuple[str, int], dict[tuple[str, int], RegisteredVersion]] = {}
        self._ids: dict[SchemaText, int] = {}
        self._settings: dict[str, CompatibilitySetting] = {}
        self._modes: dict[str, RegistryMode] = {}
        self.id_max = 0  #: the highest id that a schema ever had

    def replay(self, record: RegistryRecord) -> None:
        """Apply a record of the topic.

        :raises ValueError: If it gives the id of a schema to another one; it is ignored.
        """
        match record:
            case RegisteredVersion():
                self._register(record)
            case RemovedVersion():
                self._remove(record.subject, record.version)
            case CompatibilitySetting(subject, level):
                self._settings.pop(subject, None)
                if level is not None or record.normalizes is not None:
                    self._settings[subject] = record
            case ModeSetting(subject, mode):
                self._modes.pop(subject, None)
                if mode is not None:
                    self._modes[subject] = mode
            case DeletedSubject(subject, version):
                self._delete_through(subject, version)
            case ClearedSubject(subject):
                for number in list(self._subjects.get(subject, ())):
                    self._remove(subject, number)
                self._settings.pop(subject, None)
                self._modes.pop(subject, None)

    def _register(self, version: RegisteredVersion) -> None:
        own, same_id = (version.subject, version.version), self._by_id.get(version.id, {})
        other = next((each for key, each in same_id.items() if key != own), None)
        if other is not None and other.schema.text != version.schema.text:
            message = (
                f"{version.subject}, version {version.version}: its id {version.id} belongs to another schema"
            )
            raise ValueError(message)
        self._remove(version.subject, version.version)
        self._subjects.setdefault(version.subject, {})[version.version] = version
        self._by_id.setdefault(version.id, {})[own] = version
        for reference in version.schema.references:
            self._referrers.setdefault(reference[1:], {})[own] = version
        self._ids.setdefault(version.schema, version.id)
        self.id_max = max(self.id_max, version.id)

    def _remove(self, subject: str, version: int) -> None:
        versions = self._subjects.get(subject, {})
        removed = versions.pop(version, None)
        if removed is None:
            return
        if not versions:
            del self._subjects[subject]
        for reference in removed.schema.references:
            referrers = self._referrers.get(reference[1:], {})
            referrers.pop((subject, version), None)
            if not referrers:
                self._referrers.pop(reference[1:], None)
        same_id = self._by_id[removed.id]
        del same_id[subject, version]
        if not any(each.schema == removed.schema for each in same_id.values()) and (
            self._ids.get(removed.schema) == removed.id
        ):
            del self._ids[removed.schema]
        if not same_id:
            del self._by_id[removed.id]

    def _delete_through(self, subject: str, version: int) -> None:
        for each in list(self._subjects.get(subject, {}).values()):
            if each.version <= version and not each.deleted:
                self._register(soft_deleted(each))

    def subjects(self, *, deleted: bool = False) -> Iterator[str]:
        """Yield the subjects in order.

        :param deleted: Those without a version that is not deleted, too.
        """
        for subject in sorted(self._subjects):
            if deleted or any(not each.deleted for each in self._subjects[subject].values()):
                yield subject

    def versions(self, subject: str, *, deleted: bool = False) -> list[RegisteredVersion]:
        """Return the versions of a subject in order.

        :param deleted: Soft-deleted ones, too.
        """
        versions = self._subjects.get(subject, {})
        return [versions[number] for number in sorted(versions) if deleted or not versions[number].deleted]

    def version(self, subject: str, version: int, *, deleted: bool = False) -> RegisteredVersion | None:
        """Return a version, or with LATEST the last one that is not deleted."""
        if version == LATEST:
            return next(reversed(self.versions(subject)), None)
        found = self._subjects.get(subject, {}).get(version)
        return None if found is None or (found.deleted and not deleted) else found

    def next_version(self, subject: str) -> int:
        """Return the number of the next version; those of deleted ones are not used again."""
        return max(self._subjects.get(subject, ()), default=0) + 1

    def by_id(self, schema_id: int) -> Collection[RegisteredVersion]:
        """Return all versions with an id, also deleted ones, whose records consumers still read."""
        return self._by_id.get(schema_id, {}).values()

    def id_of(self, schema: SchemaText) -> int | None:
        """Return the id of a schema that some subject has."""
        return self._ids.get(schema)

    def referrers(self, subject: str, version: int, *, deleted: bool = False) -> list[RegisteredVersion]:
        """Return the versions that refer to a version, in order."""
        referrers = self._referrers.get((subject, version), {})
        return [referrers[key] for key in sorted(referrers) if deleted or not referrers[key].deleted]

    def level(self, subject: str) -> CompatibilityLevel:
        """Return the level that applies to a subject."""
        for name in (subject, ""):
            setting = self._settings.get(name)
            if setting is not None and setting.level is not None:
                return setting.level
        return COMPATIBILITY_DEFAULT

    def normalizes(self, subject: str) -> bool:
        """Whether schemas of a subject are normalized in any case."""
        own = self._settings.get(subject) or self._settings.get("")
        return bool(own is not None and own.normalizes)

    def setting(self, subject: str) -> CompatibilitySetting | None:
        """Return the subject's own setting."""
        return self._settings.get(subject)

    def mode(self, subject: str) -> RegistryMode:
        """Return the mode that applies to a subject."""
        general = self._modes.get("", RegistryMode.READWRITE)
        return general if general is RegistryMode.READONLY_OVERRIDE else self._modes.get(subject, general)

    def own_mode(self, subject: str) -> RegistryMode | None:
        """Return the subject's own mode."""
        return self._modes.get(subject)


def soft_deleted(version: RegisteredVersion) -> RegisteredVersion:
    """Return the version, deleted but for its id."""
    return RegisteredVersion(
        version.subject, version.version, version.id, version.schema, deleted=True, further=version.further
    )
