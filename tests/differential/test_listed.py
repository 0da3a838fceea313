"""The listed differences are all still there, and docs/differences.md says the same as the list."""

import pytest

from differential import listed
from differential.listed import LISTED, PAGE, Listed
from differential.world import World


@pytest.mark.parametrize("entry", LISTED, ids=[f"{entry.api}-{entry.path}" for entry in LISTED])
def test_a_listed_difference_is_still_there(world: World, entry: Listed) -> None:
    *before, (request, version) = entry.example
    for earlier, earlier_version in before:
        world.compare(earlier, earlier_version)
    differences = world.compare(request, version)
    assert any(entry.allows(each) for each in differences), f"take it off the list; met: {differences}"


def test_the_page_has_the_table_of_the_list() -> None:
    page = PAGE.read_text()
    assert page == listed.page_with_table(page), "python -m differential.listed (in tests/) makes it anew"
