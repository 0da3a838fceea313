"""Implementation of `barnabas jobs usage`."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.cli.output import notice, print_json, print_table
from barnabas.cli.spark import check_spark_installed

if TYPE_CHECKING:
    from pyspark_barnabas.jobs.usage.job import Usage


def measure(
    options: Mapping[str, str],
    *,
    keys_count: int,
    report: Path | None,
    master: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Measure topics, and print or write the results."""
    check_spark_installed()
    from pyspark_barnabas.jobs.common.session import job_session
    from pyspark_barnabas.jobs.usage.job import usage
    from pyspark_barnabas.jobs.usage.report import usage_html

    measured = usage(None, options, dry_run=dry_run)
    if measured.ranges and not dry_run:
        with job_session("usage", master) as spark:
            measured = usage(spark, options, keys_count=keys_count)
        if report is not None:
            measured.save(report)
            (report / "report.html").write_text(
                usage_html(measured, options.get("kafka.bootstrap.servers", "")), encoding="utf-8"
            )
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
