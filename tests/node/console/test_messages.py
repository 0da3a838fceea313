"""Browsing the records of topics."""

import re
from collections.abc import Iterator
from html import unescape

import pytest

from barnabas.testing import EmbeddedBroker
from support.consoles import Visitor, visiting

EVIL = "<script>alert('x')</script>"


@pytest.fixture
def person(kafka: EmbeddedBroker) -> Iterator[Visitor]:
    with visiting(kafka.bootstrap) as visitor:
        yield visitor


def values(text: str) -> list[str]:
    """Return the values in the rows of a page."""
    return [unescape(each) for each in re.findall(r'<summary><span class="mono">(.*?)</span>', text)]


def link(text: str, title: str) -> str:
    found = re.search(rf'href="([^"]+)">{title}</a>', text)
    return unescape(found[1]) if found else ""


def test_the_newest_records_come_first_with_a_link_to_older_ones(
    kafka: EmbeddedBroker, person: Visitor
) -> None:
    kafka.create_topic("t", partitions=3)
    for index in range(60):
        kafka.produce("t", b"%d" % index, partition=index % 3, timestamp_ms=1_000_000 + index)
    first = person.get("/topics/t/messages?limit=25").text
    assert values(first) == [str(index) for index in range(59, 34, -1)]
    second = person.get(link(first, "Older")).text
    assert values(second) == [str(index) for index in range(34, 9, -1)]
    third = person.get(link(second, "Older")).text
    assert values(third) == [str(index) for index in range(9, -1, -1)]
    assert not link(third, "Older")
    assert values(person.get(link(third, "Newer")).text) == [str(index) for index in range(10, 35)]


