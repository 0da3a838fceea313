"""Long lists in pages: searched, sorted and cut on the server, with all parameters in the address."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from urllib.parse import urlencode

RowT = TypeVar("RowT")

SIZE_DEFAULT = 50
SIZES = (25, 50, 100, 250)


@dataclass(frozen=True)
class ListQuery:
    """The part of a list that an address asks for."""

    path: str
    search: str = ""
    sort: str = ""
    descending: bool = False
    page: int = 1
    size: int = SIZE_DEFAULT
    extra: tuple[tuple[str, str], ...] = ()  #: other parameters of the address, kept in links

    @classmethod
    def of(cls, path: str, query: Mapping[str, str], sort: str, extra: Iterable[str] = ()) -> "ListQuery":
        """Parse a query; invalid values become the default. `extra` names parameters that links keep."""
        asked = query.get("sort", "")
        size = _number(query.get("size", ""), SIZE_DEFAULT)
        return cls(
            path=path,
            search=query.get("q", "").strip()[:256],
            sort=asked.removeprefix("-") or sort,
            descending=asked.startswith("-"),
            page=max(1, _number(query.get("page", ""), 1)),
            size=size if size in SIZES else SIZE_DEFAULT,
            extra=tuple((name, query[name]) for name in extra if query.get(name)),
        )

    def link(self, **changes: str | int) -> str:
        """The address of another part of the same list: `page`, `sort` (with - for descending), `size`."""
        own: dict[str, str | int] = {
            "q": self.search,
            "sort": ("-" if self.descending else "") + self.sort,
            "page": 1,
            "size": self.size,
        }
        parts = {**own, **dict(self.extra), **changes}
        parameters = {name: value for name, value in parts.items() if value not in ("", None)}
        if parameters.get("page") == 1:
            del parameters["page"]
        if parameters.get("size") == SIZE_DEFAULT:
            del parameters["size"]
        return f"{self.path}?{urlencode(parameters)}" if parameters else self.path

    def sort_link(self, column: str) -> str:
        """The address of the list sorted by a column, in reverse if it is already sorted by it."""
        turned = self.sort == column and not self.descending
        return self.link(sort=f"-{column}" if turned else column)

    def direction(self, column: str) -> str:
        """The direction of that column's sorting, for `aria-sort`."""
        if self.sort != column:
            return "none"
        return "descending" if self.descending else "ascending"


@dataclass(frozen=True)
class Paged(Generic[RowT]):
    """The rows of one page, and the number of all rows."""

    rows: Sequence[RowT]
    query: ListQuery
    found_count: int
    total_count: int

    @property
    def pages_count(self) -> int:
        """Number of pages, at least one."""
        return max(1, -(-self.found_count // self.query.size))

    @property
    def page(self) -> int:
        """The displayed page: the last one if the number is too high."""
        return min(self.query.page, self.pages_count)

    @property
    def first(self) -> int:
        """Number of the first row, from 1; 0 if there is none."""
        return (self.page - 1) * self.query.size + 1 if self.found_count else 0

    @property
    def last(self) -> int:
        """Number of the last row."""
        return min(self.page * self.query.size, self.found_count)


def paged(
    rows: Iterable[RowT],
    query: ListQuery,
    columns: Mapping[str, Callable[[RowT], Any]],
    matches: Callable[[RowT, str], bool],
) -> Paged[RowT]:
    """The requested part of `rows`.

    `columns` returns the sort keys; `matches` is called with a lower-case text.
    """
    everything = list(rows)
    wanted = query.search.lower()
    found = [row for row in everything if matches(row, wanted)] if wanted else everything
    key = columns.get(query.sort)
    if key is not None:
        found = sorted(found, key=key, reverse=query.descending)
    page = min(query.page, max(1, -(-len(found) // query.size)))
    begin = (page - 1) * query.size
    return Paged(found[begin : begin + query.size], query, len(found), len(everything))


def _number(text: str, default: int) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else default
