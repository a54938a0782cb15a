"""A person in a browser who takes a wrong turn gets a page; a program gets a problem."""

from __future__ import annotations


def test_a_wrong_address(plain_site):
    found = plain_site.get("/nothing-here", Accept="text/html,*/*")
    assert (found.status, found.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert b"there is nothing at this address" in found.body.lower()
    assert found.headers["content-security-policy"].startswith("default-src 'none'")
    assert plain_site.get("/nothing-here").headers["content-type"] == "application/problem+json"
    api = plain_site.get("/v1/entities?limit=0", Accept="text/html")
    assert api.headers["content-type"] == "application/problem+json"
