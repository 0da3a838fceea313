"""One group: members and lags; reset and delete offsets; delete the group."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from starlette.responses import Response

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.admin import raise_errors
from barnabas.client.admin.extensions.rebalances import format_partitions
from barnabas.client.admin.group_messages import GroupDescription
from barnabas.client.admin.groups import Groups
from barnabas.client.admin.offset_resets import Shift, Target, reset_offsets
from barnabas.client.admin.offsets import EARLIEST, LATEST, OffsetSpec
from barnabas.client.group_lags import PartitionLag, lags_of, total_lag
from barnabas.console.forms import OFFSET_MAX, PARTITION_MAX, Form, encodable
from barnabas.console.page import Route
from barnabas.console.permissions import operations_in
from barnabas.console.plots import plot
from barnabas.console.problems import PageError, sentence, wrong_form
from barnabas.console.times import time_ms
from barnabas.console.view import View, segment
from barnabas.wire.errors import ErrorCode, KafkaError

WAYS = {
    "earliest": "earliest offset",
    "latest": "latest offset",
    "time": "first offset at or after a time",
    "offset": "specific offset",
    "shift": "shift by a number of records",
}
_EVERY_TOPIC = ""
#: Size limit of the offsets in a form, some twenty thousand.
OFFSETS_CHARACTERS_MAX = 1 << 20


async def show(view: View) -> Response:
    """Show the whole group."""
    name = view.path("group")
    group = await _described(view, name)
    context = await _context(view, name, group)
    return await view.page("group.html", **context, values={}, errors={})


async def show_lags(view: View) -> Response:
    """Show its current lags, which an open page refreshes."""
    name = view.path("group")
    return await view.piece("group_lags.html", **await _context(view, name, await _described(view, name)))


async def show_rebalances(view: View) -> Response:
    """Show why the group rebalanced; on Apache Kafka, a page that explains why this is not known."""
    name = view.path("group")
    try:
        rebalances = (await Groups(view.cluster).rebalances(name)).rebalances
    except KafkaError as error:
        if error.code is not ErrorCode.UNSUPPORTED_VERSION:
            raise
        rebalances = None
    return await view.page(
        "group_rebalances.html", name=name, rebalances=rebalances, format_partitions=format_partitions
    )


async def _described(view: View, name: str) -> GroupDescription:
    """The group's description.

    :raises KafkaError: GROUP_ID_NOT_FOUND, GROUP_AUTHORIZATION_FAILED.
    """
    outcome = (await Groups(view.cluster).describe([name]))[name]
    if isinstance(outcome, KafkaError):
        raise outcome
    return outcome


async def _context(view: View, name: str, group: GroupDescription) -> dict[str, Any]:
    found = await lags_of(view.cluster, [name])
    view.access.lags.look(found)
    lags = found[name]
    samples = view.access.lags.of(name)
    may = operations_in(await Groups(view.cluster).authorized_operations(name))
    rows: Sequence[PartitionLag] = [] if isinstance(lags, KafkaError) else lags
    return {
        "group": group,
        "owners": {tp: member for member in group.members for tp in member.assignment},
        "lags": rows,
        "lag": total_lag(rows) if rows else None,
        "lags_error": sentence(lags) if isinstance(lags, KafkaError) else "",
        "plot": plot([(sample.time_ms, sample.total) for sample in samples]),
        "plot_is_lower_bound": any(sample.is_lower_bound for sample in samples),
        "topics": [(topic, topic) for topic in sorted({each.tp.topic for each in rows if each.committed})],
        "ways": WAYS,
        "may_reset": view.offers("READ", may),
        "may_delete": view.offers("DELETE", may),
    }


async def reset(view: View) -> Response:
    """Preview new offsets; commit them once confirmed."""
    name, form = view.path("group"), await view.form("offsets")
    if form.text("offsets"):
        offsets = offsets_in(form.text("offsets"))
        raise_errors((await Groups(view.cluster).commit_offsets(name, offsets)).values())
        return view.redirect_with_notice(_address(name), f"Offsets of group {name} are reset.")
    group = await _described(view, name)
    context = await _context(view, name, group)
    target = target_of(form, view.console.clock.wall_ms())
    topic = form.text("topic", _EVERY_TOPIC)
    values = {key: form.text(key) for key in ("topic", "way", "time", "offset", "shift")}
    committed = {
        each.tp: each.committed.offset
        for each in context["lags"]
        if each.committed and topic in ("", each.tp.topic)
    }
    if not committed:
        form.refuse("topic", "The group has no committed offsets here.")
    if target is None or form.errors:
        return await view.page("group.html", status=400, **context, values=values, errors=form.errors)
    offsets = await reset_offsets(view.cluster, committed, target)
    return await view.page(
        "group_reset.html",
        group=group,
        rows=[(tp, committed[tp], offsets[tp]) for tp in sorted(offsets)],
        way=WAYS[form.text("way")],
        offsets=written(offsets),
    )


def target_of(form: Form, now_ms: int) -> Target | None:
    """The target of the reset; None with the reason among the form's errors."""
    way = form.one_of("way", tuple(WAYS))
    if way == "time":
        try:
            return OffsetSpec.at(time_ms(form.text("time"), now_ms))
        except ValueError as error:
            form.refuse("time", str(error))
            return None
    if way == "offset":
        offset = form.whole("offset")
        if offset is None:
            form.refuse("offset", "Enter an offset.")
        return offset
    if way == "shift":
        by = form.whole("shift", minimum=-(2**62), maximum=2**62)
        if not by:
            form.refuse("shift", "Enter a number of records, such as 100 or -100.")
        return Shift(by) if by else None
    return EARLIEST if way == "earliest" else LATEST


