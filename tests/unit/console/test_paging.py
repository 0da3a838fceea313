"""Long lists in pages."""

import pytest

from barnabas.console.paging import ListQuery, paged

ROWS = [f"row {index:03}" for index in range(120)]
COLUMNS = {"name": lambda row: row}


def query_of(**query: str) -> ListQuery:
    return ListQuery.of("/rows", query, "name", extra=("kind",))


def part(**query: str) -> list[str]:
    return list(paged(ROWS, query_of(**query), COLUMNS, lambda row, text: text in row).rows)


def test_the_first_page_without_any_wish() -> None:
    found = paged(ROWS, query_of(), COLUMNS, lambda row, text: True)
    assert (found.first, found.last, found.found_count, found.total_count, found.pages_count) == (
        1,
        50,
        120,
        120,
        3,
    )


def test_rows_are_searched_sorted_and_cut() -> None:
    assert part(q="ROW 01", sort="-name") == [f"row {index:03}" for index in range(19, 9, -1)]
    assert part(page="3", size="50") == ROWS[100:]


@pytest.mark.parametrize("page", ["0", "-1", "x", "", "99999999999999999999"])
def test_a_page_that_cannot_be_is_the_first(page: str) -> None:
    assert part(page=page) == ROWS[:50]


def test_a_page_behind_the_last_is_the_last() -> None:
    assert part(page="77") == ROWS[100:]
    assert paged(ROWS, query_of(page="77"), COLUMNS, lambda row, text: True).page == 3


def test_sizes_and_columns_that_are_not_offered_are_ignored() -> None:
    assert len(part(size="7")) == 50
    assert part(sort="nothing") == ROWS[:50]


def test_nothing_found_is_a_page_of_nothing() -> None:
    found = paged(ROWS, query_of(q="none"), COLUMNS, lambda row, text: text in row)
    assert (found.rows, found.first, found.last, found.pages_count) == ([], 0, 0, 1)


def test_links_keep_what_was_asked_for() -> None:
    asked = query_of(q="a&b", sort="-name", size="100", page="2", kind="x")
    assert asked.link(page=3) == "/rows?q=a%26b&sort=-name&page=3&size=100&kind=x"
    assert asked.sort_link("name") == "/rows?q=a%26b&sort=name&size=100&kind=x"
    assert query_of().sort_link("name") == "/rows?sort=-name"
    assert query_of().link() == "/rows?sort=name"
    assert [asked.direction("name"), query_of().direction("name"), query_of().direction("x")] == [
        "descending",
        "ascending",
        "none",
    ]
