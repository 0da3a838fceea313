"""Implementation of `barnabas reassignments`."""

from collections.abc import Sequence

from barnabas.base.ids import TopicPartition
from barnabas.cli.output import notice, print_json, print_table
from barnabas.cli.partitions import PartitionArg
from barnabas.cli.work.calls import with_admin
from barnabas.cli.work.partitions import expand_partitions, print_results
from barnabas.cli.work.waiting import until_done
from barnabas.client.admin.admin import Admin
from barnabas.wire.errors import KafkaError


def show_list(bootstrap: str, *, as_json: bool) -> None:
    """Print the partitions that are being reassigned."""
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


def start(
    bootstrap: str,
    targets: Sequence[tuple[PartitionArg, list[int]]],
    *,
    keep_factor: bool,
    wait_s: float | None,
    as_json: bool,
) -> None:
    """Start reassignments, wait up to `wait_s` until they are complete, and print the results."""

    async def work(admin: Admin) -> dict[TopicPartition, KafkaError | None]:
        errors = await _alter(admin, targets, keep_factor)
        started = {tp for tp, error in errors.items() if error is None}

        async def remaining() -> int:
            return len(started & (await admin.list_partition_reassignments()).keys())

        if wait_s is not None:
            await until_done(admin.cluster, remaining, wait_s, "reassignments")
        return errors

    results = with_admin(bootstrap, work)
    print_results(results, "moving" if wait_s is None else "moved", {}, as_json=as_json)


def cancel(bootstrap: str, partitions: Sequence[PartitionArg], *, as_json: bool) -> None:
    """Cancel reassignments, and print the results."""
    targets = [(partition, None) for partition in partitions]
    results = with_admin(bootstrap, lambda admin: _alter(admin, targets, False))
    tolerated = {"NO_REASSIGNMENT_IN_PROGRESS": "no reassignment in progress"}
    print_results(results, "reassignment cancelled", tolerated, as_json=as_json)


async def _alter(
    admin: Admin, targets: Sequence[tuple[PartitionArg, list[int] | None]], keep_factor: bool
) -> dict[TopicPartition, KafkaError | None]:
    return await admin.alter_partition_reassignments(
        await expand_partitions(admin, targets), allow_replication_factor_change=not keep_factor
    )
