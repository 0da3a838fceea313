"""What `barnabas jobs audit` does."""

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
    """Read the audit, and show or write what it tells.

    :raises Failure: For a time that is none.
    """
    check_spark_installed()
    from pyspark_barnabas.jobs.audit.job import audit
    from pyspark_barnabas.jobs.audit.report import audit_html
    from pyspark_barnabas.jobs.common.session import job_session

    since_ms = None if since is None else parse_time_ms(since, SystemClock().wall_ms())
    found = audit(None, options, since_ms=since_ms, dry_run=True)
    if not dry_run:
        with job_session("audit", master) as spark:
            found = audit(spark, options, since_ms=since_ms)
        if report is not None:
            found.save(report)
            document = audit_html(found, options.get("kafka.bootstrap.servers", ""))
            (report / "report.html").write_text(document, encoding="utf-8")
    if as_json:
        print_json(found.to_json())
    elif dry_run:
        print_table(("PARTITION", "FROM", "TO"), found.ranges, "Would be read")
    else:
        _show(found)
    if report is not None:
        notice(f"a report would be written to {report}" if dry_run else f"see {report / 'report.html'}")


def _show(found: "Audited") -> None:
    configs = [(*each[:4], each.last_before, each.last_after) for each in found.configs]
    refusals = [(*each[:6], each.events_count) for each in found.refusals]
    grants = [
        (
            row.principal,
            row.acl,
            row.verdict,
            row.uses_count,
            _moment(row.last_used),
            _moment(row.unused_since),
        )
        for row in found.grant_rows()
        if row.is_standing
    ]
    differing = [(*each[:4], each.principals) for each in found.settings if not each.is_back]
    for title, columns, rows in (
        ("Config changes", ("RESOURCE", "CONFIG", "BY", "CHANGES", "LAST FROM", "TO"), configs),
        ("Refusals", ("WHO", "BY", "RESOURCE", "OUTCOME", "ERROR", "WHY", "TIMES"), refusals),
        ("ACLs that stand", ("PRINCIPAL", "ACL", "USE", "CHANGES", "LAST", "UNUSED SINCE"), grants),
        ("Not what it was", ("RESOURCE", "KEY", "AT FIRST", "NOW", "BY"), differing),
    ):
        if rows:
            print_table(columns, rows, title)
            print()
    for each in found.advice:
        notice(each)


def _moment(time_ms: int | None) -> str:
    return "" if time_ms is None else datetime.fromtimestamp(time_ms / 1_000, UTC).isoformat(" ", "seconds")
