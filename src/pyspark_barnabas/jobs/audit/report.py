"""What the job `audit` found as one HTML file. No IO."""

from collections import defaultdict
from collections.abc import Callable, Iterable
from datetime import UTC, datetime

from pyspark_barnabas import report
from pyspark_barnabas.jobs.audit.job import Activity, Audited
from pyspark_barnabas.report import Series, count_text

#: Names that have a series of their own; the others are one together.
_SERIES_MAX = 7
_BARS_MAX = 20
_ROWS_MAX = 200
_TEXT_MAX = 60
_REST = "others"


def audit_html(found: Audited, cluster: str) -> str:
    """The document; `cluster` says where the audit was read."""
    parts = [*_overview(found), *_drift(found), *_configs(found), *_refusals(found), *_grants(found)]
    return report.page("What the audit tells", cluster, parts)


def _overview(found: Audited) -> list[str]:
    changed = [each for each in found.activity if each.outcome == "changed"]
    refused = [each for each in found.activity if each.outcome != "changed"]
    by_whom = _sums((each.principal, each.requests_count) for each in changed)
    words = (
        f"{found.events_count} events: {sum(by_whom.values())} requests of {len(by_whom)} principals changed "
        f"something, {sum(each.requests_count for each in refused)} were refused or warned."
    )
    return [
        report.paragraph(words),
        *map(report.paragraph, found.advice),
        report.heading("Who changes what"),
        _days("Requests that changed something, by principal", changed, lambda each: each.principal),
        _days("Requests that changed something, by kind", changed, lambda each: each.kind),
        report.ranking("Who changes most", _largest(by_whom)),
    ]


def _sums(counts: Iterable[tuple[str, int]]) -> dict[str, int]:
    found: defaultdict[str, int] = defaultdict(int)
    for name, count in counts:
        found[name] += count
    return dict(found)


def _largest(sums: dict[str, int], count: int = _BARS_MAX) -> list[tuple[str, float]]:
    return [(name, float(sums[name])) for name in sorted(sums, key=lambda name: (-sums[name], name))[:count]]


def _days(title: str, activity: list[Activity], name_of: Callable[[Activity], str]) -> str:
    dates = sorted({each.date for each in activity})
    named = [
        name
        for name, _ in _largest(_sums((name_of(each), each.requests_count) for each in activity), _SERIES_MAX)
    ]
    values: defaultdict[str, defaultdict[str, int]] = defaultdict(lambda: defaultdict(int))
    for each in activity:
        name = name_of(each)
        values[name if name in named else _REST][each.date] += each.requests_count
    series = [
        Series(name, [values[name][date] for date in dates]) for name in (*named, _REST) if name in values
    ]
    return report.columns(title, dates, series, count_text)


def _drift(found: Audited) -> list[str]:
    if not found.drift:
        return []
    rows = [
        (
            each.resource,
            each.key,
            _short(each.at_first),
            _short(each.at_last),
            "back" if each.is_back else "",
            each.changes_count,
            each.principals,
            _moment(each.last_time),
        )
        for each in found.settings[:_ROWS_MAX]
    ]
    columns = ("RESOURCE", "KEY", "AT FIRST", "NOW", "", "CHANGES", "BY", "LAST")
    words = "Keys whose values were not what they were before the first event, at the end of each day."
    return [
        report.heading("Drift"),
        report.lines(
            "Keys that differ from the beginning",
            [each.date for each in found.drift],
            [Series("", [each.keys_count for each in found.drift])],
        ),
        report.paragraph(words, faint=True),
        report.table(columns, rows),
        *_more(len(found.settings)),
    ]


def _configs(found: Audited) -> list[str]:
    if not found.configs:
        return []
    rows = [
        (
            each.resource,
            each.key,
            each.principal,
            each.changes_count,
            _short(each.last_before),
            _short(each.last_after),
            _moment(each.last_time),
        )
        for each in found.configs[:_ROWS_MAX]
    ]
    by_key = _sums((each.key, each.changes_count) for each in found.configs)
    columns = ("RESOURCE", "CONFIG", "BY", "CHANGES", "LAST FROM", "TO", "AT")
    return [
        report.heading("Config changes"),
        report.ranking("Configs that are changed most", _largest(by_key)),
        report.table(columns, rows),
        *_more(len(found.configs)),
    ]


def _refusals(found: Audited) -> list[str]:
    if not found.refusals:
        return []
    refused = [each for each in found.activity if each.outcome != "changed"]
    rows = [
        (
            each.principal,
            each.api,
            each.resource,
            each.outcome,
            each.error,
            each.message,
            each.events_count,
            _moment(each.last_time),
        )
        for each in found.refusals[:_ROWS_MAX]
    ]
    columns = ("WHO", "BY", "RESOURCE", "OUTCOME", "ERROR", "WHY", "TIMES", "LAST")
    words = "The same refusal of the same client is told once in a minute."
    return [
        report.heading("Refusals"),
        _days("Requests that were refused or warned, by principal", refused, lambda each: each.principal),
        report.table(columns, rows),
        *_more(len(found.refusals)),
        report.paragraph(words, faint=True),
    ]


def _grants(found: Audited) -> list[str]:
    if not found.grants:
        return []
    rows = [
        (
            each.principal,
            each.acl,
            each.verdict,
            each.uses_count,
            _moment(each.last_used),
            _moment(each.unused_since),
            _moment(each.made) or "before the audit",
            each.made_by or "",
            _moment(each.removed) or ("" if each.is_standing else "yes"),
            _moment(each.principal_seen) or "never",
        )
        for each in found.grant_rows()[:_ROWS_MAX]
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
    words = (
        "Changes are those that an ACL let, or of DENY forbade, as the audit tells. Unused is what no broker has "
        "decided anything by since then, whatever it was asked."
    )
    whence = (
        "" if found.knows_acls else " Brokers did not tell which ACLs stand: these are those of the audit."
    )
    return [
        report.heading("ACLs"),
        report.paragraph(words + whence, faint=True),
        report.table(columns, rows),
        *_more(len(found.grants)),
    ]


def _more(count: int) -> list[str]:
    if count <= _ROWS_MAX:
        return []
    return [report.paragraph(f"{count - _ROWS_MAX} more are in the tables beside this file.", faint=True)]


def _moment(time_ms: int | None) -> str:
    return (
        "" if time_ms is None else datetime.fromtimestamp(time_ms / 1_000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    )


def _short(value: str | None) -> str:
    if value is None:
        return "-"
    return value if len(value) <= _TEXT_MAX else f"{value[:_TEXT_MAX]}…"
