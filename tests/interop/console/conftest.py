"""For each file a browser, a cluster with some of everything, and its console."""

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
    """Gone with the file: while Playwright is there, its event loop runs, and other files need loops of their own."""
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
    """Tabs of people who are logged in; what goes wrong in one fails the test."""
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
    """The tab of somebody who may do everything."""
    return visit("admin")
