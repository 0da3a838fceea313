"""`barnabas reassignments`: list, start and cancel partition reassignments."""

from collections.abc import Sequence
from typing import Annotated

import typer

from barnabas.base.ids import TopicPartition
from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, Wait
from barnabas.cli.support.output import notice, print_json, print_table
from barnabas.cli.support.partitions import (
    PartitionArg,
    expand_partitions,
    parse_partition,
    parse_reassignment,
    print_results,
)
from barnabas.cli.support.waiting import until_done
from barnabas.client.admin.admin import Admin
from barnabas.wire.errors import KafkaError


@command(
    "list",
    example="reassignments list",
    apis=("ListPartitionReassignments",),
    needs=("describe cluster",),
)
def list_reassignments(bootstrap: Bootstrap = BOOTSTRAP_DEFAULT, as_json: Json = False) -> None:
    """List the partitions that are being reassigned."""
    reassignments = sorted(with_admin(bootstrap, lambda admin: admin.list_partition_reassignments()).items())
    if as_json:
        print_json([{**tp._asdict(), **reassignment._asdict()} for tp, reassignment in reassignments])
        return
    rows = [
        (str(tp), *(",".join(map(str, brokers)) for brokers in reassignment))
        for tp, reassignment in reassignments
    ]
    print_table(("partition", "replicas", "adding", "removing"), rows)
    if not reassignments:
        notice("no reassignments in progress")


@command(
    "start",
    example="reassignments start orders:0=2,3 --wait 600",
    apis=("AlterPartitionReassignments",),
    needs=("alter cluster",),
)
def start_reassignments(
    target_args: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC[:PARTITION]=BROKER,...",
            help="New replicas of a partition or of a whole topic; the first is the preferred leader.",
            autocompletion=candidates.partitions,
            show_default=False,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    keep_factor: Annotated[
        bool,
        typer.Option("--keep-replication-factor", help="Fail if this would change the number of replicas."),
    ] = False,
    wait_s: Wait = None,
    as_json: Json = False,
) -> None:
    """Start moving partitions to other brokers."""
    targets = [parse_reassignment(text) for text in target_args]

    async def start(admin: Admin) -> dict[TopicPartition, KafkaError | None]:
        errors = await _alter(admin, targets, keep_factor=keep_factor)
        started = {tp for tp, error in errors.items() if error is None}

        async def remaining() -> int:
            return len(started & (await admin.list_partition_reassignments()).keys())

        if wait_s is not None:
            await until_done(admin.cluster, remaining, wait_s, "reassignments")
        return errors

    results = with_admin(bootstrap, start)
    print_results(results, "moving" if wait_s is None else "moved", {}, as_json=as_json)


@command(
    "cancel",
    example="reassignments cancel orders:0",
    apis=("AlterPartitionReassignments",),
    needs=("alter cluster",),
)
def cancel_reassignments(
    partition_args: Annotated[
        list[str],
        typer.Argument(
            metavar="TOPIC[:PARTITION]...",
            help="Partitions whose reassignment is cancelled.",
            show_default=False,
            autocompletion=candidates.partitions,
        ),
    ],
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    as_json: Json = False,
) -> None:
    """Cancel reassignments; the partitions return to their original replicas."""
    targets = [(parse_partition(text), None) for text in partition_args]
    results = with_admin(bootstrap, lambda admin: _alter(admin, targets))
    tolerated = {"NO_REASSIGNMENT_IN_PROGRESS": "no reassignment in progress"}
    print_results(results, "reassignment cancelled", tolerated, as_json=as_json)


async def _alter(
    admin: Admin, targets: Sequence[tuple[PartitionArg, list[int] | None]], *, keep_factor: bool = False
) -> dict[TopicPartition, KafkaError | None]:
    return await admin.alter_partition_reassignments(
        await expand_partitions(admin, targets), allow_replication_factor_change=not keep_factor
    )


app = command_group(list_reassignments, start_reassignments, cancel_reassignments)
