"""`barnabas jobs audit`."""

from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.base.clock import SystemClock
from barnabas.cli.jobs.options import DryRun, ReportDirectory, SourceOption, connection_options
from barnabas.cli.support.commands import command
from barnabas.cli.support.extras import check_arrow_installed
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, key_value_pairs
from barnabas.cli.support.output import notice, print_json, print_table
from barnabas.cli.support.progress import progress
from barnabas.cli.support.times import format_timestamp, parse_time_ms

if TYPE_CHECKING:
    from barnabas.reports.audit.summary import Audited


@command("audit", example="jobs audit --since 30d --report ./report")
def summarize_audit(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    since: Annotated[
        str | None,
        typer.Option(
            "--since",
            metavar="TIME",
            help="Only events since this time: 2026-01-31T09:30, 1767225600000 or 30d (30 days ago).",
        ),
    ] = None,
    report: ReportDirectory = None,
    option: SourceOption = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Summarize the audit log: changes by principal, refusals, unused ACLs, settings that differ from before."""
    options = {**connection_options(bootstrap), **dict(key_value_pairs(option, "--option"))}
    check_arrow_installed()
    from barnabas.reports.audit.html import audit_html
    from barnabas.reports.audit.summary import audit

    since_ms = None if since is None else parse_time_ms(since, SystemClock().wall_ms())
    audited = audit(options, since_ms=since_ms, dry_run=dry_run, progress=progress)
    if report is not None and not dry_run:
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
    configs = [
        (*change[:4], _or_dash(change.last_before), _or_dash(change.last_after)) for change in audited.configs
    ]
    refusals = [(*refusal[:6], refusal.events_count) for refusal in audited.refusals]
    grants = [
        (
            row.principal,
            row.acl,
            row.status,
            row.uses_count,
            format_timestamp(row.last_used),
            format_timestamp(row.unused_since),
        )
        for row in audited.grant_rows()
        if row.is_standing
    ]
    differing = [
        (*setting[:2], _or_dash(setting.at_first), _or_dash(setting.at_last), setting.principals)
        for setting in audited.settings
        if not setting.is_back
    ]
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


def _or_dash(value: str | None) -> str:
    return "-" if value is None else value
