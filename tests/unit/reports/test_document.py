"""The HTML report: no external resources, escaped text, marks at their values, readable labels."""

import re
from itertools import pairwise
from xml.etree import ElementTree

import pytest

from barnabas.reports.document import (
    Series,
    bytes_text,
    code,
    columns,
    count_text,
    grid,
    heading,
    lines,
    page,
    paragraph,
    percent_text,
    ranking,
    table,
)

NASTY = "<script>alert('x')</script> & \"more\""
DAYS = [f"2026-01-{day:02d}" for day in range(1, 32)]


def plot(figure: str) -> ElementTree.Element:
    found = ElementTree.fromstring(figure).find("svg")
    assert found is not None
    return found


def attributes(element: ElementTree.Element, *names: str) -> list[float]:
    return [float(element.attrib[name]) for name in names]


def test_a_page_has_all_parts_without_external_resources() -> None:
    parts = [heading(NASTY), paragraph(NASTY), paragraph("quiet", faint=True), code(NASTY)]
    parts += [
        table((NASTY, "BYTES"), [(NASTY, 3)]),
        columns(NASTY, [NASTY], [Series(NASTY, [3])]),
        lines(NASTY, [NASTY], [Series(NASTY, [3])]),
        ranking(NASTY, [(NASTY, 3)]),
        grid(NASTY, [NASTY], [NASTY], [[3]]),
    ]
    document = page(NASTY, NASTY, parts)
    assert "<script" not in document
    assert re.findall(r"https?:|src=|href=|@import|url\(", document) == []
    assert document.count("alert(") >= len(parts)
    assert "prefers-color-scheme: dark" in document
    inner = document.partition("<body>")[2].partition("</body>")[0]
    ElementTree.fromstring(f"<body>{inner}</body>")  # well formed


def test_every_colour_has_a_light_and_a_dark_shade() -> None:
    style = page("", "", [])
    used = set(re.findall(r"var\((--[a-z0-9]+)\)", style))
    defined = re.findall(r"(--[a-z0-9]+):", style)
    assert {defined.count(name) for name in used} == {2}


def test_columns_are_stacked_to_the_height_of_their_sum() -> None:
    svg = plot(columns("bytes", ["a", "b"], [Series("x", [10, 0]), Series("y", [30, 20])]))
    marks = [each for each in svg.iter("rect") if each.find("title") is not None]
    titles = [each.findtext("title") for each in marks]
    assert titles == ["a, x: 10", "a, y: 30", "b, y: 20"]
    (_, low, low_height), (_, high, high_height), (_, _, other) = (
        attributes(each, "x", "y", "height") for each in marks
    )
    assert high + high_height == pytest.approx(low, abs=0.2)
    assert high_height == pytest.approx(3 * low_height, abs=0.2)
    assert other == pytest.approx(2 * low_height, abs=0.2)


def test_a_line_goes_through_its_values() -> None:
    svg = plot(lines("records", ["a", "b", "c"], [Series("", [0, 5, 10])]))
    heights = [attributes(each, "cy")[0] for each in svg.iter("circle")]
    assert heights[0] - heights[1] == pytest.approx(heights[1] - heights[2], abs=0.2)
    assert heights[0] > heights[2]


def test_the_longest_bar_is_the_largest_value_and_highlighted_ones_differ() -> None:
    svg = plot(ranking("partitions", [("a", 10), ("b", 5), ("c", 0)], marked=["b"]))
    bars = list(svg.iter("rect"))
    widths = [attributes(each, "width")[0] for each in bars]
    assert widths[0] == pytest.approx(2 * widths[1], abs=0.2)
    assert widths[2] == 1
    assert [each.attrib["class"] for each in bars] == ["s0", "mark", "s0"]


def test_the_largest_value_of_a_grid_is_full() -> None:
    svg = plot(grid("days", ["p0", "p1"], ["a", "b"], [[0, 1], [2, 4]]))
    fullness = [attributes(each, "fill-opacity")[0] for each in svg.iter("rect")]
    assert fullness == sorted(fullness)
    assert fullness[-1] == 1


@pytest.mark.parametrize(
    "figure",
    [
        columns(
            "c", DAYS, [Series(f"topic-{number:03d}", [number] * 31) for number in range(20)], bytes_text
        ),
        lines("l", DAYS, [Series("one", [2**40] * 31)], bytes_text),
        ranking("r", [("a-topic-with-a-name-" * 12, 2**50), ("b", 1)], bytes_text),
        grid("g", ["row-" * 60], DAYS, [[1] * 31]),
        columns("nothing", [], []),
        lines("nothing", [], []),
        ranking("nothing", []),
        grid("nothing", [], [], []),
    ],
)
def test_nothing_is_outside_a_plot_and_labels_do_not_touch(figure: str) -> None:
    svg = plot(figure)
    width, height = map(float, svg.attrib["viewBox"].split()[2:])
    spans: dict[float, list[tuple[float, float]]] = {}
    for text in svg.iter("text"):
        x, y = attributes(text, "x", "y")
        size = len(text.text or "") * 6.6
        start = x - {"start": 0, "middle": size / 2, "end": size}[text.attrib["text-anchor"]]
        assert start >= -1
        assert start + size <= width + 1
        assert 0 < y <= height
        spans.setdefault(y, []).append((start, start + size))
    for each in spans.values():
        ordered = sorted(each)
        assert all(one[1] <= other[0] for one, other in pairwise(ordered))
    for box in svg.iter("rect"):
        x, y, across, down = attributes(box, "x", "y", "width", "height")
        assert -0.1 <= x <= x + across <= width + 0.2
        assert -0.1 <= y <= y + down <= height + 0.2


def test_numbers_are_abbreviated() -> None:
    assert [count_text(each) for each in (0, 7, 0.25, 999, 1000, 1_234_567, 10**13)] == [
        *("0", "7", "0.2", "999", "1 k", "1.2 M", "10 T"),
    ]
    assert [bytes_text(each) for each in (0, 1023, 1024, 1536, 3 * 2**30)] == [
        *("0 B", "1023 B", "1 KiB", "1.5 KiB", "3 GiB"),
    ]
    assert [percent_text(each) for each in (0, 0.004, 0.25, 1)] == ["0 %", "0.4 %", "25 %", "100 %"]


def test_numbers_in_a_table_are_right_aligned() -> None:
    cells = list(ElementTree.fromstring(table(("NAME", "BYTES"), [("a", "3 MiB"), ("b", 7)])).iter("td"))
    assert [each.attrib.get("class") for each in cells] == [None, "number", None, "number"]
