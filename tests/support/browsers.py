"""Chromium tabs that record errors on pages and violations that axe-core finds, and keep screenshots."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from playwright.sync_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    Response,
    expect,
    sync_playwright,
)

ROOT = Path(__file__).resolve().parents[2]
CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
AXE = ROOT / "interop" / "node" / "node_modules" / "axe-core" / "axe.min.js"
SCREENSHOTS = ROOT / "docs" / "screenshots"
#: When set, screenshots are written; by default a test run leaves the tree unchanged.
KEEP = "KEEP_SCREENSHOTS"
SIZE = {"width": 1180, "height": 760}
TIMEOUT_MS = 15_000

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
_RULES = ("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
#: Report only violations: details of passed rules take most of the time.
_VIOLATIONS = """rules => axe.run(document, {runOnly: rules, resultTypes: ["violations"]})
    .then(found => found.violations)"""
#: Chromium's error for a request that is aborted because its page was left.
_LEFT = "net::ERR_ABORTED"


@contextmanager
def chromium() -> Iterator[Browser]:
    """Run a headless browser."""
    arguments = ["--disable-dev-shm-usage", "--disable-gpu", *(["--no-sandbox"] if os.geteuid() == 0 else [])]
    expect.set_options(timeout=TIMEOUT_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=arguments)
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A tab. `problems` holds script errors, violations of the content security policy and failed requests."""

    def __init__(self, context: BrowserContext, base: str) -> None:
        self.page: Page = context.new_page()
        self.page.set_default_timeout(TIMEOUT_MS)
        self.base = base
        self.problems: list[str] = []
        self._refusals: set[int] = set()
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.problems.append(f"script: {error}"))
        self.page.on("requestfailed", self._failed)
        self.page.on("response", self._answered)

    def expect(self, *statuses: int) -> None:
        """Accept these status codes of the server from now on."""
        self._refusals.update(statuses)

    def open(self, path: str) -> Page:
        self.page.goto(self.base + path)
        return self.page

    def violations(self, schemes: Sequence[Scheme] = SCHEMES) -> list[str]:
        """Return axe-core's violations in the light and dark schemes: rule, number of elements, the first of them."""
        found: list[str] = []
        self.page.evaluate(f"() => {{ {AXE.read_text(encoding='utf-8')} }}")
        for scheme in schemes:
            self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            violations: list[dict[str, Any]] = self.page.evaluate(_VIOLATIONS, list(_RULES))
            found += [f"{scheme}: {_policy_violation(each)}" for each in violations]
        self.page.emulate_media(color_scheme="light")
        return found

    def keep(self, name: str, scheme: Scheme = "light", *, whole: bool = False) -> None:
        """Save a screenshot under docs/screenshots, if screenshots are to be kept."""
        if os.environ.get(KEEP):
            self.page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            SCREENSHOTS.mkdir(exist_ok=True)
            self.page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=whole, animations="disabled")
            self.page.emulate_media(color_scheme="light")

    def close(self) -> None:
        self.page.close()

    def _console(self, message: ConsoleMessage) -> None:
        status = any(f"status of {each} " in message.text for each in self._refusals)
        if message.type in ("error", "warning") and not status:
            self.problems.append(f"console: {message.text}")

    def _failed(self, request: Request) -> None:
        if request.failure != _LEFT:
            self.problems.append(f"request: {request.method} {request.url}: {request.failure}")

    def _answered(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self._refusals:
            self.problems.append(f"answer: {response.request.method} {response.url}: {response.status}")


def _policy_violation(violation: dict[str, Any]) -> str:
    nodes = violation["nodes"]
    return f"{violation['id']} in {len(nodes)} places: {nodes[0]['html'][:200]}: {nodes[0]['failureSummary']}"
