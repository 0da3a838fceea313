"""`barnabas jobs usage`."""

from typing import TYPE_CHECKING, Annotated

import typer

from barnabas.cli.jobs.options import DryRun, ReportDirectory, SourceOption, Topics, source_options
from barnabas.cli.support.commands import command
from barnabas.cli.support.extras import check_arrow_installed
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import notice, print_json, print_table
from barnabas.cli.support.progress import progress

if TYPE_CHECKING:
    from barnabas.reports.usage.measuring import Usage


@command("usage", example="jobs usage --bootstrap 127.0.0.1:9092 --report report")
def measure_usage(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    topics: Topics = None,
    keys: Annotated[
        int,
        typer.Option("--keys", min=0, help="Number of hot keys to find in each partition; 0 reads no keys."),
    ] = 5,
    report: ReportDirectory = None,
    option: SourceOption = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Measure topics: bytes and records by day, skew, hot keys, hot partitions, and suggested moves."""
    options = source_options(bootstrap, topics, others=option)
    check_arrow_installed()
    from barnabas.reports.usage.html import usage_html
    from barnabas.reports.usage.measuring import usage

    measured = usage(options, keys_count=keys, dry_run=dry_run, progress=progress)
    if report is not None and measured.ranges and not dry_run:
        measured.save(report)
        document = usage_html(measured, options.get("kafka.bootstrap.servers", ""))
        (report / "report.html").write_text(document, encoding="utf-8")
    if as_json:
        print_json(measured.to_json())
    elif dry_run:
        print_table(("TOPIC", "PARTITION", "FROM", "TO"), measured.ranges, "Would be read")
    else:
        _show(measured)
    if report is not None:
        notice(f"a report would be written to {report}" if dry_run else f"report: {report / 'report.html'}")


def _show(measured: "Usage") -> None:
    topics = [
        (topic.topic, topic.partitions_count, topic.size_bytes, topic.records_count, f"{topic.skew:.2f}")
        for topic in measured.topics
    ]
    print_table(("TOPIC", "PARTITIONS", "BYTES", "RECORDS", "SKEW"), topics, "Topics")
    by_size = sorted(measured.partitions, key=lambda item: (-item.size_bytes, item.topic, item.partition))
    partitions = [
        (
            partition.topic,
            partition.partition,
            partition.size_bytes,
            partition.records_count,
            f"{partition.heat:.2f}",
            "hot" if partition.is_hot else "",
        )
        for partition in by_size
    ]
    print()
    print_table(
        ("TOPIC", "PARTITION", "BYTES", "RECORDS", "HEAT", ""), partitions, "Partitions, largest first"
    )
    if measured.keys:
        keys = [(*key[:4], f"{key.share:.1%}") for key in measured.keys]
        print()
        print_table(("TOPIC", "PARTITION", "KEY", "RECORDS", "SHARE"), keys, "Hot keys")
    if measured.balance is not None and measured.balance.moves:
        moves = [
            (
                move.tp,
                *(f"{home.broker} {home.directory}" for home in (move.source, move.target)),
                move.size_bytes,
            )
            for move in measured.balance.moves
        ]
        print()
        print_table(("PARTITION", "FROM", "TO", "BYTES"), moves, "Suggested moves")
    for advice in measured.advice:
        notice(advice)
