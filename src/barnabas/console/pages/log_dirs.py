"""Log directories: their usage, by directory and by topic."""

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from starlette.responses import Response

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.log_dirs import LogDirDescription
from barnabas.console.forms import NODE_ID_MAX, PARTITION_MAX
from barnabas.console.page import MenuEntry, Route
from barnabas.console.problems import wrong_form
from barnabas.console.treemap import Tile, treemap
from barnabas.console.view import View
from barnabas.wire.errors import KafkaError

_TOPICS_MAX = 24
_REPLICAS_MAX = 500
OTHERS = "others"


class Directory(NamedTuple):
    """A log directory of a broker, and its treemap."""

    node: int
    description: LogDirDescription
    used_bytes: int
    tiles: Sequence[Tile]
    replicas_count: int
    moving: Sequence[TopicPartition]

    @property
    def state(self) -> str:
        """Online, offline or cordoned."""
        if self.description.error is not None:
            return f"offline ({self.description.error.code.name})"
        return "cordoned" if self.description.is_cordoned else "online"

    @property
    def full_percent(self) -> float | None:
        """How full its volume is; None if the broker does not report it."""
        if self.description.total_bytes <= 0 or self.description.usable_bytes < 0:
            return None
        return 100 * (1 - self.description.usable_bytes / self.description.total_bytes)


async def show(view: View) -> Response:
    """Show every directory of every broker."""
    cluster = await view.cluster_view()
    found: dict[int, list[LogDirDescription] | KafkaError] = {}
    for node in cluster.nodes:
        try:
            found[node.node_id] = await view.admin.describe_log_dirs(node.node_id)
        except (KafkaError, ConnectionError) as error:
            if len(cluster.nodes) == 1:
                raise
            found[node.node_id] = error if isinstance(error, KafkaError) else []
    directories = [
        directory_of(node, description)
        for node, descriptions in found.items()
        if isinstance(descriptions, list)
        for description in descriptions
    ]
    topic = view.query.get("topic", "")
    return await view.page(
        "log_dirs.html",
        directories=directories,
        most=max((each.used_bytes for each in directories), default=0),
        refused=[node for node, each in found.items() if not isinstance(each, list) or not each],
        topic=topic,
        replicas=replicas_of(directories, topic),
        may_move=view.offers("ALTER", cluster.operations) and len(directories) > 1,
    )


def directory_of(node: int, description: LogDirDescription) -> Directory:
    """A directory as displayed."""
    sizes: Counter[str] = Counter()
    for tp, replica in description.replicas.items():
        sizes[tp.topic] += replica.size_bytes
    moving = sorted(tp for tp, replica in description.replicas.items() if replica.is_future)
    return Directory(
        node, description, sizes.total(), treemap(largest(sizes)), len(description.replicas), moving
    )


def largest(sizes: Counter[str]) -> dict[str, int]:
    """The largest topics, and all others as one, if they have any bytes."""
    top = {name: size for name, size in sizes.most_common(_TOPICS_MAX) if size}
    rest = sizes.total() - sum(top.values())
    return {**top, **({OTHERS: rest} if rest else {})}


def replicas_of(
    directories: Sequence[Directory], topic: str
) -> list[tuple[Directory, TopicPartition, int, bool]]:
    """The replicas of a topic: directory, partition, bytes, whether it is being moved there."""
    found = [
        (directory, tp, replica.size_bytes, replica.is_future)
        for directory in directories
        for tp, replica in directory.description.replicas.items()
        if tp.topic == topic
    ]
    return sorted(found, key=lambda each: (each[1], each[0].node))[:_REPLICAS_MAX]


async def move(view: View) -> Response:
    """Start to move a replica to another directory of its broker."""
    form = await view.form()
    topic, partition = form.needed("topic"), form.whole("partition", maximum=PARTITION_MAX)
    node, directory = form.whole("node", maximum=NODE_ID_MAX), form.needed("directory")
    if form.errors or partition is None or node is None:
        raise wrong_form("Select the replica and its new directory.")
    tp = TopicPartition(topic, partition)
    raise_errors((await view.admin.alter_replica_log_dirs(node, {tp: directory})).values())
    return view.redirect_with_notice("/log-dirs", f"{tp} of broker {node} is being moved to {directory}.")


MENU = MenuEntry("Cluster", "Log directories", "/log-dirs", "DESCRIBE")
ROUTES = (
    Route("/log-dirs", show),
    Route("/log-dirs/move", move, "POST"),
)
