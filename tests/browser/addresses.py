"""Where things are on the pages of a served run, and what the address of an open page says."""

from __future__ import annotations

from urllib.parse import parse_qs, urlsplit

LINK = "/ask?head=Person+1&relation=P108&tail=%3F&qualifier=since&value=1991"
WEDDING = "/ask?head=Person+1&relation=spouse&tail=%3F&qualifier=year&value=1991&qualifier=place&value=Shelbyville"
HEIGHT = "/ask?head=Person+1&relation=height&tail=%3F&qualifier=year&value=2003"
TREND = "/trends?head=Person+1&relation=height"


def path_of(page) -> str:
    parts = urlsplit(page.url)
    return parts.path + (f"?{parts.query}" if parts.query else "")


def asked(page) -> dict[str, list[str]]:
    return parse_qs(urlsplit(page.url).query)


def wait_answered(page) -> None:
    page.wait_for_selector("#result[data-state=answered]:not([aria-busy])")


def follow(page, act) -> None:
    """Does what leads to another page, and waits until it is there."""
    with page.expect_navigation():
        act()
