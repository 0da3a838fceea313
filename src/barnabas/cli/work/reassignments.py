"""What `barnabas reassignments` does."""

from collections.abc import Sequence

from barnabas.base.ids import TopicPartition
from barnabas.cli.output import notice, print_json, print_table
from barnabas.cli.partitions import PartitionArg
from barnabas.cli.work.calls import with_admin
from barnabas.cli.work.places import expand_partitions, print_outcomes
from barnabas.cli.work.waiting import until_done
from barnabas.client.admin.admin import Admin
from barnabas.wire.errors import KafkaError


def show_list(bootstrap: str, *, as_json: bool) -> None:
    """Print the partitions that are moving."""
    moving = sorted(with_admin(bootstrap, lambda admin: admin.list_partition_reassignments()).items())
    if as_json:
        print_json([{**place._asdict(), **move._asdict()} for place, move in moving])
        return
    rows = [(str(place), *(",".join(map(str, brokers)) for brokers in move)) for place, move in moving]
    print_table(("partition", "replicas", "adding", "removing"), rows)
    if not moving:
        notice("no partition is moving")


def start(
    bootstrap: str,
    targets: Sequence[tuple[PartitionArg, list[int]]],
    *,
    keep_factor: bool,
    wait_s: float | None,
    as_json: bool,
) -> None:
    """Move partitions, stay until they are there if that is wished, and print what became of each."""

    async def work(admin: Admin) -> dict[TopicPartition, KafkaError | None]:
        outcomes = await _alter(admin, targets, keep_factor)
        begun = {place for place, error in outcomes.items() if error is None}

        async def left() -> int:
            return len(begun & (await admin.list_partition_reassignments()).keys())

        if wait_s is not None:
            await until_done(admin.cluster, left, wait_s, "reassignments")
        return outcomes

    outcomes = with_admin(bootstrap, work)
    print_outcomes(outcomes, "moves" if wait_s is None else "moved", {}, as_json=as_json)


def cancel(bootstrap: str, places: Sequence[PartitionArg], *, as_json: bool) -> None:
    """Call moves off and print what became of each."""
    targets = [(place, None) for place in places]
    outcomes = with_admin(bootstrap, lambda admin: _alter(admin, targets, False))
    print_outcomes(outcomes, "stays", {"NO_REASSIGNMENT_IN_PROGRESS": "was not moving"}, as_json=as_json)


async def _alter(
    admin: Admin, targets: Sequence[tuple[PartitionArg, list[int] | None]], keep_factor: bool
) -> dict[TopicPartition, KafkaError | None]:
    return await admin.alter_partition_reassignments(
        await expand_partitions(admin, targets), allow_replication_factor_change=not keep_factor
    )
