"""Partition reassignments: start and cancel them, and elect leaders."""

from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.cluster_control import ElectionType
from barnabas.client.core.metadata import TopicInfo
from barnabas.console.forms import PARTITION_MAX, Form, is_node_id
from barnabas.console.page import MenuEntry, Route
from barnabas.console.problems import sentence, wrong_form
from barnabas.console.view import View
from barnabas.wire.errors import ErrorCode, KafkaError

_ELECTIONS = {"preferred": ElectionType.PREFERRED, "unclean": ElectionType.UNCLEAN}


async def show(view: View) -> Response:
    """Show ongoing reassignments, and the forms."""
    return await _page(view, {}, {})


async def _page(view: View, values: dict[str, str], errors: dict[str, str], **preview: Any) -> Response:
    cluster = await view.cluster_view()
    moving = sorted((await view.admin.list_partition_reassignments()).items())
    return await view.page(
        "reassignments.html",
        status=400 if errors else 200,
        moving=moving,
        may_alter=_may(view, cluster),
        nodes=[node.node_id for node in cluster.nodes],
        values={"topic": view.query.get("topic", ""), **values},
        errors=errors,
        preview=preview.get("preview"),
    )


async def show_moving(view: View) -> Response:
    """Show ongoing reassignments, which an open page refreshes."""
    moving = sorted((await view.admin.list_partition_reassignments()).items())
    may_alter = _may(view, await view.cluster_view())
    return await view.piece("reassignments_list.html", moving=moving, may_alter=may_alter)


def _may(view: View, cluster: Any) -> bool:
    return view.offers("ALTER", cluster.operations)


async def start(view: View) -> Response:
    """Preview the new replicas of a topic's partitions; move them once confirmed."""
    form = await view.form()
    name = form.needed("topic")
    nodes = [node.node_id for node in (await view.cluster_view()).nodes]
    brokers = brokers_of(form, nodes)
    factor = form.whole("factor", minimum=1, maximum=max(1, len(brokers)))
    values = {key: form.text(key) for key in ("topic", "brokers", "factor")}
    topic = await _topic(view, form, name) if name else None
    if form.errors or topic is None:
        return await _page(view, values, form.errors)
    targets = spread(topic, brokers, factor)
    changed = {
        tp: target
        for tp, target in targets.items()
        if tuple(target) != topic.partition(tp.partition).replicas
    }
    if not changed:
        form.refuse("brokers", f"The partitions of {name} are already on these brokers.")
        return await _page(view, values, form.errors)
    if not form.flag("confirmed"):
        rows = [(str(tp), topic.partition(tp.partition).replicas, target) for tp, target in changed.items()]
        return await _page(view, values, {}, preview=rows)
    raise_errors((await view.admin.alter_partition_reassignments(changed)).values())
    return view.redirect_with_notice(
        "/reassignments", f"{len(changed)} partitions of {name} are being moved."
    )


async def _topic(view: View, form: Form, name: str) -> TopicInfo | None:
    outcome = (await view.admin.describe_topics([name]))[name]
    if isinstance(outcome, KafkaError):
        form.refuse("topic", sentence(outcome))
        return None
    return outcome


def brokers_of(form: Form, nodes: Sequence[int]) -> list[int]:
    """The brokers that a form names; all if it names none."""
    found: list[int] = []
    for text in form.text("brokers").replace(",", " ").split():
        if not is_node_id(text) or int(text) not in nodes:
            form.refuse("brokers", f"'{text[:20]}' is not one of {', '.join(map(str, nodes))}.")
        elif int(text) not in found:
            found.append(int(text))
    return found or list(nodes)


def spread(
    topic: TopicInfo, brokers: Sequence[int], factor: int | None
) -> Mapping[TopicPartition, list[int]]:
    """Distribute replicas round-robin over the brokers; the replication factor stays unless `factor` is given.

    A replica stays on its broker if that keeps the distribution even.
    """
    targets: dict[TopicPartition, list[int]] = {}
    leaders = dict.fromkeys(brokers, 0)
    for partition in topic.partitions:
        count = min(len(brokers), factor or len(partition.replicas))
        start = min(leaders, key=lambda node: (leaders[node], node not in partition.replicas, node))
        leaders[start] += 1
        at = brokers.index(start)
        turned = [*brokers[at:], *brokers[:at]]
        kept = [node for node in turned[1:] if node in partition.replicas]
        others = [node for node in turned[1:] if node not in partition.replicas]
        targets[TopicPartition(topic.name, partition.partition_index)] = [start, *kept, *others][:count]
    return targets


async def cancel(view: View) -> Response:
    tp = partition_of(await view.form())
    outcome = (await view.admin.alter_partition_reassignments({tp: None}))[tp]
    if outcome is not None and outcome.code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS:
        return view.redirect_with_notice("/reassignments", f"{tp} has no reassignment in progress.", "bad")
    raise_errors([outcome])
    return view.redirect_with_notice("/reassignments", f"The reassignment of {tp} is cancelled.")


def partition_of(form: Form) -> TopicPartition:
    """The partition that a form names.

    :raises PageError: When it names none.
    """
    topic, partition = form.needed("topic"), form.whole("partition", maximum=PARTITION_MAX)
    if not topic or partition is None:
        raise wrong_form("Select a partition.")
    return TopicPartition(topic, partition)


async def elect(view: View) -> Response:
    """Elect leaders of a topic's partitions, or of all."""
    form = await view.form()
    name, election = form.text("topic"), _ELECTIONS[form.one_of("election", tuple(_ELECTIONS))]
    partitions: list[TopicPartition] | None = None
    if name:
        topic = await _topic(view, form, name)
        if topic is None:
            return await _page(view, {"elected": name}, {"elected": form.errors["topic"]})
        partitions = [TopicPartition(name, each.partition_index) for each in topic.partitions]
    outcomes = await view.admin.elect_leaders(partitions, election)
    unneeded = ErrorCode.ELECTION_NOT_NEEDED
    raise_errors(error for error in outcomes.values() if error and error.code is not unneeded)
    count = sum(error is None for error in outcomes.values())
    notice = f"{count} partitions have a new leader." if count else "No election was needed."
    return view.redirect_with_notice("/reassignments", notice)


MENU = MenuEntry("Cluster", "Reassignments", "/reassignments", "DESCRIBE")
ROUTES = (
    Route("/reassignments", show),
    Route("/reassignments/moving", show_moving, is_poll=True),
    Route("/reassignments", start, "POST"),
    Route("/reassignments/cancel", cancel, "POST"),
    Route("/reassignments/elect", elect, "POST"),
)
