"""A person in a browser who takes a wrong turn gets a page; a program gets a problem."""

from __future__ import annotations


def test_a_wrong_address(plain_site):
    found = plain_site.get("/nothing-here", Accept="text/html,*/*")
    assert (found.status, found.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert b"there is nothing at this address" in found.body.lower()
    assert found.headers["content-security-policy"].startswith("default-src 'none'")
    assert plain_site.get("/nothing-here").headers["content-type"] == "application/problem+json"
    for path in ("/v1/nothing", "/v1/predict"):
        assert plain_site.get(path, Accept="text/html").json["detail"].endswith(" GET /v1 lists what there is.")
    api = plain_site.get("/v1/entities?limit=0", Accept="text/html")
    assert api.headers["content-type"] == "application/problem+json"


def test_refusals_at_the_door_are_pages_too(site):
    page = site(token="correct-horse-battery", allowed_hosts=("graph.example",))
    secret = {"Authorization": "Bearer correct-horse-battery"}
    for path, headers, status, words in (
        ("/", {}, 401, "A token is wanted"),
        ("/ask", {"Authorization": "Bearer wrong"}, 401, "The token is wrong"),
        ("/", {"Host": "elsewhere.example"}, 421, "have this name allowed by whoever runs it"),
        ("/ask?head=" + "x" * 9000, secret, 414, "This address is too long"),
    ):
        found = page.get(path, Accept="text/html,*/*", **headers)
        assert (found.status, found.headers["content-type"]) == (status, "text/html; charset=utf-8")
        text = found.body.decode()
        assert words in text
        assert page.service.served.graph.name not in text, "a stranger learns nothing of the graph"
        style = text.split('rel="stylesheet" href="')[1].split('"')[0]
        assert page.get(style, Host=headers.get("Host", "localhost")).status == 200
        assert found.headers["content-security-policy"].startswith("default-src 'none'")
        program = page.get(path, **headers)
        assert (program.status, program.headers["content-type"]) == (status, "application/problem+json")


def test_a_bug_is_a_page_too(site, monkeypatch):
    page = site()
    monkeypatch.setattr(page.service.served, "entities", lambda *_: 1 / 0)
    found = page.get("/?query=x", Accept="text/html")
    assert found.status == 500
    assert b"Something went wrong here" in found.body
    assert b"ZeroDivision" not in found.body


def test_no_message_of_the_pages_names_an_option_of_the_command_line():
    """Whoever looks at a page did not start the service. Commands to copy stand in boxes of their own."""
    import re

    from tests.conftest import ROOT

    source = ROOT / "src" / "hynt"
    files = [path for path in (source / "service" / "pages").rglob("*") if path.suffix in (".html", ".js")]
    files += [source / "service" / "served_run.py", source / "asking" / "present.py", source / "graph" / "changes.py"]
    for path in files:
        text = re.sub(r"(?s)<pre.*?</pre>|<!--.*?-->|var\(--[a-z-]+\)", "", path.read_text(encoding="utf-8"))
        found = [one for one in re.findall(r"(?<![\w-])--[a-z][a-z-]+", text) if one != "--seed"]
        assert not found, f"{path.name}: {found}"
