"""What `barnabas jobs rekey` does."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barnabas.cli.output import notice, print_json, print_table
from barnabas.cli.spark import check_spark_installed

if TYPE_CHECKING:
    from pyspark_barnabas.jobs.rekey.job import Rekeyed, RekeyRequest


def wanted(
    source: str,
    target: str,
    *,
    was: Sequence[int] | None,
    partitions: int | None,
    groups: Sequence[str] | None,
    any_place: bool,
    step_records: int,
) -> "RekeyRequest":
    """What these arguments ask for."""
    check_spark_installed()
    from pyspark_barnabas.jobs.rekey.job import RekeyRequest

    return RekeyRequest(
        source,
        target,
        was=tuple(was or ()),
        partitions=partitions,
        groups=tuple(groups or ()),
        any_place=any_place,
        step_records=step_records,
    )


def copy(
    options: Mapping[str, str],
    wanted: "RekeyRequest",
    state: Path,
    *,
    cut_over: bool,
    master: str,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Copy what is new, cut over if asked for, and show what was done."""
    from pyspark_barnabas.jobs.common.session import job_session
    from pyspark_barnabas.jobs.rekey.job import rekey

    done = rekey(None, options, wanted, state, cut_over=cut_over, dry_run=True)
    if not dry_run and not done.is_cut_over:
        with job_session("rekey", master) as spark:
            done = rekey(spark, options, wanted, state, cut_over=cut_over)
    if as_json:
        print_json(_as_json(done))
    else:
        _show(done)


def _as_json(done: "Rekeyed") -> dict[str, Any]:
    return {
        "source": done.source,
        "target": done.target,
        "partitions": list(done.partitions),
        "target_partitions": done.target_partitions,
        "resumed_steps": done.resumed_count,
        "steps": [{"rank": step.rank, "ranges": step.ranges} for step in done.steps],
        "offsets_count": done.offsets_count,
        "groups": [
            {
                "group": each.group,
                "offsets": {str(partition): offset for partition, offset in sorted(each.offsets.items())},
                "unread": each.unread_count,
                "again": each.again_count,
            }
            for each in done.groups
        ],
        "cut_over": done.is_cut_over,
        "dry_run": done.dry_run,
    }


def _show(done: "Rekeyed") -> None:
    steps = [
        (number, step.rank, partition, low, high)
        for number, step in enumerate(done.steps)
        for partition, low, high in step.ranges
    ]
    print_table(
        ("STEP", "RANK", "PARTITION", "FROM", "TO"), steps, "Would be copied" if done.dry_run else "Copied"
    )
    if done.groups:
        rows = [
            (each.group, partition, offset, each.unread_count, each.again_count)
            for each in done.groups
            for partition, offset in sorted(each.offsets.items() or [("", "")])
        ]
        print()
        print_table(("GROUP", "NEW PARTITION", "OFFSET", "UNREAD", "READ AGAIN"), rows, "Groups")
    if done.resumed_count:
        notice(f"{done.resumed_count} steps of an earlier run were gone on with")
    if done.is_cut_over:
        notice(f"'{done.source}' is cut over to '{done.target}': let producers and consumers begin there")
