"""What `barnabas log-dirs` does."""

from collections.abc import Collection, Mapping, Sequence

from barnabas.base.ids import TopicPartition
from barnabas.cli.failures import wrong_use
from barnabas.cli.output import print_json, print_table
from barnabas.cli.partitions import PartitionArg
from barnabas.cli.work.calls import with_admin
from barnabas.cli.work.places import expand_partitions, print_outcomes
from barnabas.cli.work.waiting import until_done
from barnabas.client.admin.admin import Admin
from barnabas.client.admin.log_dirs import LogDirDescription
from barnabas.wire.errors import KafkaError

_DIRECTORY_COLUMNS = ("broker", "directory", "state", "total bytes", "usable bytes", "replicas", "bytes")
_REPLICA_COLUMNS = ("broker", "directory", "replica", "bytes", "lag", "state")

Descriptions = Mapping[int, list[LogDirDescription]]


def describe(
    bootstrap: str, places: Sequence[PartitionArg] | None, broker: int | None, *, as_json: bool
) -> None:
    """Print the directories of a broker, or of all, and those replicas, or all."""

    async def work(admin: Admin) -> Descriptions:
        named = (
            None
            if places is None
            else list(await expand_partitions(admin, [(place, None) for place in places]))
        )
        brokers = sorted(admin.cluster.metadata.nodes) if broker is None else [broker]
        return {node: await admin.describe_log_dirs(node, named) for node in brokers}

    found = with_admin(bootstrap, work)
    if as_json:
        print_json([_as_json(node, each) for node, each in _flat(found)])
        return
    print_table(_DIRECTORY_COLUMNS, [_directory_row(node, each) for node, each in _flat(found)])
    rows = [
        (
            node,
            each.path,
            place,
            replica.size_bytes,
            replica.offset_lag,
            "future" if replica.is_future else "",
        )
        for node, each in _flat(found)
        for place, replica in sorted(each.replicas.items())
    ]
    if rows:
        print()
        print_table(_REPLICA_COLUMNS, rows)


def move(
    bootstrap: str,
    directory: str,
    places: Sequence[PartitionArg],
    broker: int | None,
    *,
    wait_s: float | None,
    as_json: bool,
) -> None:
    """Begin to move replicas, stay until they are there if that is wished, and print what became of each."""

    async def work(admin: Admin) -> dict[TopicPartition, KafkaError | None]:
        named = await expand_partitions(admin, [(place, directory) for place in places])
        node = _the_one(admin) if broker is None else broker
        outcomes = await admin.alter_replica_log_dirs(node, named)
        begun = {place for place, error in outcomes.items() if error is None}

        async def left() -> int:
            return _records_left(await admin.describe_log_dirs(node, begun), directory, begun)

        if wait_s is not None and begun:
            await until_done(admin.cluster, left, wait_s, f"moves to {directory}")
        return outcomes

    outcomes = {
        place: error and KafkaError(error.code, f"{place} cannot be moved to {directory}")
        for place, error in with_admin(bootstrap, work).items()
    }
    verb = "moves to" if wait_s is None else "is in"
    print_outcomes(outcomes, f"{verb} {directory}", {}, as_json=as_json)


def _records_left(found: list[LogDirDescription], directory: str, places: Collection[TopicPartition]) -> int:
    """How many records are still to be copied before `places` lie there: one at least for each that does not."""
    left = dict.fromkeys(places, 1)
    for each in found:
        for place in left.keys() & each.replicas.keys():
            replica = each.replicas[place]
            if replica.is_future:
                left[place] = max(1, replica.offset_lag)
            elif each.path == directory:
                left[place] = 0
    return sum(left.values())


def _the_one(admin: Admin) -> int:
    """The only broker that there is.

    :raises Failure: When there are several.
    """
    nodes = admin.cluster.metadata.nodes
    if len(nodes) != 1:
        raise wrong_use(
            f"say which broker is meant: --broker with one of {', '.join(map(str, sorted(nodes)))}"
        )
    return next(iter(nodes))


def _flat(found: Descriptions) -> list[tuple[int, LogDirDescription]]:
    return [(node, each) for node, directories in found.items() for each in directories]


def _directory_row(node: int, each: LogDirDescription) -> tuple[object, ...]:
    size_bytes = sum(replica.size_bytes for replica in each.replicas.values())
    return (
        node,
        each.path,
        _state(each),
        _shown(each.total_bytes),
        _shown(each.usable_bytes),
        len(each.replicas),
        size_bytes,
    )


def _state(each: LogDirDescription) -> str:
    if each.error is not None:
        return f"offline ({each.error.code.name})"
    return "cordoned" if each.is_cordoned else "online"


def _shown(size_bytes: int) -> int | str:
    return "?" if size_bytes < 0 else size_bytes


def _as_json(node: int, each: LogDirDescription) -> dict[str, object]:
    return {
        "broker": node,
        "directory": each.path,
        "error": None if each.error is None else each.error.code.name,
        "cordoned": each.is_cordoned,
        "total_bytes": each.total_bytes,
        "usable_bytes": each.usable_bytes,
        "replicas": [
            {"topic": place.topic, "partition": place.partition, **replica._asdict()}
            for place, replica in sorted(each.replicas.items())
        ],
    }