def test_browsing_from_the_oldest_record(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("t", partitions=2)
    for index in range(60):
        kafka.produce("t", b"%d" % index, partition=index % 2, timestamp_ms=1_000_000 + index)
    page = person.get("/topics/t/messages?from=beginning&limit=25").text
    assert values(page) == [str(index) for index in range(25)]
    page = person.get(link(page, "Newer")).text
    assert values(page) == [str(index) for index in range(25, 50)]
    page = person.get(link(page, "Newer")).text
    assert values(page) == [str(index) for index in range(50, 60)]
    assert not link(page, "Newer")


def test_records_from_an_offset_and_from_a_time(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("t")
    for index in range(10):
        kafka.produce("t", b"%d" % index, timestamp_ms=1_767_225_600_000 + index * 60_000)
    page = person.get("/topics/t/messages?from=offset&offset=7&partition=0").text
    assert values(page) == ["7", "8", "9"]
    page = person.get("/topics/t/messages?from=time&time=2026-01-01T00:08").text
    assert values(page) == ["8", "9"]
    assert values(person.get("/topics/t/messages?from=time&time=2027-01-01").text) == []
    page = person.get("/topics/t/messages?from=time&time=teatime").text
    assert "&#39;teatime&#39; is not a time" in page
    assert "2026-01-01 00:09:00.000" in person.get("/topics/t/messages").text


def test_records_are_found_by_key_value_and_header(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("t")
    for index in range(300):
        kafka.produce("t", b"value %d." % index, key=b"key %d." % index, headers=[("n", b"%d" % (index % 7))])
    assert values(person.get("/topics/t/messages?value=value+7.").text) == ["value 7."]
    assert values(person.get("/topics/t/messages?key=key+299").text) == ["value 299."]
    page = person.get("/topics/t/messages?header=n%3D3&limit=250").text
    assert values(page) == [f"value {index}." for index in range(299, -1, -1) if index % 7 == 3]
    page = person.get("/topics/t/messages?value=nothing").text
    assert "No record found among those searched." in page
    assert "Searched 300 of 300 offsets (100&nbsp;%)" in page
    assert "The search is complete." in page


def test_records_are_found_by_their_displayed_text(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("t")
    kafka.produce("t", rb'{"city":"M\u00fcnchen","zip":80331}', headers=[("Source", "Übersicht".encode())])
    kafka.produce("t", b"other")
    for query in ("value=m%C3%BCnchen", "value=%22zip%22%3A+80331", "header=source", "header=%3D%C3%BCber"):
        assert values(person.get(f"/topics/t/messages?{query}").text) == [
            '{ "city": "München", "zip": 80331 }'
        ]
    assert values(person.get("/topics/t/messages?value=m%C3%BCnchen&case=1").text) == []
    page = person.get("/topics/t/messages?value=M%C3%BCnchen&case=1").text
    assert len(values(page)) == 1
    assert "matching case" in page
    assert 'name="case" value="1" checked' in page
    assert values(person.get("/topics/t/messages?value=%5Cu00fc&as=text").text)


def test_a_page_shows_the_progress_of_a_search_and_a_link_continues_it(
    kafka: EmbeddedBroker, person: Visitor
) -> None:
    kafka.create_topic("t", partitions=2)
    for index in range(60):
        kafka.produce("t", b"%d" % index, partition=index % 2, timestamp_ms=1_000_000 + index, key=b"k")
    for tp, order, rest in (
        ("end", range(59, -1, -1), "newest first"),
        ("beginning", range(60), "oldest first"),
    ):
        page = person.get(f"/topics/t/messages?from={tp}&key=K&limit=25").text
        assert values(page) == [str(each) for each in order][:25]
        assert (
            f"Searched 25 of 60 offsets (41.7&nbsp;%) from where the search started, {rest}, ignoring case."
            in page
        )
        page = person.get(link(page, "Continue searching")).text
        assert values(page) == [str(each) for each in order][25:50]
        assert "Searched 50 of 60 offsets (83.3&nbsp;%)" in page
        page = person.get(link(page, "Continue searching")).text
        assert "Searched 60 of 60 offsets (100&nbsp;%)" in page
        assert not link(page, "Continue searching")


def test_a_search_stops_at_its_limit_and_continues_there(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("t")
    kafka.produce("t", b"needle")
    for _ in range(45):
        kafka.produce("t", b"v", headers=[("h", bytes(900_000))])
    pages, path = [], "/topics/t/messages?value=needle"
    while path:
        pages.append(person.get(path).text)
        path = link(pages[-1], "Continue searching")
    assert len(pages) > 1
    assert "at most 32.0 MiB of records" in pages[0]
    assert [values(page) for page in pages] == [*([[]] * (len(pages) - 1)), ["needle"]]
    assert "Searched 46 of 46 offsets (100&nbsp;%)" in pages[-1]


def test_a_byte_search_from_an_offset_counts_from_there(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("t")
    for _ in range(10):
        kafka.produce("t", b"\x00\xff")
    page = person.get("/topics/t/messages?from=offset&offset=4&value=00+FF").text
    assert len(values(page)) == 6
    assert "Searched 6 of 6 offsets" in page
    assert '<td class="number">4</td><td class="number">9</td>' in page


def test_the_form_reports_invalid_values(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("t")
    page = person.get("/topics/t/messages?partition=5&limit=7&as=xml").text
    assert "is not a whole number from 0 to 0" in page
    assert "&#39;7&#39; is not one of" in page
    assert "&#39;xml&#39; is not one of" in page


def test_records_of_any_bytes_do_not_break_the_page(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("t")
    evil = EVIL.encode()
    kafka.produce("t", evil, key=evil, headers=[(EVIL, evil), ("\x1b\u202e", b"\x00")])
    kafka.produce("t", b"\xff\x00", key=None)
    kafka.produce("t", None, key=b"gone")
    for way in ("auto", "json", "text", "hex"):
        page = person.get(f"/topics/t/messages?as={way}")
        assert page.status_code == 200
        assert "<script>alert" not in page.text
        assert "\x1b" not in page.text
        assert "\u202e" not in page.text
    assert "&lt;script&gt;alert" in person.get("/topics/t/messages").text


def test_only_some_of_many_headers_are_shown(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("t")
    kafka.produce("t", b"v", headers=[(f"h{number}", b"") for number in range(5_000)])
    page = person.get("/topics/t/messages").text
    assert "These are the first 100 of 5\u202f000." in page
    assert ("h99<" in page, "h100<" in page) == (True, False)


def test_headers_count_towards_the_bytes_of_a_page(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("t")
    for _ in range(40):
        kafka.produce("t", b"v", headers=[("h", bytes(900_000))])
    assert "The records are large" in person.get("/topics/t/messages").text


def test_large_values_are_truncated_and_can_be_downloaded(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("t")
    large = bytes(range(256)) * 2000
    kafka.produce("t", large, key=b"k")
    page = person.get("/topics/t/messages").text
    assert len(page) < 60_000
    path = link(page, "download")
    assert path.endswith("/key")
    answer = person.get("/topics/t/messages/0/0/value")
    assert answer.content == large
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert "attachment" in answer.headers["Content-Disposition"]
    for missing in ("0/1/value", "1/0/value", "0/0/header", "x/0/value"):
        assert person.get(f"/topics/t/messages/{missing}").status_code == 404


def test_read_committed_shows_committed_records_only(kafka: EmbeddedBroker, person: Visitor) -> None:
    kafka.create_topic("t")
    kafka.produce("t", b"plain")
    page = person.get("/topics/t/messages?committed=1").text
    assert values(page) == ["plain"]
    assert "checked" in page


def test_an_unknown_topic_is_reported(person: Visitor) -> None:
    page = person.get("/topics/none/messages")
    assert page.status_code == 404
    assert "UNKNOWN_TOPIC_OR_PARTITION" in page.text
