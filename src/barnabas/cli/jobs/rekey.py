"""`barnabas jobs rekey`."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from barnabas.cli.jobs.options import DryRun, Master, SourceOption, connection_options
from barnabas.cli.support.commands import command
from barnabas.cli.support.extras import check_spark_installed
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, key_value_pairs
from barnabas.cli.support.output import notice, print_json, print_table

if TYPE_CHECKING:
    from pyspark_barnabas.jobs.rekey.job import Rekeyed

PreviousPartitions = Annotated[
    list[int] | None,
    typer.Option(
        "--was",
        metavar="COUNT",
        help="Number of partitions before the topic grew; may be repeated, the oldest first.",
    ),
]
CopyState = Annotated[
    Path,
    typer.Option(
        "--state",
        metavar="DIRECTORY",
        help="Directory for the progress of the copy; use a separate one for each copy.",
    ),
]
AnyPartition = Annotated[
    bool,
    typer.Option(
        "--any-place",
        help="Also copy records in partitions that Java's default partitioner would not have chosen.",
    ),
]
CutOver = Annotated[
    bool,
    typer.Option(
        "--cut-over",
        help="Copy the remaining records, and commit the offsets of the groups in the new topic.",
    ),
]


@command("rekey", example="jobs rekey orders orders-by-key --state ./rekey")
def rekey_topic(
    source: Annotated[
        str, typer.Argument(metavar="TOPIC", help="Topic whose number of partitions has grown.")
    ],
    target: Annotated[str, typer.Argument(metavar="NEW", help="New topic to create.")],
    state: CopyState,
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    was: PreviousPartitions = None,
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions",
            min=1,
            help="Number of partitions of the new topic (default: as many as the old one).",
        ),
    ] = None,
    groups: Annotated[
        list[str] | None,
        typer.Option("--group", "-g", metavar="GROUP", help="Group to cut over (default: all with offsets)."),
    ] = None,
    cut_over: CutOver = False,
    any_partition: AnyPartition = False,
    step_records: Annotated[
        int, typer.Option("--step-records", min=1, help="Approximate number of records per transaction.")
    ] = 1_000_000,
    option: SourceOption = None,
    master: Master = "local[*]",
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Copy a keyed topic that has grown into a new one where each key is in one partition, and switch consumers over.

    Run it as often as you like while producers write; then stop producers and consumers, and run it with --cut-over.
    """
    options = {**connection_options(bootstrap), **dict(key_value_pairs(option, "--option"))}
    check_spark_installed()
    from pyspark_barnabas.jobs.common.session import job_session
    from pyspark_barnabas.jobs.rekey.job import RekeyRequest, rekey

    request = RekeyRequest(
        source,
        target,
        was=tuple(was or ()),
        partitions=partitions,
        groups=tuple(groups or ()),
        any_partition=any_partition,
        step_records=step_records,
    )
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
