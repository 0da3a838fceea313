"""Every page in Chromium on a sample cluster: no problems, no axe-core violations, a screenshot."""

import pytest

from support.browsers import Watched
from support.sample_cluster import PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_correct_and_accessible(admin: Watched, name: str) -> None:
    page = admin.open(PAGES[name])
    assert page.locator("h1").count() == 1
    assert admin.violations() == []
    admin.keep(name)


def test_a_page_has_a_dark_scheme(admin: Watched) -> None:
    for name in ("overview", "group", "audit", "search", "deleted-topics"):
        admin.open(PAGES[name])
        admin.keep(f"{name}-dark", "dark")


def test_an_error_page_is_correct_and_accessible(admin: Watched) -> None:
    admin.expect(404)
    page = admin.open("/groups/none")
    assert page.locator("h1").inner_text() == "Not found"
    assert admin.violations() == []


def test_pages_work_with_the_keyboard_alone(admin: Watched) -> None:
    page = admin.open("/groups")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the page"
    page.keyboard.press("Enter")
    for _ in range(30):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent").strip() == "billing":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/groups/billing")


def test_a_narrow_screen_needs_no_horizontal_scrolling(admin: Watched) -> None:
    admin.page.set_viewport_size({"width": 390, "height": 800})
    pages = ("topic", "messages", "search", "topic-groups", "topic-acls", "topic-delete", "deleted-topics")
    for path in ("/", "/groups/billing", "/acls", "/audit", "/log-dirs", *(PAGES[name] for name in pages)):
        page = admin.open(path)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
