"""Implementation of `barnabas jobs rekey`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.cli.output import notice, print_json, print_table
from barnabas.cli.spark import check_spark_installed

if TYPE_CHECKING:
    from pyspark_barnabas.jobs.rekey.job import Rekeyed, RekeyRequest


def rekey_request(
    source: str,
    target: str,
    *,
    was: Sequence[int] | None,
    partitions: int | None,
    groups: Sequence[str] | None,
    any_partition: bool,
    step_records: int,
) -> "RekeyRequest":
    check_spark_installed()
    from pyspark_barnabas.jobs.rekey.job import RekeyRequest

    return RekeyRequest(
        source,
        target,
        was=tuple(was or ()),
        partitions=partitions,
        groups=tuple(groups or ()),
        any_partition=any_partition,
        step_records=step_records,
    )


def copy(
    options: Mapping[str, str],
    request: "RekeyRequest",
    state: Path,
    *,
    cut_over: bool,
    master: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Copy new records, cut over if requested, and print the steps."""
    from pyspark_barnabas.jobs.common.session import job_session
    from pyspark_barnabas.jobs.rekey.job import rekey

    result = rekey(None, options, request, state, cut_over=cut_over, dry_run=True)
    if not dry_run and not result.is_cut_over:
        with job_session("rekey", master) as spark:
            result = rekey(spark, options, request, state, cut_over=cut_over)
    if as_json:
        print_json(_as_json(result))
    else:
        _show(result)


def _as_json(result: "Rekeyed") -> dict[str, Any]:
    return {
        "source": result.source,
        "target": result.target,
        "partitions": list(result.partitions),
        "target_partitions": result.target_partitions,
        "resumed_steps": result.resumed_count,
        "steps": [{"rank": step.rank, "ranges": step.ranges} for step in result.steps],
        "offsets_count": result.offsets_count,
        "groups": [
            {
                "group": group.group,
                "offsets": {str(partition): offset for partition, offset in sorted(group.offsets.items())},
                "unread": group.unread_count,
                "again": group.again_count,
            }
            for group in result.groups
        ],
        "cut_over": result.is_cut_over,
        "dry_run": result.dry_run,
    }


def _show(result: "Rekeyed") -> None:
    steps = [
        (number, step.rank, partition, low, high)
        for number, step in enumerate(result.steps)
        for partition, low, high in step.ranges
    ]
    print_table(
        ("STEP", "RANK", "PARTITION", "FROM", "TO"), steps, "Would be copied" if result.dry_run else "Copied"
    )
    if result.groups:
        rows = [
            (group.group, partition, offset, group.unread_count, group.again_count)
            for group in result.groups
            for partition, offset in sorted(group.offsets.items() or [("", "")])
        ]
        print()
        print_table(("GROUP", "NEW PARTITION", "OFFSET", "UNREAD", "READ AGAIN"), rows, "Groups")
    if result.resumed_count:
        notice(f"resumed {result.resumed_count} steps of an earlier run")
    if result.is_cut_over:
        notice(
            f"'{result.source}' is cut over to '{result.target}': start producers and consumers on the new topic"
        )
