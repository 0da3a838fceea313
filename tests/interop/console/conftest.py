"""One browser for all tests of the console."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser

from support.browsers import chromium


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as running:
        yield running
