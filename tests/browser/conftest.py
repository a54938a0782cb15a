"""Debian's Chromium, driven by Playwright. Where it is missing these tests are skipped with a word; in CI they fail."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import torch

from hynt.training.run import start, train
from tests.browser.hostile_names import hostile_graph
from tests.conftest import require
from tests.training.small_graph import tiny_settings

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    require("Chromium", CHROMIUM is not None, "apt install chromium")
    require("Playwright", find_spec("playwright") is not None, "pip install 'hynt[dev]'")
    require("axe-core", find_spec("axe_playwright_python") is not None, "pip install 'hynt[dev]'")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        found = driver.chromium.launch(executable_path=CHROMIUM, headless=True, args=list(FLAGS))
        yield found
        found.close()


@pytest.fixture
def open_page(browser) -> Iterator[Callable[..., object]]:
    """Opens watched pages; after the test each must have been silent and must have kept to itself."""
    from tests.browser.browsing import opened

    pages = []

    def open_one(view: str = "laptop", scheme: str = "light", host: str | None = None) -> object:
        pages.append(opened(browser, view, scheme, host))
        return pages[-1]

    yield open_one
    for one in pages:
        one.page.context.close()
    for one in pages:
        one.check()


@pytest.fixture(scope="session")
def hostile_run(tmp_path_factory) -> Path:
    """A run on a graph whose names are attacks; trained in seconds."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        folder = tmp_path_factory.mktemp("hostile") / "run"
        settings = tiny_settings(schedule={"epochs": 8, "period": 8})
        return train(start(hostile_graph(), settings, folder, torch.device("cpu")), torch.device("cpu")).path
    finally:
        torch.set_num_threads(before)


@pytest.fixture(scope="session")
def service(browser, hostile_run, tmp_path_factory):
    """One real service for all tests that only look and ask; its run has figures and an audit to show."""
    from tests.browser.service_pages import prepared_run, write_audit
    from tests.service.conftest import serving

    folder = tmp_path_factory.mktemp("served")
    run = prepared_run(hostile_run, folder)
    audit = write_audit(run, folder / "suspicious.parquet")
    with serving(run, folder / "log.txt", "--audit", str(audit)) as found:
        yield found


@pytest.fixture
def visit(service, open_page):
    """Opens an address of the service in a window of its own."""

    def go(path: str, view: str = "laptop", scheme: str = "light"):
        watched = open_page(view, scheme, urlsplit(service.url).netloc)
        watched.page.goto(service.url + path)
        return watched

    return go
