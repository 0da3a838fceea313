"""The records of a topic: found by place, time and text, shown as JSON, text or bytes."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from barnabas.base.ids import TopicPartition
from barnabas.client.offsets import Isolation, ListedOffset, OffsetSpec
from barnabas.console.browse import Browser, Found, cursor, parse_cursor
from barnabas.console.forms import Form
from barnabas.console.page import Route
from barnabas.console.pages.topic import frame, topic_of
from barnabas.console.problems import not_found
from barnabas.console.records import WAYS, matches, shown
from barnabas.console.topic_view import Reach, TopicView, reaches
from barnabas.console.view import View

PLACES = ("end", "beginning", "offset", "time", "forward", "backward")
LIMITS = ("25", "50", "100", "250")
_PARTS = ("key", "value")
#: What may lie between the partitions of one page: of more, one is chosen.
_PARTITIONS_MAX = 200
#: Of one record a page shows no more headers.
_HEADERS_MAX = 100


class Question(NamedTuple):
    """Which records an address asks for."""

    partition: str  #: an index, or empty for all
    place: str  #: one of PLACES
    offset: int
    time_text: str
    cursor: str
    limit: int
    way: str
    key: str
    value: str
    header: str
    committed: bool

    @property
    def filters(self) -> bool:
        """Whether only some records are wanted."""
        return bool(self.key or self.value or self.header)

    def link(self, path: str, place: str, at: Mapping[int, int]) -> str:
        """The address of what comes before or after."""
        parts = {
            "partition": self.partition,
            "from": place,
            "at": cursor(at),
            "limit": self.limit,
            "as": self.way,
            "key": self.key,
            "value": self.value,
            "header": self.header,
            "committed": "1" if self.committed else "",
        }
        return f"{path}?{urlencode({name: value for name, value in parts.items() if value != ''})}"


def question_of(form: Form, partitions_count: int) -> Question:
    """What a query asks for; what cannot be is told in the form's errors."""
    partition = form.whole("partition", maximum=max(0, partitions_count - 1))
    return Question(
        partition="" if partition is None else str(partition),
        place=form.one_of("from", PLACES),
        offset=form.whole("offset", default=0) or 0,
        time_text=form.text("time"),
        cursor=form.text("at"),
        limit=int(form.one_of("limit", ("50", *LIMITS))),
        way=form.one_of("as", WAYS),
        key=form.text("key"),
        value=form.text("value"),
        header=form.text("header"),
        committed=form.flag("committed"),
    )


async def show(view: View) -> Response:
    """Records, by what the address asks for."""
    topic = await topic_of(view)
    form = Form({name: [value] for name, value in view.query.items()})
    question = question_of(form, len(topic.partitions))
    asked = [place for place in topic.led if question.partition in ("", str(place.partition))]
    if len(asked) > _PARTITIONS_MAX:
        form.refuse("partition", f"The topic has {len(asked)} partitions: choose one of them.")
        asked = []
    time_ms = _time_ms(form, question)
    found = Found([])
    if asked and not form.errors:
        found = await _look(view, topic, asked, question, time_ms)
    head = frame(view, topic)
    path = f"{head['topic_path']}/messages"
    return await view.page(
        "messages.html",
        **head,
        here=path,
        question=question,
        errors=form.errors,
        found=found,
        rows=[(record, _fields(record, question.way)) for record in found.records],
        newer=question.link(path, "forward", found.newer) if found.newer else "",
        older=question.link(path, "backward", found.older) if found.older else "",
        limits=[(limit, limit) for limit in LIMITS],
    )


async def download(view: View) -> Response:
    """Key or value of one record, byte for byte."""
    topic = await topic_of(view)
    form = Form({"partition": [view.path("partition")], "offset": [view.path("offset")]})
    partition, offset = form.whole("partition"), form.whole("offset")
    part = view.path("part")
    if partition is None or offset is None or part not in _PARTS:
        raise not_found()
    place = TopicPartition(topic.name, partition)
    reach = (await reaches(view.admin, [place] if place in topic.led else [])).get(place)
    record = None
    if reach is not None and reach.first <= offset < reach.end:
        browser = Browser(view.cluster, view.access.clock, topic.name, Isolation.READ_UNCOMMITTED)
        record = await browser.one(partition, offset)
    if record is None:
        raise not_found(f"There is no record at offset {offset} of partition {partition}.")
    data = record.key if part == "key" else record.value
    name = f"{topic.name}-{partition}-{offset}-{part}.bin"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(data or b"", media_type="application/octet-stream", headers=headers)


async def _look(
    view: View, topic: TopicView, asked: list[TopicPartition], question: Question, time_ms: int
) -> Found:
    reach = {place.partition: each for place, each in (await reaches(view.admin, asked)).items()}
    isolation = Isolation.READ_COMMITTED if question.committed else Isolation.READ_UNCOMMITTED
    browser = Browser(view.cluster, view.access.clock, topic.name, isolation)

    def wanted(record: Any) -> bool:
        return matches(
            record.key,
            record.value,
            record.headers,
            wanted_key=question.key,
            wanted_value=question.value,
            wanted_header=question.header,
        )

    chosen = wanted if question.filters else None
    at = parse_cursor(question.cursor, reach)
    if question.place in ("end", "backward"):
        ends = {index: at.get(index, each.end) for index, each in reach.items()}
        return await browser.backward(reach, ends, chosen, question.limit)
    starts = await _starts(view, reach, topic.name, question, at, time_ms)
    return await browser.forward(reach, starts, chosen, question.limit)


async def _starts(
    view: View,
    reach: Mapping[int, Reach],
    topic: str,
    question: Question,
    at: Mapping[int, int],
    time_ms: int,
) -> dict[int, int]:
    if question.place == "offset":
        return dict.fromkeys(reach, question.offset)
    if question.place == "forward":
        return {index: at.get(index, each.first) for index, each in reach.items()}
    if question.place == "beginning":
        return {index: each.first for index, each in reach.items()}
    specs = {TopicPartition(topic, index): OffsetSpec.at(time_ms) for index in reach}
    starts = {index: each.end for index, each in reach.items()}  # where all is older
    for place, listed in (await view.admin.list_offsets(specs)).items():
        if isinstance(listed, ListedOffset) and listed.offset >= 0:
            starts[place.partition] = listed.offset
    return starts


def _time_ms(form: Form, question: Question) -> int:
    """Milliseconds since the epoch; a time without a zone is in UTC, as times are shown."""
    if question.place != "time":
        return 0
    text = question.time_text
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    try:
        at = datetime.fromisoformat(text)
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return max(0, round(at.timestamp() * 1000))
    except (ValueError, OverflowError):
        form.refuse("time", f"'{text[:40]}' is no time, such as 2026-01-31T09:30 (UTC) or 1767225600000.")
        return 0


def _fields(record: Any, way: str) -> dict[str, Any]:
    return {
        "key": shown(record.key, way),
        "value": shown(record.value, way),
        "headers": [
            (name, shown(data, "auto" if way == "json" else way))
            for name, data in record.headers[:_HEADERS_MAX]
        ],
        "headers_count": len(record.headers),
    }


ROUTES = (
    Route("/topics/{name}/messages", show),
    Route("/topics/{name}/messages/{partition}/{offset}/{part}", download),
)
