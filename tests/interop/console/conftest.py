"""For each file a browser, a sample cluster, and its console."""

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Browser

from barnabas.console.serving import ConsoleServer
from barnabas.testing import EmbeddedBroker
from support.browsers import SIZE, Watched, chromium
from support.consoles import running_console
from support.sample_cluster import USERS, sample_cluster

Visit = Callable[[str], Watched]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Closed after each file: while Playwright runs, its event loop runs, and other files need loops of their own."""
    with chromium() as running:
        yield running


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with sample_cluster(tmp_path_factory.mktemp("cluster")) as broker:
        yield broker


@pytest.fixture(scope="module")
def server(cluster: EmbeddedBroker) -> Iterator[ConsoleServer]:
    with running_console(cluster.bootstrap) as running:
        yield running


@pytest.fixture
def visit(browser: Browser, server: ConsoleServer) -> Iterator[Visit]:
    """Return a function that opens a tab of a logged-in user; any problem in one fails the test."""
    tabs: list[Watched] = []

    def log_in(user: str) -> Watched:
        tab = Watched(browser.new_context(viewport=SIZE), server.url)
        tabs.append(tab)
        page = tab.open("/login")
        page.get_by_label("User").fill(user)
        page.get_by_label("Password").fill(USERS[user])
        page.get_by_role("button", name="Log in").click()
        page.get_by_role("heading", name="Overview").wait_for()
        return tab

    yield log_in
    for tab in tabs:
        tab.page.context.close()
    assert [tab.problems for tab in tabs if tab.problems] == []


@pytest.fixture
def admin(visit: Visit) -> Watched:
    """Open the tab of a superuser."""
    return visit("admin")
