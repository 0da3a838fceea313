"""Every page in Chromium, on a cluster with some of everything: nothing wrong, axe-core content, a picture kept."""

import pytest

from support.browsers import Watched
from support.sample_cluster import PAGES


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_sound_and_can_be_read_by_everybody(admin: Watched, name: str) -> None:
    page = admin.open(PAGES[name])
    assert page.locator("h1").count() == 1
    assert admin.violations() == []
    admin.keep(name)


def test_a_page_looks_well_in_the_dark(admin: Watched) -> None:
    for name in ("overview", "group", "audit", "search", "deleted-topics"):
        admin.open(PAGES[name])
        admin.keep(f"{name}-dark", "dark")


def test_an_error_is_a_page_like_any_other(admin: Watched) -> None:
    admin.expect(404)
    page = admin.open("/groups/none")
    assert page.locator("h1").inner_text() == "Not found"
    assert admin.violations() == []


def test_pages_are_used_by_keyboard_alone(admin: Watched) -> None:
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


def test_a_narrow_screen_is_not_wider_than_itself(admin: Watched) -> None:
    admin.page.set_viewport_size({"width": 390, "height": 800})
    pages = ("topic", "messages", "search", "topic-groups", "topic-acls", "topic-delete", "deleted-topics")
    for path in ("/", "/groups/billing", "/acls", "/audit", "/log-dirs", *(PAGES[name] for name in pages)):
        page = admin.open(path)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), path
