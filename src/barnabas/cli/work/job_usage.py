"""What `barnabas jobs usage` does."""

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
    """Measure topics, and show or write what was found."""
    check_spark_installed()
    from pyspark_barnabas.jobs.common.session import job_session
    from pyspark_barnabas.jobs.usage.job import usage
    from pyspark_barnabas.jobs.usage.report import usage_html

    found = usage(None, options, dry_run=dry_run)
    if found.ranges and not dry_run:
        with job_session("usage", master) as spark:
            found = usage(spark, options, keys_count=keys_count)
        if report is not None:
            found.save(report)
            (report / "report.html").write_text(
                usage_html(found, options.get("kafka.bootstrap.servers", "")), encoding="utf-8"
            )
    if as_json:
        print_json(found.to_json())
    elif dry_run:
        print_table(("TOPIC", "PARTITION", "FROM", "TO"), found.ranges, "Would be read")
    else:
        _show(found)
    if report is not None:
        notice(f"a report would be written to {report}" if dry_run else f"see {report / 'report.html'}")


def _show(found: "Usage") -> None:
    topics = [
        (each.topic, each.partitions_count, each.size_bytes, each.records_count, f"{each.skew:.2f}")
        for each in found.topics
    ]
    print_table(("TOPIC", "PARTITIONS", "BYTES", "RECORDS", "SKEW"), topics, "Topics")
    largest = sorted(found.partitions, key=lambda each: (-each.size_bytes, each.topic, each.partition))
    partitions = [
        (
            each.topic,
            each.partition,
            each.size_bytes,
            each.records_count,
            f"{each.heat:.2f}",
            _hot(each.is_hot),
        )
        for each in largest
    ]
    print()
    print_table(
        ("TOPIC", "PARTITION", "BYTES", "RECORDS", "HEAT", ""), partitions, "Partitions, the largest first"
    )
    if found.keys:
        keys = [(*each[:4], f"{each.share:.1%}") for each in found.keys]
        print()
        print_table(("TOPIC", "PARTITION", "KEY", "RECORDS", "SHARE"), keys, "Heavy keys")
    if found.balance is not None and found.balance.moves:
        moves = [
            (
                move.place,
                *(f"{home.broker} {home.directory}" for home in (move.source, move.target)),
                move.size_bytes,
            )
            for move in found.balance.moves
        ]
        print()
        print_table(("PARTITION", "FROM", "TO", "BYTES"), moves, "Worth moving")
    for each in found.advice:
        notice(each)


def _hot(is_hot: bool) -> str:
    return "hot" if is_hot else ""
