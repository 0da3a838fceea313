"""Long lists in pages."""

import pytest

from barnabas.console.paging import ListQuery, paged

ROWS = [f"row {index:03}" for index in range(120)]
COLUMNS = {"name": lambda row: row}


def query_of(**query: str) -> ListQuery:
    return ListQuery.of("/rows", query, "name", extra=("kind",))


def part(**query: str) -> list[str]:
    return list(paged(ROWS, query_of(**query), COLUMNS, lambda row, text: text in row).rows)


def test_the_default_is_the_first_page() -> None:
    found = paged(ROWS, query_of(), COLUMNS, lambda row, text: True)
    assert (found.first, found.last, found.found_count, found.total_count, found.pages_count) == (
        1,
        50,
        120,
        120,
        3,
    )


def test_rows_are_filtered_sorted_and_sliced() -> None:
    assert part(q="ROW 01", sort="-name") == [f"row {index:03}" for index in range(19, 9, -1)]
    assert part(page="3", size="50") == ROWS[100:]


@pytest.mark.parametrize("page", ["0", "-1", "x", "", "99999999999999999999"])
def test_an_invalid_page_is_the_first(page: str) -> None:
    assert part(page=page) == ROWS[:50]


def test_a_page_after_the_last_is_the_last() -> None:
    assert part(page="77") == ROWS[100:]
    assert paged(ROWS, query_of(page="77"), COLUMNS, lambda row, text: True).page == 3


def test_invalid_sizes_and_columns_are_ignored() -> None:
    assert len(part(size="7")) == 50
    assert part(sort="nothing") == ROWS[:50]


def test_no_matches_are_an_empty_page() -> None:
    found = paged(ROWS, query_of(q="none"), COLUMNS, lambda row, text: text in row)
    assert (found.rows, found.first, found.last, found.pages_count) == ([], 0, 0, 1)


def test_links_keep_the_query() -> None:
    current = query_of(q="a&b", sort="-name", size="100", page="2", kind="x")
    assert current.link(page=3) == "/rows?q=a%26b&sort=-name&page=3&size=100&kind=x"
    assert current.sort_link("name") == "/rows?q=a%26b&sort=name&size=100&kind=x"
    assert query_of().sort_link("name") == "/rows?sort=-name"
    assert query_of().link() == "/rows?sort=name"
    assert [current.direction("name"), query_of().direction("name"), query_of().direction("x")] == [
        "descending",
        "ascending",
        "none",
    ]