def written(offsets: Mapping[TopicPartition, int]) -> str:
    """Offsets as a form field."""
    return json.dumps([[*tp, offset] for tp, offset in sorted(offsets.items())])


def offsets_in(text: str) -> dict[TopicPartition, int]:
    """Parse the result of `written`.

    :raises PageError: When it is malformed.
    """
    if len(text) > OFFSETS_CHARACTERS_MAX:
        raise wrong_form("Too many offsets for a form: use barnabas groups reset-offsets.")
    try:
        return {
            TopicPartition(encodable(topic), _number(partition, PARTITION_MAX)): _number(offset, OFFSET_MAX)
            for topic, partition, offset in json.loads(text)
        }
    except (ValueError, TypeError, RecursionError):
        raise wrong_form("The offsets changed after the preview; review them again.") from None


def _number(value: object, maximum: int) -> int:
    if not isinstance(value, int) or not 0 <= value <= maximum:
        message = f"{value!r} is not a whole number from 0 to {maximum}"
        raise ValueError(message)
    return value


async def clear(view: View) -> Response:
    """Delete the committed offsets of one topic."""
    name, topic = view.path("group"), (await view.form()).text("topic")
    groups = Groups(view.cluster)
    partitions = [tp for tp in await groups.offsets(name) if tp.topic == topic]
    if not partitions:
        raise wrong_form(f"The group has no committed offsets for topic '{topic}'.")
    raise_errors((await groups.delete_offsets(name, partitions)).values())
    return view.redirect_with_notice(
        _address(name), f"Offsets of group {name} for topic {topic} are deleted."
    )


async def delete(view: View) -> Response:
    """Delete the group, which must have no members."""
    name = view.path("group")
    outcome = (await Groups(view.cluster).delete([name]))[name]
    if outcome is not None and outcome.code is ErrorCode.NON_EMPTY_GROUP:
        hint = "Stop its members first; the group's page shows where they run."
        raise PageError(409, "The group is in use", f"Group {name} has members.", hint)
    raise_errors([outcome])
    return view.redirect_with_notice("/groups", f"Group {name} is deleted.")


def _address(name: str) -> str:
    return f"/groups/{segment(name)}"


ROUTES = (
    Route("/groups/reset/{group:path}", reset, "POST"),
    Route("/groups/forget/{group:path}", clear, "POST"),
    Route("/groups/delete/{group:path}", delete, "POST"),
    Route("/groups/lags/{group:path}", show_lags, is_poll=True),
    Route("/groups/rebalances/{group:path}", show_rebalances),
    Route("/groups/{group:path}", show),
)
