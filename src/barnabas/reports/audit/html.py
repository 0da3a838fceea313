"""HTML report of the audit summary. No IO."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from barnabas.reports import document
from barnabas.reports.audit.summary import Audited
from barnabas.reports.audit.tallies import Activity
from barnabas.reports.document import Series, count_text

#: Maximum number of names with a series of their own; the rest are summed into one.
_SERIES_MAX = 7
_BARS_MAX = 20
_ROWS_MAX = 200
_TEXT_MAX = 60
_REST = "others"


def audit_html(audited: Audited, cluster: str) -> str:
    """Return the HTML document; `cluster` names the cluster in the header."""
    parts = [
        *_overview(audited),
        *_drift(audited),
        *_configs(audited),
        *_refusals(audited),
        *_grants(audited),
    ]
    return document.page("Audit report", cluster, parts)


def _overview(audited: Audited) -> list[str]:
    changed = [activity for activity in audited.activity if activity.outcome == "changed"]
    refused = [activity for activity in audited.activity if activity.outcome != "changed"]
    by_principal = _sums((activity.principal, activity.requests_count) for activity in changed)
    summary = (
        f"{audited.events_count} events: {sum(by_principal.values())} requests of {len(by_principal)} principals "
        f"changed the cluster, {sum(activity.requests_count for activity in refused)} were denied or warned."
    )
    return [
        document.paragraph(summary),
        *map(document.paragraph, audited.advice),
        document.heading("Changes"),
        _days(
            "Requests that changed the cluster, by principal", changed, lambda activity: activity.principal
        ),
        _days(
            "Requests that changed the cluster, by kind of resource", changed, lambda activity: activity.kind
        ),
        document.ranking("Principals with the most changes", _largest(by_principal)),
    ]


def _sums(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    sums: defaultdict[str, int] = defaultdict(int)
    for name, count in counts:
        sums[name] += count
    return dict(sums)


def _largest(sums: dict[str, int], count: int = _BARS_MAX) -> list[tuple[str, float]]:
    return [(name, float(sums[name])) for name in sorted(sums, key=lambda name: (-sums[name], name))[:count]]


def _days(title: str, activity: list[Activity], name_of: Callable[[Activity], str]) -> str:
    dates = sorted({row.date for row in activity})
    named = [
        name
        for name, _ in _largest(_sums((name_of(row), row.requests_count) for row in activity), _SERIES_MAX)
    ]
    values: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for row in activity:
        name = name_of(row)
        values[name if name in named else _REST][row.date] += row.requests_count
    series = [
        Series(name, [values[name][date] for date in dates]) for name in (*named, _REST) if name in values
    ]
    return document.columns(title, dates, series, count_text)


def _drift(audited: Audited) -> list[str]:
    if not audited.drift:
        return []
    rows = [
        (
            row.resource,
            row.key,
            _short(row.at_first),
            _short(row.at_last),
            "back" if row.is_back else "",
            row.changes_count,
            row.principals,
            _moment(row.last_time),
        )
        for row in audited.settings[:_ROWS_MAX]
    ]
    columns = ("RESOURCE", "KEY", "AT FIRST", "NOW", "", "CHANGES", "BY", "LAST")
    note = "Number of keys, at the end of each day, whose values differ from those before the first event."
    return [
        document.heading("Drift"),
        document.lines(
            "Keys that differ from their first value",
            [row.date for row in audited.drift],
            [Series("", [row.keys_count for row in audited.drift])],
        ),
        document.paragraph(note, faint=True),
        document.table(columns, rows),
        *_more(len(audited.settings)),
    ]


def _configs(audited: Audited) -> list[str]:
    if not audited.configs:
        return []
    rows = [
        (
            row.resource,
            row.key,
            row.principal,
            row.changes_count,
            _short(row.last_before),
            _short(row.last_after),
            _moment(row.last_time),
        )
        for row in audited.configs[:_ROWS_MAX]
    ]
    by_key = _sums((row.key, row.changes_count) for row in audited.configs)
    columns = ("RESOURCE", "CONFIG", "BY", "CHANGES", "LAST FROM", "TO", "AT")
    return [
        document.heading("Config changes"),
        document.ranking("Most frequently changed configs", _largest(by_key)),
        document.table(columns, rows),
        *_more(len(audited.configs)),
    ]


def _refusals(audited: Audited) -> list[str]:
    if not audited.refusals:
        return []
    refused = [activity for activity in audited.activity if activity.outcome != "changed"]
    rows = [
        (
            row.principal,
            row.api,
            row.resource,
            row.outcome,
            row.error,
            row.message,
            row.events_count,
            _moment(row.last_time),
        )
        for row in audited.refusals[:_ROWS_MAX]
    ]
    columns = ("PRINCIPAL", "API", "RESOURCE", "OUTCOME", "ERROR", "MESSAGE", "COUNT", "LAST")
    note = "The same error of the same client is recorded at most once a minute."
    return [
        document.heading("Denied changes"),
        _days(
            "Requests that were denied or warned, by principal",
            refused,
            lambda activity: activity.principal,
        ),
        document.table(columns, rows),
        *_more(len(audited.refusals)),
        document.paragraph(note, faint=True),
    ]


def _grants(audited: Audited) -> list[str]:
    if not audited.grants:
        return []
    rows = [
        (
            row.principal,
            row.acl,
            row.status,
            row.uses_count,
            _moment(row.last_used),
            _moment(row.unused_since),
            _moment(row.made) or "before the audit",
            row.made_by or "",
            _moment(row.removed) or ("" if row.is_standing else "yes"),
            _moment(row.principal_seen) or "never",
        )
        for row in audited.grant_rows()[:_ROWS_MAX]
    ]
    columns = (
        "PRINCIPAL",
        "ACL",
        "USE",
        "CHANGES",
        "LAST",
        "UNUSED SINCE",
        "MADE",
        "BY",
        "REMOVED",
        "PRINCIPAL SEEN",
    )
    summary = (
        "Changes counts the audited changes that an ACL allowed, or denied if it is a DENY. Unused since: no broker "
        "has used the ACL in any decision since then."
    )
    source = (
        ""
        if audited.knows_acls
        else " The brokers did not report their ACLs: these are derived from the audit."
    )
    return [
        document.heading("ACLs"),
        document.paragraph(summary + source, faint=True),
        document.table(columns, rows),
        *_more(len(audited.grants)),
    ]


def _more(count: int) -> list[str]:
    if count <= _ROWS_MAX:
        return []
    return [
        document.paragraph(
            f"{count - _ROWS_MAX} more rows are in the Parquet tables next to this file.", faint=True
        )
    ]


def _moment(time_ms: int | None) -> str:
    return (
        "" if time_ms is None else datetime.fromtimestamp(time_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    )


def _short(value: str | None) -> str:
    if value is None:
        return "-"
    return value if len(value) <= _TEXT_MAX else f"{value[:_TEXT_MAX]}…"
