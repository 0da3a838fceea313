"""Implementation of `barnabas jobs audit`."""

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.base.clock import SystemClock
from barnabas.cli.output import notice, print_json, print_table
from barnabas.cli.spark import check_spark_installed
from barnabas.cli.work.times import parse_time_ms

if TYPE_CHECKING:
    from pyspark_barnabas.jobs.audit.job import Audited


def analyse(
    options: Mapping[str, str],
    *,
    since: str | None,
    report: Path | None,
    master: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Read the audit log, and print or write its summary.

    :raises CommandError: If `since` is not a valid time.
    """
    check_spark_installed()
    from pyspark_barnabas.jobs.audit.job import audit
    from pyspark_barnabas.jobs.audit.report import audit_html
    from pyspark_barnabas.jobs.common.session import job_session

    since_ms = None if since is None else parse_time_ms(since, SystemClock().wall_ms())
    audited = audit(None, options, since_ms=since_ms, dry_run=True)
    if not dry_run:
        with job_session("audit", master) as spark:
            audited = audit(spark, options, since_ms=since_ms)
        if report is not None:
            audited.save(report)
            document = audit_html(audited, options.get("kafka.bootstrap.servers", ""))
            (report / "report.html").write_text(document, encoding="utf-8")
    if as_json:
        print_json(audited.to_json())
    elif dry_run:
        print_table(("PARTITION", "FROM", "TO"), audited.ranges, "Would be read")
    else:
        _show(audited)
    if report is not None:
        notice(f"a report would be written to {report}" if dry_run else f"report: {report / 'report.html'}")


def _show(audited: "Audited") -> None:
    configs = [(*change[:4], change.last_before, change.last_after) for change in audited.configs]
    refusals = [(*refusal[:6], refusal.events_count) for refusal in audited.refusals]
    grants = [
        (
            row.principal,
            row.acl,
            row.status,
            row.uses_count,
            _format_time(row.last_used),
            _format_time(row.unused_since),
        )
        for row in audited.grant_rows()
        if row.is_standing
    ]
    differing = [(*setting[:4], setting.principals) for setting in audited.settings if not setting.is_back]
    for title, columns, rows in (
        ("Config changes", ("RESOURCE", "CONFIG", "BY", "CHANGES", "LAST FROM", "TO"), configs),
        ("Refusals", ("PRINCIPAL", "API", "RESOURCE", "OUTCOME", "ERROR", "MESSAGE", "COUNT"), refusals),
        ("Current ACLs", ("PRINCIPAL", "ACL", "USE", "CHANGES", "LAST USED", "UNUSED SINCE"), grants),
        ("Settings that differ from before", ("RESOURCE", "KEY", "BEFORE", "NOW", "BY"), differing),
    ):
        if rows:
            print_table(columns, rows, title)
            print()
    for advice in audited.advice:
        notice(advice)


def _format_time(time_ms: int | None) -> str:
    return "" if time_ms is None else datetime.fromtimestamp(time_ms / 1_000, UTC).isoformat(" ", "seconds")
