"""The documentation as a newcomer sees it: no page scrolls sideways, all code can be read, every picture is there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

CUT = """() => [...document.querySelectorAll("article pre code")]
    .filter(code => code.scrollWidth > code.clientWidth + 1)
    .map(code => [code.querySelector(".drawn") !== null, code.innerText.slice(0, 80)])"""
BROKEN = (
    """() => [...document.images].filter(image => !image.complete || !image.naturalWidth).map(image => image.src)"""
)

SPLIT = """() => [...document.querySelectorAll("article td > code, article code .option")]
    .filter(code => /^(--[-\\w]+|[\\w.]+)$/.test(code.innerText) && code.getClientRects().length > 1)
    .map(code => code.innerText)"""


@pytest.fixture(scope="module")
def site(browser, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--no-directory-urls"]
    subprocess.run(
        [*command, "--site-dir", str(folder)], cwd=ROOT, env=os.environ | {"NO_MKDOCS_2_WARNING": "1"}, check=True
    )
    return folder


@pytest.mark.parametrize("view, scheme", [("laptop", "light"), ("phone", "dark")])
def test_every_page_fits_its_window(site, browser, view, scheme):
    from tests.browser.browsing import opened

    watched = opened(browser, view, scheme)
    pages = sorted(path for path in site.rglob("*.html") if path.name != "404.html")
    assert len(pages) > 60
    cut = {}
    for path in pages:
        watched.page.goto(path.as_uri(), wait_until="load")
        watched.check_fits()
        assert watched.page.evaluate(BROKEN) == [], path
        assert watched.page.evaluate(SPLIT) == [], "a name in a table or an option is cut in two"
        cut[path.relative_to(site).as_posix()] = watched.page.evaluate(CUT)
    # Only what is drawn in columns scrolls, and on a laptop not even that.
    cut = {name: found for name, found in cut.items() if found}
    if view == "phone":
        assert all(is_drawn for found in cut.values() for is_drawn, _ in found), cut
    else:
        assert cut == {}
    watched.page.context.close()
