"""The records of a topic: found by offset, time and text, shown as JSON, text or bytes."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import urlencode

from starlette.responses import Response

from barnabas.base.ids import TopicPartition
from barnabas.client.admin.offsets import ListedOffset, OffsetSpec
from barnabas.console.browse import (
    SCAN_BYTES,
    SCAN_MS,
    Browser,
    PartitionShare,
    RecordPage,
    cursor,
    parse_cursor,
    shares,
)
from barnabas.console.criteria import Criteria, header_way
from barnabas.console.forms import Form
from barnabas.console.page import Route
from barnabas.console.pages.topic import frame, topic_of
from barnabas.console.problems import not_found
from barnabas.console.records import SEARCHED_BYTES_MAX, WAYS, Shown, shown
from barnabas.console.scan import Scanner
from barnabas.console.topic_view import Reach, TopicView, reaches
from barnabas.console.view import View
from barnabas.registry.codecs.records import DecodedValue
from barnabas.wire.isolation import Isolation

START_CHOICES = ("end", "beginning", "offset", "time", "forward", "backward")
_BACKWARD = ("end", "backward")
LIMITS = ("25", "50", "100", "250")
_PARTS = ("key", "value")
#: Display formats of decoded records; the others show their bytes.
_DECODED_WAYS = ("auto", "json")
#: Partitions that one page reads at most; of a topic with more, choose one.
_PARTITIONS_MAX = 200
#: Headers of one record that a page shows at most.
_HEADERS_MAX = 100


class Question(NamedTuple):
    """The records that an address asks for."""

    partition: str  #: an index, or empty for all
    start: str  #: one of START_CHOICES
    offset: int
    time_text: str
    cursor: str
    began: str  #: the cursor at which a continued search began
    limit: int
    wanted: Criteria
    committed: bool

    @property
    def is_backward(self) -> bool:
        """Whether the newest records come first."""
        return self.start in _BACKWARD

    def link(self, path: str, start: str, at: Mapping[int, int], began: Mapping[int, int]) -> str:
        """The address of the page before or after; empty if there is none."""
        if not at:
            return ""
        goes_on = self.wanted and self.is_backward == (start in _BACKWARD)
        parts = {
            "partition": self.partition,
            "from": start,
            "at": cursor(at),
            "began": cursor(began) if goes_on else "",
            "limit": self.limit,
            "as": self.wanted.way,
            "key": self.wanted.key,
            "value": self.wanted.value,
            "header": self.wanted.header,
            "case": "1" if self.wanted.match_case else "",
            "committed": "1" if self.committed else "",
        }
        return f"{path}?{urlencode({name: value for name, value in parts.items() if value != ''})}"


class Looked(NamedTuple):
    """The records of a page, and the progress of the search by partition."""

    found: RecordPage
    began: Mapping[int, int]
    shares: Mapping[int, PartitionShare]
    unread: Sequence[int] = ()  #: partitions whose leader does not respond

    @property
    def searched_count(self) -> int:
        """Offsets searched since the search began."""
        return sum(each.searched_count for each in self.shares.values())

    @property
    def total_count(self) -> int:
        """Offsets to search in all."""
        return sum(each.total_count for each in self.shares.values())


_NOTHING = Looked(RecordPage([]), {}, {})


def question_of(form: Form, partitions_count: int) -> Question:
    """Parse a query; mistakes are in the form's errors."""
    partition = form.whole("partition", maximum=max(0, partitions_count - 1))
    return Question(
        partition="" if partition is None else str(partition),
        start=form.one_of("from", START_CHOICES),
        offset=form.whole("offset", default=0) or 0,
        time_text=form.text("time"),
        cursor=form.text("at"),
        began=form.text("began"),
        limit=int(form.one_of("limit", ("50", *LIMITS))),
        wanted=Criteria(
            key=form.text("key"),
            value=form.text("value"),
            header=form.text("header"),
            way=form.one_of("as", WAYS),
            match_case=form.flag("case"),
        ),
        committed=form.flag("committed"),
    )


async def show(view: View) -> Response:
    """Show the records that the address asks for."""
    topic = await topic_of(view)
    form = Form({name: [value] for name, value in view.query.items()})
    question = question_of(form, len(topic.partitions))
    asked = [tp for tp in topic.led if question.partition in ("", str(tp.partition))]
    if len(asked) > _PARTITIONS_MAX:
        form.refuse("partition", f"The topic has {len(asked)} partitions: choose one of them.")
        asked = []
    time_ms = _time_ms(form, question)
    looked = await _look(view, topic, asked, question, time_ms) if asked and not form.errors else _NOTHING
    head, found = await frame(view, topic), looked.found
    path = f"{head['topic_path']}/messages"
    return await view.page(
        "messages.html",
        **head,
        here=path,
        question=question,
        errors=form.errors,
        looked=looked,
        found=found,
        rows=[(record, _fields(record, question.wanted.way)) for record in found.records],
        newer=question.link(path, "forward", found.newer, looked.began),
        older=question.link(path, "backward", found.older, looked.began),
        wanted=question.wanted,
        searched_bytes_max=SEARCHED_BYTES_MAX,
        scan_ms=SCAN_MS,
        scan_bytes=SCAN_BYTES,
        limits=[(limit, limit) for limit in LIMITS],
    )


