"""`barnabas reassignments`: list, start and cancel partition reassignments, and spread partitions evenly."""

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from barnabas.base.ids import TopicPartition
from barnabas.base.plurals import plural
from barnabas.cli.support import candidates
from barnabas.cli.support.calls import with_admin
from barnabas.cli.support.commands import command, command_group
from barnabas.cli.support.failures import CommandError, wrong_use
from barnabas.cli.support.options import BOOTSTRAP_DEFAULT, Bootstrap, Json, Wait
from barnabas.cli.support.outcomes import raise_all
from barnabas.cli.support.output import notice, print_json, print_table
from barnabas.cli.support.partitions import (
    PartitionArg,
    expand_partitions,
    parse_brokers,
    parse_partition,
    parse_reassignment,
    print_results,
    result_json,
)
from barnabas.cli.support.waiting import until_done
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.cluster_control import ElectionType
from barnabas.client.admin.reassignment_plan import plan_reassignments
from barnabas.wire.errors import ErrorCode, KafkaError

#: partition -> brokers
_Replicas = Mapping[TopicPartition, tuple[int, ...]]
#: partition -> why it is not reassigned
_Errors = Mapping[TopicPartition, KafkaError | None]

#: The preferred replica leads already, or does not follow yet.
_NOT_ELECTED = (ErrorCode.ELECTION_NOT_NEEDED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE)


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
        await _wait(admin, errors, wait_s)
        return errors

    results = with_admin(bootstrap, start)
    print_results(results, "moving" if wait_s is None else "moved", {}, as_json=as_json)


@command(
    "balance",
    example="reassignments balance --brokers 1,2,4 --wait 600",
    apis=("Metadata", "ListPartitionReassignments", "AlterPartitionReassignments", "ElectLeaders"),
    needs=("describe cluster", "describe topic", "alter cluster"),
)
def balance(
    bootstrap: Bootstrap = BOOTSTRAP_DEFAULT,
    broker_ids: Annotated[
        str | None,
        typer.Option(
            "--brokers",
            metavar="ID,...",
            help="Brokers to spread all replicas over (default: all).",
            show_default=False,
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would move.")] = False,
    wait_s: Wait = None,
    as_json: Json = False,
) -> None:
    """Spread replicas and leaders evenly over brokers and racks, with few copies.

    Brokers that --brokers leaves out give up all replicas, as is necessary before a broker is removed. A cordoned
    broker gets replicas unless --brokers leaves it out. With --wait the preferred leaders are elected at the end;
    otherwise that happens within leader.imbalance.check.interval.seconds. Topics that the principal may not describe
    are left out.
    """
    brokers = None if broker_ids is None else parse_brokers(broker_ids)

    async def move(admin: Admin) -> tuple[_Replicas, _Replicas, _Errors]:
        before, after = await _plan(admin, brokers)
        if not after or dry_run:
            return before, after, {}
        errors = await admin.alter_partition_reassignments(after)
        await _wait(admin, errors, wait_s)
        if wait_s is not None:
            elected = await admin.elect_leaders(_without_errors(errors), ElectionType.PREFERRED)
            errors |= {tp: error for tp, error in elected.items() if error and error.code not in _NOT_ELECTED}
        return before, after, errors

    before, after, errors = with_admin(bootstrap, move)
    if as_json:
        moves = ((tp, {"replicas": before[tp], "new_replicas": after[tp]}) for tp in after)
        print_json([{**result_json(tp, errors.get(tp)), **move} for tp, move in moves])
    else:
        _print_plan(before, after)
    raise_all(
        KafkaError(error.code, f"{tp}: {error.message}") for tp, error in errors.items() if error is not None
    )


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


async def _plan(admin: Admin, brokers: Sequence[int] | None) -> tuple[_Replicas, _Replicas]:
    """Return the replicas of all partitions, and the new ones of those that have to move.

    :raises CommandError: If there are too few brokers, if other reassignments are in progress, or if brokers are down
        and `brokers` does not say whether they keep their replicas.
    :raises KafkaError: BROKER_NOT_AVAILABLE.
    """
    if reassigned := await admin.list_partition_reassignments():
        raise CommandError(
            f"{plural(len(reassigned), 'partition is', 'partitions are')} being reassigned already",
            hint="wait until they are complete, or cancel them: 'barnabas reassignments list' shows them",
        )
    metadata = await admin.cluster.refresh()
    nodes = [metadata.node(broker) for broker in (metadata.nodes if brokers is None else brokers)]
    before = {
        TopicPartition(topic.name, partition.partition_index): partition.replicas
        for topic in metadata.topics.values()
        for partition in topic.partitions
    }
    down = {broker for replicas in before.values() for broker in replicas} - metadata.nodes.keys()
    if brokers is None and down:
        raise CommandError(
            f"brokers with replicas are down: {', '.join(map(str, sorted(down)))}",
            hint="start them, or name the brokers to spread all replicas over with --brokers",
        )
    try:
        return before, plan_reassignments(before, {node.node_id: node.rack for node in nodes})
    except ValueError as error:
        raise wrong_use(str(error), "--brokers") from None


def _print_plan(before: _Replicas, after: _Replicas) -> None:
    rows = [(str(tp), *(",".join(map(str, replicas[tp])) for replicas in (before, after))) for tp in after]
    print_table(("partition", "replicas", "new replicas"), rows)
    copies_count = sum(len(set(after[tp]) - set(before[tp])) for tp in after)
    if after:
        notice(f"{plural(len(after), 'partition')}, {plural(copies_count, 'copied replica')}")
    else:
        notice("replicas and preferred leaders are spread evenly")


def _without_errors(errors: _Errors) -> set[TopicPartition]:
    return {tp for tp, error in errors.items() if error is None}


async def _wait(admin: Admin, errors: _Errors, wait_s: float | None) -> None:
    """Wait until the reassignments that were started are complete; without `wait_s` do not."""
    started = _without_errors(errors)

    async def remaining() -> int:
        return len(started & (await admin.list_partition_reassignments()).keys())

    if wait_s is not None:
        await until_done(admin.cluster, remaining, wait_s, "reassignments")


async def _alter(
    admin: Admin, targets: Sequence[tuple[PartitionArg, list[int] | None]], *, keep_factor: bool = False
) -> dict[TopicPartition, KafkaError | None]:
    return await admin.alter_partition_reassignments(
        await expand_partitions(admin, targets), allow_replication_factor_change=not keep_factor
    )


app = command_group(list_reassignments, start_reassignments, balance, cancel_reassignments)
