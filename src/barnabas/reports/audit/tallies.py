"""Tables of the audit summary, counted event by event: in memory is one entry for each row, and no event."""

import re
from collections import defaultdict
from typing import NamedTuple

from barnabas.reports.audit.analysis import KeyDay
from barnabas.reports.audit.events import LoggedEvent

_CONFIG_APIS = ("AlterConfigs", "IncrementalAlterConfigs")
#: Keys that users do not set: replicas and leaders of partitions, registrations of brokers.
_NOT_SET_BY_USERS = re.compile(r"partition [0-9]+ |fenced$|endpoints$|topic id$")
_LAST_TIME = (1 << 63) - 1
_BEFORE_ALL, _BEHIND_ALL = (-1, -1), (_LAST_TIME, 0)
_DENIALS = ("refused", "warned")


class Activity(NamedTuple):
    """Requests of one API by a principal for a kind of resource on a day (UTC)."""

    date: str
    principal: str
    api: str
    kind: str
    outcome: str
    requests_count: int
    events_count: int


class ConfigChange(NamedTuple):
    """Changes of a config by a principal, with the last values; times in ms since the epoch."""

    resource: str
    key: str
    principal: str
    changes_count: int
    last_time: int
    last_before: str | None
    last_after: str | None


class RefusedChange(NamedTuple):
    """A change that was denied (`refused`), or allowed with a warning (`warned`)."""

    principal: str
    api: str
    resource: str
    outcome: str
    error: str
    message: str
    events_count: int
    first_time: int
    last_time: int


class Setting(NamedTuple):
    """First and last value of a key that was changed; `is_back` if they are equal."""

    resource: str
    key: str
    at_first: str | None
    at_last: str | None
    changes_count: int
    principals: str
    last_time: int
    is_back: bool


class Tally:
    """What the events of one row add up to; before the first event is added, it has no values."""

    __slots__ = (
        "_first",
        "_last",
        "_revision",
        "after_last",
        "before_first",
        "before_last",
        "events_count",
        "first_time",
        "last_time",
        "requests_count",
    )

    def __init__(self) -> None:
        self.events_count = 0
        self.requests_count = 0
        self.first_time = _LAST_TIME
        self.last_time = 0
        self.before_first: str | None = None
        self.before_last: str | None = None
        self.after_last: str | None = None
        self._first = _BEHIND_ALL
        self._last = _BEFORE_ALL
        self._revision = -1

    def add(self, event: LoggedEvent) -> None:
        """Add an event; those of a request follow one another."""
        self.events_count += 1
        self.requests_count += event.revision != self._revision
        self._revision = event.revision
        self.first_time = min(self.first_time, event.time)
        self.last_time = max(self.last_time, event.time)
        if event.sequence < self._first:
            self._first, self.before_first = event.sequence, event.before
        if event.sequence > self._last:
            self._last, self.before_last, self.after_last = event.sequence, event.before, event.after


class Tables:
    """Counts events of all tables."""

    def __init__(self) -> None:
        self.events_count = 0
        self.seen: dict[str, int] = {}  #: time of each principal's last event
        self._activity: defaultdict[tuple[str, str, str, str, str], Tally] = defaultdict(Tally)
        self._configs: defaultdict[tuple[str, str, str], Tally] = defaultdict(Tally)
        self._refusals: defaultdict[tuple[str, str, str, str, str, str], Tally] = defaultdict(Tally)
        self._settings: defaultdict[tuple[str, str], Tally] = defaultdict(Tally)
        self._days: defaultdict[tuple[str, str, str], Tally] = defaultdict(Tally)
        self._principals: defaultdict[tuple[str, str], set[str]] = defaultdict(set)

    def add(self, event: LoggedEvent) -> None:
        self.events_count += 1
        self.seen[event.principal] = max(self.seen.get(event.principal, 0), event.time)
        row = (event.date, event.principal, event.api, event.kind, event.outcome)
        self._activity[row].add(event)
        if event.outcome in _DENIALS:
            error, message = event.error or "", event.message or ""
            refusal = (event.principal, event.api, event.resource, event.outcome, error, message)
            self._refusals[refusal].add(event)
        if event.is_change and event.key is not None:
            self._add_change(event, event.key)

    def _add_change(self, event: LoggedEvent, key: str) -> None:
        if event.api in _CONFIG_APIS:
            self._configs[event.resource, key, event.principal].add(event)
        if not _NOT_SET_BY_USERS.match(key):
            self._settings[event.resource, key].add(event)
            self._days[event.resource, key, event.date].add(event)
            self._principals[event.resource, key].add(event.principal)

    def activity(self) -> tuple[Activity, ...]:
        rows = self._activity.items()
        return tuple(sorted(Activity(*row, tally.requests_count, tally.events_count) for row, tally in rows))

    def configs(self) -> tuple[ConfigChange, ...]:
        changes = [
            ConfigChange(*row, tally.events_count, tally.last_time, tally.before_last, tally.after_last)
            for row, tally in self._configs.items()
        ]
        return tuple(sorted(changes, key=lambda change: (-change.changes_count, change[:3])))

    def refusals(self) -> tuple[RefusedChange, ...]:
        refusals = [
            RefusedChange(*row, tally.events_count, tally.first_time, tally.last_time)
            for row, tally in self._refusals.items()
        ]
        return tuple(sorted(refusals, key=lambda refusal: (-refusal.events_count, refusal)))

    def settings(self) -> tuple[Setting, ...]:
        settings = []
        for row, tally in self._settings.items():
            first, last = tally.before_first, tally.after_last
            by = ", ".join(sorted(self._principals[row]))
            settings.append(
                Setting(*row, first, last, tally.events_count, by, tally.last_time, first == last)
            )
        return tuple(sorted(settings, key=lambda setting: (-setting.changes_count, setting[:2])))

    def key_days(self) -> list[KeyDay]:
        return [KeyDay(*row, tally.before_first, tally.after_last) for row, tally in self._days.items()]
