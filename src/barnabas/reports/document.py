"""A report as one HTML file that needs nothing else: words, tables, and plots drawn as SVG, light and dark. No IO.

Whatever text is given is escaped. Values are finite and not negative.
"""

import math
from collections.abc import Callable, Collection, Sequence
from html import escape
from typing import NamedTuple, TypeAlias

#: What a value reads as, on an axis and beside a mark.
Wording: TypeAlias = Callable[[float], str]

#: Colours of series in turn, light and dark; the first is for whatever has no series.
_COLOURS = (
    ("#2f6fb5", "#6ea8e5"),
    ("#d9822b", "#eda35c"),
    ("#3a8f5c", "#6cc08c"),
    ("#9a5bb0", "#c391d6"),
    ("#c2504f", "#e88a88"),
    ("#7a6a4f", "#b8a684"),
    ("#2d9aa0", "#63c6cb"),
    ("#8a8f98", "#a9b0ba"),
)
#: Colours of highlighted elements.
_MARKED = ("#b3261e", "#ff8a80")

_STYLE = """
:root { color-scheme: light dark; --ground: #ffffff; --ink: #1d2126; --faint: #5f6873; --line: #dfe3e8;
  LIGHT }
@media (prefers-color-scheme: dark) { :root { --ground: #14171b; --ink: #e6e9ed; --faint: #9aa4b0; --line: #323942;
  DARK } }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 24px 20px 48px; max-width: 860px; background: var(--ground); color: var(--ink);
  font: 15px/1.5 system-ui, "Segoe UI", Roboto, Helvetica, Arial, sans-serif }
h1 { font-size: 24px; margin: 0 } h2 { font-size: 18px; margin: 36px 0 4px }
p { margin: 6px 0 } .faint { color: var(--faint) }
figure { margin: 14px 0; overflow-x: auto } figcaption { font-weight: 600; margin-bottom: 4px }
svg { display: block; width: 100%; min-width: 560px; height: auto }
svg text { fill: var(--ink); font-size: 12px } svg text.faint { fill: var(--faint) } svg .axis { stroke: var(--line) }
svg .mark { fill: var(--marked) } svg .drawn { fill: none; stroke-width: 2 } svg .cell { stroke: var(--ground) }
.scroll { overflow-x: auto } table { border-collapse: collapse; margin: 8px 0; font-size: 14px }
th, td { text-align: left; padding: 4px 14px 4px 0; border-bottom: 1px solid var(--line); white-space: nowrap }
th { color: var(--faint); font-weight: 600 }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums }
pre { overflow-x: auto; padding: 10px 12px; border: 1px solid var(--line); border-radius: 6px; font-size: 13px }
SERIES
"""

_WIDTH = 780
_CHAR = 6.6  #: about the width of a letter of 12 pixels
_LABEL_CHARS_MAX = 34
_TICKS = 4
_COLUMN_WIDTH_MAX = 64


class Series(NamedTuple):
    """A value for each label of a plot."""

    name: str
    values: Sequence[float]


def count_text(value: float) -> str:
    """Format a count: 1234567 as "1.2 M"."""
    return _scaled(value, 1_000, ("", " k", " M", " G", " T"))


def bytes_text(value: float) -> str:
    """Format bytes: 1536 as "1.5 KiB"."""
    return _scaled(value, 1_024, (" B", " KiB", " MiB", " GiB", " TiB", " PiB"))


def percent_text(value: float) -> str:
    """Format a share: 0.254 as "25 %"."""
    return f"{value * 100:.0f} %" if value >= 0.1 or not value else f"{value * 100:.1f} %"


def _scaled(value: float, base: int, units: Sequence[str]) -> str:
    size = 0
    while value >= base * 0.9995 and size < len(units) - 1:
        value /= base
        size += 1
    short = f"{value:.0f}" if value >= 99.95 or value == int(value) else f"{value:.1f}"
    return f"{short}{units[size]}"


def page(title: str, subtitle: str, parts: Sequence[str]) -> str:
    """Return the whole document; `parts` are results of the functions below."""
    style = (
        _STYLE.replace("LIGHT", _variables(0))
        .replace("DARK", _variables(1))
        .replace("SERIES", _series_style())
    )
    head = (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title><style>{style}</style></head>"
    )
    words = f'<h1>{escape(title)}</h1><p class="faint">{escape(subtitle)}</p>'
    return "\n".join([head, "<body>", words, *parts, "</body></html>", ""])


def _variables(mode: int) -> str:
    named = [f"--s{number}: {pair[mode]};" for number, pair in enumerate(_COLOURS)]
    return " ".join([*named, f"--marked: {_MARKED[mode]};"])


def _series_style() -> str:
    numbers = range(len(_COLOURS))
    return "\n".join(f".s{n} {{ fill: var(--s{n}) }} .l{n} {{ stroke: var(--s{n}) }}" for n in numbers)


