"""The listed differences still exist, and docs/differences.md is generated from the list."""

from pathlib import Path

import pytest
from interop.brokers import Broker

from differential import listed
from differential.brokers import pair_of_brokers
from differential.listed import LISTED, PAGE, Listed
from differential.world import World

#: An intended difference does not go away with time.
VISIBLE_TIMEOUT_S = 1.0


def named(entry: Listed) -> str:
    return f"{entry.api}-{entry.path}"


def check(world: World, entry: Listed) -> None:
    *before, (request, version) = entry.example
    for earlier, earlier_version in before:
        world.compare(earlier, earlier_version)
    differences = world.compare(request, version, VISIBLE_TIMEOUT_S)
    assert any(entry.allows(each) for each in differences), f"take it off the list; met: {differences}"


@pytest.mark.parametrize("entry", [entry for entry in LISTED if not entry.is_costly], ids=named)
def test_a_listed_difference_still_exists(world: World, entry: Listed) -> None:
    check(world, entry)


@pytest.mark.parametrize("entry", [entry for entry in LISTED if entry.is_costly], ids=named)
def test_a_listed_difference_that_stops_a_broker_still_exists(tmp_path: Path, entry: Listed) -> None:
    with pair_of_brokers(tmp_path, end=Broker.kill) as pair:
        check(pair.new_world(), entry)


def test_the_page_has_the_current_table() -> None:
    page = PAGE.read_text()
    assert page == listed.page_with_table(page), "python -m differential.listed (in tests/) writes it"
