"""A real browser for tests, watched: whatever it complains about or asks of the network is a failure."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import axe_playwright_python
from playwright.sync_api import Browser, ConsoleMessage, Page, Request

from tests.conftest import ROOT

SCREENSHOTS = ROOT / "build" / "screenshots"
"""Kept after the tests, outside of git, for people to look at."""

VIEWS = {"laptop": (1280, 800), "phone": (390, 844)}
SERIOUS = ("serious", "critical")
_AXE = Path(axe_playwright_python.__file__).parent / "axe.min.js"


@dataclass
class Watched:
    """A page, and everything it should not have said or asked for."""

    page: Page
    host: str | None  # the one host it may talk to; None: only files
    complaints: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _request(self, request: Request) -> None:
        parts = urlsplit(request.url)
        if parts.scheme not in ("file", "data", "blob") and parts.netloc != self.host:
            self.elsewhere.append(request.url)

    def check(self) -> None:
        """Nothing was complained about, and nobody else was asked."""
        assert self.complaints == []
        assert self.elsewhere == []

    def screenshot(self, name: str, *, full: bool = True) -> Path:
        """Kept for people to look at."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        path = SCREENSHOTS / f"{name}.png"
        self.page.screenshot(path=path, full_page=full)
        return path

    def check_accessibility(self) -> None:
        """axe-core finds no serious fault. It runs outside of the page's own policy, as an extension would."""
        found: list[dict[str, Any]] = self.page.evaluate(
            f"() => {{ {_AXE.read_text(encoding='utf-8')}; return axe.run(document, {{resultTypes: ['violations']}})"
            ".then(found => found.violations); }"
        )
        serious = [
            {"rule": one["id"], "help": one["help"], "where": [node["html"][:160] for node in one["nodes"][:3]]}
            for one in found
            if one["impact"] in SERIOUS
        ]
        assert serious == [], json.dumps(serious, indent=2)

    def check_fits(self) -> None:
        """The page itself does not scroll sideways: wide things scroll within themselves."""
        wide, window = self.page.evaluate("() => [document.documentElement.scrollWidth, window.innerWidth]")
        assert wide <= window, f"the page is {wide} pixels wide in a window of {window}"


def opened(browser: Browser, view: str, scheme: str, host: str | None = None) -> Watched:
    """A page in a window of its own."""
    width, height = VIEWS[view]
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,
        has_touch=view == "phone",  # type: ignore[arg-type]
        locale="en-GB",
        reduced_motion="reduce",
    )
    context.set_default_timeout(20_000)
    return Watched(context.new_page(), host)
