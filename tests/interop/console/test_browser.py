"""The tests of the console rely on this: the browser reports every problem of a page."""

from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import Browser

from support.browsers import Watched

_SOUND = """<!doctype html><html lang="en"><head><title>Sound</title><link rel="icon" href="data:,"></head>
<body><main><h1>Sound</h1>{}</main></body></html>"""
_PAGES = {
    "/sound": "<p>All is well.</p>",
    "/inline": "<p>A script of its own.</p><script>document.title = 'x'</script>",
    "/broken": "<p>A picture that is not there.</p><img src='/none.png' alt='none'>",
    "/pale": "<p style='color: #ccc'>Hardly to be read.</p>",
    "/unlabelled": "<input type='text'>",
}


class _Pages(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = _PAGES.get(self.path)
        self.send_response(200 if body else 404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Security-Policy", "script-src 'self'")
        self.end_headers()
        self.wfile.write(_SOUND.format(body or "").encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), _Pages) as serving:
        thread = Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


@pytest.fixture
def tab(browser: Browser, server: str) -> Iterator[Watched]:
    context = browser.new_context()
    yield Watched(context, server)
    context.close()


def test_a_correct_page_has_no_problems(tab: Watched) -> None:
    tab.open("/sound")
    assert (tab.problems, tab.violations(), tab.problems) == ([], [], [])


def test_a_script_forbidden_by_the_security_policy_is_reported(tab: Watched) -> None:
    tab.open("/inline")
    assert "Content Security Policy" in tab.problems[0]


def test_a_failed_request_is_reported_unless_it_is_expected(tab: Watched) -> None:
    tab.open("/broken")
    assert any("/none.png: 404" in each for each in tab.problems)
    tab.problems.clear()
    tab.expect(404)
    tab.open("/broken")
    assert tab.problems == []


def test_unreadable_or_unlabelled_elements_are_reported(tab: Watched) -> None:
    tab.open("/pale")
    assert any(each.startswith("light: color-contrast") for each in tab.violations())
    tab.open("/unlabelled")
    assert any(each.startswith("dark: label") for each in tab.violations())