def heading(text: str) -> str:
    """Return the beginning of a section."""
    return f"<h2>{escape(text)}</h2>"


def paragraph(text: str, *, faint: bool = False) -> str:
    """Return a paragraph of escaped text."""
    return f'<p class="faint">{escape(text)}</p>' if faint else f"<p>{escape(text)}</p>"


def code(text: str) -> str:
    """Return preformatted text."""
    return f"<pre>{escape(text)}</pre>"


def table(columns: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return a table; columns of numbers, and of words that begin with a digit, are aligned to the right."""
    right = [bool(rows) and all(_is_number(row[index]) for row in rows) for index in range(len(columns))]

    def line(tag: str, cells: Sequence[object]) -> str:
        marks = [' class="number"' if column else "" for column in right]
        inner = [f"<{tag}{mark}>{escape(str(cell))}</{tag}>" for mark, cell in zip(marks, cells, strict=True)]
        return f"<tr>{''.join(inner)}</tr>"

    body = "\n".join(line("td", row) for row in rows)
    return f'<div class="scroll"><table><thead>{line("th", columns)}</thead><tbody>\n{body}</tbody></table></div>'


def _is_number(cell: object) -> bool:
    return isinstance(cell, int | float) or (isinstance(cell, str) and (cell == "" or cell[0].isdigit()))


def columns(
    title: str, labels: Sequence[str], series: Sequence[Series], wording: Wording = count_text
) -> str:
    """Return a stacked bar chart: one column for each label."""
    totals = [sum(one_series.values[index] for one_series in series) for index in range(len(labels))]
    frame = _Frame(labels, max(totals, default=0), series, wording)
    marks = []
    for index, label in enumerate(labels):
        base = 0.0
        for number, one_series in enumerate(series):
            value = one_series.values[index]
            if value > 0:
                width = min(frame.step * 0.76, _COLUMN_WIDTH_MAX)
                x = frame.left + (index + 0.5) * frame.step - width / 2
                name = f"{label}, {one_series.name}" if one_series.name else label
                box = (x, frame.y(base + value), width, frame.y(base) - frame.y(base + value))
                marks.append(_box(box, _series_class(number), f"{name}: {wording(value)}"))
                base += value
    return _figure(title, frame.height, [*frame.drawn(), *marks])


def lines(title: str, labels: Sequence[str], series: Sequence[Series], wording: Wording = count_text) -> str:
    """Return a line for each series, through its value at each label."""
    frame = _Frame(
        labels, max((max(one_series.values, default=0) for one_series in series), default=0), series, wording
    )
    marks = []
    for number, one_series in enumerate(series):
        at = [
            (frame.left + (index + 0.5) * frame.step, frame.y(value))
            for index, value in enumerate(one_series.values)
        ]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in at)
        marks.append(f'<polyline class="drawn l{number % len(_COLOURS)}" points="{path}"/>')
        for (x, y), label, value in zip(at, labels, one_series.values, strict=True):
            name = f"{label}, {one_series.name}" if one_series.name else label
            shown = escape(f"{name}: {wording(value)}")
            dot = f'<circle class="{_series_class(number)}" cx="{x:.1f}" cy="{y:.1f}" r="3">'
            marks.append(f"{dot}<title>{shown}</title></circle>")
    return _figure(title, frame.height, [*frame.drawn(), *marks])


def ranking(
    title: str,
    values: Sequence[tuple[str, float]],
    wording: Wording = count_text,
    *,
    marked: Collection[str] = (),
) -> str:
    """Return horizontal bars in this order, each with its label and value; those `marked` are highlighted."""
    named = [_shortened(label) for label, _ in values]
    texts = [wording(value) for _, value in values]
    left = max(map(len, named), default=0) * _CHAR + 12
    room = _WIDTH - left - max(map(len, texts), default=0) * _CHAR - 12
    top = max((value for _, value in values), default=0) or 1
    drawn = []
    for index, (label, value) in enumerate(values):
        y, width = 4 + index * 22, max(room * value / top, 1)
        kind = "mark" if label in marked else _series_class(0)
        drawn.append(_text(left - 8, y + 13, named[index], "end"))
        drawn.append(_box((left, y, width, 17), kind, f"{label}: {texts[index]}"))
        drawn.append(_text(left + width + 6, y + 13, texts[index], "start", faint=True))
    return _figure(title, 8 + 22 * len(values), drawn)


def grid(
    title: str,
    rows: Sequence[str],
    labels: Sequence[str],
    values: Sequence[Sequence[float]],
    wording: Wording = count_text,
) -> str:
    """Return a field for each row and label, the fuller the larger its value is."""
    left = max((len(_shortened(row)) for row in rows), default=0) * _CHAR + 12
    step = (_WIDTH - left) / max(len(labels), 1)
    top = max((max(line, default=0) for line in values), default=0) or 1
    drawn = []
    for index, (row, line) in enumerate(zip(rows, values, strict=True)):
        y = index * 20
        drawn.append(_text(left - 8, y + 14, _shortened(row), "end"))
        for tp, value in enumerate(line):
            box = (left + tp * step, y, step, 20)
            full = f' fill-opacity="{0.05 + 0.95 * value / top:.2f}"'
            drawn.append(
                _box(box, f"cell {_series_class(0)}", f"{row}, {labels[tp]}: {wording(value)}", full)
            )
    height = 20 * len(rows)
    drawn += _label_texts(labels, left, step, height + 16)
    return _figure(title, height + 22, drawn)


class _Frame:
    """Axes of a plot with values from the bottom to the top, and a legend where series have names."""

    height = 250

    def __init__(self, labels: Sequence[str], top: float, series: Sequence[Series], wording: Wording) -> None:
        self._labels = labels
        self._series = [one_series for one_series in series if one_series.name]
        self._ticks = _ticks(top, 1_024 if wording is bytes_text else 1_000)
        self._words = [wording(tick) for tick in self._ticks]
        self.left = max(map(len, self._words)) * _CHAR + 12
        self.step = (_WIDTH - self.left) / max(len(labels), 1)

    def y(self, value: float) -> float:
        """Return the position of a value, in pixels from the top."""
        above, below = 12, 22 + 20 * len(self._legend_lines())
        return self.height - below - (self.height - above - below) * value / self._ticks[-1]

    def drawn(self) -> list[str]:
        """Return the axes, grid lines, labels and legend, without the data."""
        elements = []
        for tick, words in zip(self._ticks, self._words, strict=True):
            y = self.y(tick)
            elements.append(
                f'<line class="axis" x1="{self.left:.1f}" x2="{_WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>'
            )
            elements.append(_text(self.left - 8, y + 4, words, "end", faint=True))
        elements += _label_texts(self._labels, self.left, self.step, self.y(0) + 17)
        y = self.y(0) + 38
        for line in self._legend_lines():
            for x, number in line:
                elements.append(
                    f'<rect class="{_series_class(number)}" x="{x:.1f}" y="{y - 10:.1f}" width="10" height="10"/>'
                )
                elements.append(_text(x + 15, y, _shortened(self._series[number].name), "start"))
            y += 20
        return elements

    def _legend_lines(self) -> list[list[tuple[float, int]]]:
        """Return the positions of the series in the legend, by line."""
        lines: list[list[tuple[float, int]]] = []
        x = float(_WIDTH)
        for number, one_series in enumerate(self._series):
            width = len(_shortened(one_series.name)) * _CHAR + 34
            if x + width > _WIDTH:
                lines.append([])
                x = self.left
            lines[-1].append((x, number))
            x += width
        return lines


def _ticks(top: float, base: int) -> list[float]:
    """Return round values from 0 to at least `top`."""
    if top <= 0:
        return [0.0, 1.0]
    unit = float(base) ** max(0, math.floor(math.log(top, base)))
    raw = top / unit / _TICKS
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(factor for factor in (1, 2, 2.5, 5, 10) if factor * power >= raw * 0.999) * power * unit
    return [step * number for number in range(math.ceil(top / step * 0.999) + 1)]


def _label_texts(labels: Sequence[str], left: float, step: float, y: float) -> list[str]:
    """Return as many labels as can be read."""
    if not labels:
        return []
    widest = max(map(len, labels)) * _CHAR + 10
    every = max(1, math.ceil(widest / step))
    texts, end = [], -math.inf
    for index in range(0, len(labels), every):
        half = len(labels[index]) * _CHAR / 2
        middle = min(left + (index + 0.5) * step, _WIDTH - half)
        if middle - half > end:
            texts.append(_text(middle, y, labels[index], "middle", faint=True))
            end = middle + half
    return texts


def _series_class(number: int) -> str:
    return f"s{number % len(_COLOURS)}"


def _shortened(text: str) -> str:
    """Shorten a long name in its middle, because the ends distinguish names."""
    if len(text) <= _LABEL_CHARS_MAX:
        return text
    half = (_LABEL_CHARS_MAX - 1) // 2
    return f"{text[:half]}…{text[-half:]}"


def _text(x: float, y: float, text: str, anchor: str, *, faint: bool = False) -> str:
    kind = ' class="faint"' if faint else ""
    return f'<text{kind} x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def _box(box: tuple[float, float, float, float], kind: str, label: str, more: str = "") -> str:
    x, y, width, height = box
    shape = f'x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
    return f'<rect class="{kind}" {shape}{more}><title>{escape(label)}</title></rect>'


def _figure(title: str, height: float, drawn: Sequence[str]) -> str:
    words = escape(title, quote=True)
    inner = "\n".join(drawn)
    return (
        f'<figure><figcaption>{words}</figcaption><svg viewBox="0 0 {_WIDTH} {height:.0f}" role="img" '
        f'aria-label="{words}">\n{inner}\n</svg></figure>'
    )