async def download(view: View) -> Response:
    """Download key or value of one record, byte for byte."""
    topic = await topic_of(view)
    form = Form({"partition": [view.path("partition")], "offset": [view.path("offset")]})
    partition, offset = form.whole("partition"), form.whole("offset")
    part = view.path("part")
    if partition is None or offset is None or part not in _PARTS:
        raise not_found()
    tp = TopicPartition(topic.name, partition)
    reach = (await reaches(view.admin, [tp] if tp in topic.led else [])).get(tp)
    record = None
    if reach is not None and reach.first <= offset < reach.end:
        record = await _browser(view, topic.name, Isolation.READ_UNCOMMITTED).one(partition, offset)
    if record is None:
        raise not_found(f"There is no record at offset {offset} of partition {partition}.")
    data = record.key if part == "key" else record.value
    name = f"{topic.name}-{partition}-{offset}-{part}.bin"
    headers = {"Content-Disposition": f'attachment; filename="{name}"'}
    return Response(data or b"", media_type="application/octet-stream", headers=headers)


def _browser(view: View, topic: str, isolation: Isolation, way: str = "") -> Browser:
    """:param way: The display format; with those of JSON, records are decoded with the schema registry."""
    decoder = view.console.decoder if way in _DECODED_WAYS else None
    decode = None if decoder is None else decoder.decode
    scanner = Scanner(view.cluster, view.console.search_turns, topic, isolation, decode)
    return Browser(scanner, view.access.clock)


async def _look(
    view: View, topic: TopicView, asked: list[TopicPartition], question: Question, time_ms: int
) -> Looked:
    isolation = Isolation.READ_COMMITTED if question.committed else Isolation.READ_UNCOMMITTED
    found_reach = await reaches(view.admin, asked, isolation)
    reach = {tp.partition: each for tp, each in found_reach.items()}
    browser = _browser(view, topic.name, isolation, question.wanted.way)
    at = parse_cursor(question.cursor, reach)
    if question.is_backward:
        began = {index: at.get(index, each.end) for index, each in reach.items()}
        found = await browser.backward(reach, began, question.wanted, question.limit)
    else:
        began = await _starts(view, reach, topic.name, question, at, time_ms)
        found = await browser.forward(reach, began, question.wanted, question.limit)
    began |= parse_cursor(question.began, reach)
    here = found.older if question.is_backward else found.newer
    read = shares(reach, began, here, backward=question.is_backward)
    wanted_partitions = [
        each.partition for each in topic.partitions if question.partition in ("", str(each.partition))
    ]
    return Looked(found, began, read, [each for each in wanted_partitions if each not in reach])


async def _starts(
    view: View,
    reach: Mapping[int, Reach],
    topic: str,
    question: Question,
    at: Mapping[int, int],
    time_ms: int,
) -> dict[int, int]:
    if question.start == "offset":
        return dict.fromkeys(reach, question.offset)
    if question.start == "forward":
        return {index: at.get(index, each.first) for index, each in reach.items()}
    if question.start == "beginning":
        return {index: each.first for index, each in reach.items()}
    specs = {TopicPartition(topic, index): OffsetSpec.at(time_ms) for index in reach}
    starts = {index: each.end for index, each in reach.items()}  # everything is older
    for tp, listed in (await view.admin.list_offsets(specs)).items():
        if isinstance(listed, ListedOffset) and listed.offset >= 0:
            starts[tp.partition] = listed.offset
    return starts


def _time_ms(form: Form, question: Question) -> int:
    """Milliseconds since the epoch; a time without a zone is in UTC, as times are shown."""
    if question.start != "time":
        return 0
    text = question.time_text
    if text.isascii() and text.isdigit() and len(text) < 19:
        return int(text)
    try:
        at = datetime.fromisoformat(text)
        at = at if at.tzinfo else at.replace(tzinfo=UTC)
        return max(0, round(at.timestamp() * 1000))
    except (ValueError, OverflowError):
        form.refuse("time", f"'{text[:40]}' is not a time, such as 2026-01-31T09:30 (UTC) or 1767225600000.")
        return 0


def _fields(record: Any, way: str) -> dict[str, Any]:
    return {
        "key": _field(record.key, way),
        "value": _field(record.value, way),
        "headers": [(name, shown(data, header_way(way))) for name, data in record.headers[:_HEADERS_MAX]],
        "headers_count": len(record.headers),
    }


def _field(data: bytes | None, way: str) -> Shown:
    field = shown(data, way)
    if not isinstance(data, DecodedValue):
        return field
    kind = f"{data.schema_type.label}, schema {data.schema_id}"
    return field._replace(kind=kind, size_bytes=data.encoded_bytes)


ROUTES = (
    Route("/topics/{name}/messages", show),
    Route("/topics/{name}/messages/{partition}/{offset}/{part}", download),
)
