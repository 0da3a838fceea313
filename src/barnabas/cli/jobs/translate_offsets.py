"""`barnabas jobs translate-offsets`."""

from pathlib import Path
from typing import Annotated

import typer

from barnabas.cli.jobs.options import DryRun, SourceOption, source_options
from barnabas.cli.support.commands import command
from barnabas.cli.support.extras import check_spark_installed
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json
from barnabas.cli.support.output import print_json, print_table


@command("translate-offsets", example="jobs translate-offsets ./map --group billing")
def translate_offsets(
    map_directory: Annotated[Path, typer.Argument(metavar="MAP", help="Directory written by restore --map.")],
    groups: Annotated[
        list[str],
        typer.Option("--group", "-g", metavar="GROUP", help="Group without members; may be repeated."),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    source: Annotated[
        str,
        typer.Option(
            "--from",
            metavar="HOST:PORT",
            help="Cluster where the groups have committed (default: the one at --bootstrap).",
        ),
    ] = "",
    option: SourceOption = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Commit for groups the offsets in restored topics that correspond to their offsets in the original topics."""
    source_cluster = source_options(source or bootstrap, others=option)
    target_cluster = source_options(bootstrap, others=option)
    check_spark_installed()
    from pyspark_barnabas.jobs.restore.offset_map import translate_groups
    from pyspark_barnabas.source.options import batch_options

    offsets = translate_groups(
        batch_options(source_cluster).connection,
        batch_options(target_cluster).connection,
        map_directory,
        groups,
        dry_run=dry_run,
    )
    if as_json:
        print_json({"dry_run": dry_run, "offsets": [row._asdict() for row in offsets]})
        return
    columns = ("GROUP", "TOPIC", "PARTITION", "OFFSET", "RESTORED TOPIC", "RESTORED OFFSET")
    print_table(columns, offsets, "Would be committed" if dry_run else "Committed")
