"""Makes the pictures of the documentation again, each by the command that stands beside it in docs/start/gallery.md.

python tools/gallery.py RUN              # RUN: what `hynt demo --out RUN` leaves; needs Chromium for the pages
"""

from __future__ import annotations

import re
import shlex
import shutil
import sys
import tempfile
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"
IMAGES = DOCS / "images"
PAGE = DOCS / "start" / "gallery.md"
WIDTH, HEIGHT = 1120, 1000
FLAGS = ("--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run")
ASKED = (
    "/ask?head=Japan&relation=life+expectancy&tail=%3F&qualifier=point+in+time&value=2024&qualifier=sex&value=female"
)
PAGES = {
    "page-ask.png": ASKED,
    "page-trend.png": "/trends?head=Brazil&relation=total+fertility+rate",
    "page-entity.png": "/entity?id=country%2FJapan",
}


def commands() -> list[list[str]]:
    """Those of the page that write a picture or a report, without `hynt`."""
    lines = re.findall(r"^\$ hynt (.*--(?:out|picture) .*)$", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return [shlex.split(line) for line in lines if not line.startswith(("demo", "compare"))]


def draw(run: Path, out: Path) -> None:
    """Runs the commands, with the run in the place of `runs/world`."""
    from hynt.cli.application import run as invoke

    for command in commands():
        placed = [str(run) if word == "runs/world" else word for word in command]
        placed = [str(out / word) if Path(word).suffix in (".svg", ".html") else word for word in placed]
        if invoke(placed) != 0:
            raise SystemExit(f"failed: hynt {shlex.join(command)}")


def photograph(out: Path) -> None:
    """Pages of the run that comes with hynt, and the top of the report, as a browser shows them."""
    from playwright.sync_api import sync_playwright

    import hynt

    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as driver, hynt.serve("world", port=0, wait=False) as service:
        browser = driver.chromium.launch(executable_path=chromium, headless=True, args=list(FLAGS))
        window = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT})
        for name, address in PAGES.items():
            window.goto(service.url + address, wait_until="networkidle")
            window.screenshot(path=out / name)
        window.goto((out / "report.html").as_uri())
        window.screenshot(path=out / "report.png")
        browser.close()


def main() -> None:
    """Makes all of them, and puts them into the documentation when they are all there."""
    run = Path(sys.argv[1]).resolve()
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder)
        draw(run, out)
        photograph(out)
        for picture in sorted(out.iterdir()):
            if picture.suffix in (".svg", ".png"):
                shutil.copyfile(picture, IMAGES / picture.name)
                print(picture.name)


if __name__ == "__main__":
    main()
