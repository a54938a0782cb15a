"""A person in a browser who takes a wrong turn gets a page; a program gets a problem."""

from __future__ import annotations

import html
import re

import pytest

from hynt.service.pages.answers import told_apart


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
        ("/", {}, 401, "A token is required"),
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


@pytest.mark.parametrize(
    "path, title, heading, listed",
    [
        ("/entity?id=Springfeld", "Nothing is known by that name", "Did you mean", ["Springfield", "Springfield"]),
        ("/entity?id=springfield", "Several are called that", "Which one", ["Springfield", "Springfield"]),
        ("/neighbourhood?id=Globx", "Nothing is known by that name", "Did you mean", ["Globex"]),
        ("/missing?id=Globx", "Nothing is known by that name", "Did you mean", ["Globex"]),
        ("/relation?id=employr", "No relation is called that", "Did you mean", ["employer"]),
    ],
)
def test_names_that_nobody_or_several_have_lead_on(service, path, title, heading, listed):
    main = _main_of(service, path)
    assert f"<h1>{title}</h1>" in main
    assert f"<h2>{heading}</h2>" in main
    wanted = path.partition("?")[0]
    chips = re.findall(r'<li><a href="([^"]+)">([^< ]+)', main)
    assert [name for _, name in chips] == listed
    for where, _ in chips:
        assert where.startswith(f"{wanted}?id=")
        assert service.get(html.unescape(where), Accept="text/html").status == 200
    assert "id or name" not in main, "the names to choose from say it"


@pytest.mark.parametrize("path", ["/entity?id=zqzqzq", "/relation?id=zqzqzq", "/ask?head=zqzqzq&relation=P26&tail=%3F"])
def test_a_name_like_no_other_is_told_without_a_command(service, path):
    main = _main_of(service, path)
    assert re.search(r"Give an? (entity|relation)'s id or name; none is spelled like this\.", html.unescape(main))
    assert "hynt " not in main


def test_a_shared_name_in_a_field_is_a_choice(service):
    main = html.unescape(_main_of(service, "/ask?head=Springfield&relation=spouse&tail=%3F"))
    assert "<strong>2 entities are called 'Springfield'.</strong>" in main
    assert "<p>Which one</p>" in main
    assert [re.search(r"head=([^&]+)", one)[1] for one in re.findall(r'<li><a href="([^"]+)"', main)] == [
        "town%2F0",
        "f0",
    ]


def test_all_names_that_are_unknown_are_told_at_once(service):
    main = html.unescape(_main_of(service, "/ask?head=Persn+2&relation=spose&tail=%3F&qualifier=plaice&value=Globex"))
    assert re.findall(r"<strong>(The graph has no .*?)</strong>", main) == [
        "The graph has no entity called 'Persn 2'.",
        "The graph has no relation called 'spose'.",
        "The graph has no relation called 'plaice'.",
    ]
    assert main.count('aria-invalid="true"') == 3
    for name, address in (
        ("Person 2", "head=p2&relation=spose"),
        ("spouse", "relation=P26"),
        ("place", "qualifier=place"),
    ):
        assert re.search(rf'<li><a href="/ask\?[^"]*{address}[^"]*">{name}', main)


def test_types_tell_namesakes_apart_and_ids_only_where_types_do_not():
    listed = [
        {"id": "c/1", "name": "Niger", "type": "country"},
        {"id": "r/1", "name": "Niger", "type": "body_of_water"},
        {"id": "t/1", "name": "Springfield", "type": "town"},
        {"id": "t/2", "name": "Springfield", "type": "town"},
        {"id": "t/3", "name": "Globex", "type": "firm"},
        {"id": "P1", "name": "in"},
        {"id": "P2", "name": "in"},
    ]
    assert [one["told"] for one in told_apart(listed)] == ["country", "body of water", "t/1", "t/2", "", "P1", "P2"]


def _main_of(service, path: str) -> str:
    return service.get(path, Accept="text/html").body.decode().split("<main")[1].split("</main>")[0]


def test_no_message_of_the_pages_names_an_option_of_the_command_line():
    """Whoever looks at a page did not start the service. Commands to copy stand in boxes of their own."""
    from tests.conftest import ROOT

    source = ROOT / "src" / "hynt"
    files = [path for path in (source / "service" / "pages").rglob("*") if path.suffix in (".html", ".js")]
    files += [source / "service" / "served_run.py", source / "asking" / "present.py", source / "graph" / "changes.py"]
    for path in files:
        text = re.sub(r"(?s)<pre.*?</pre>|<!--.*?-->|var\(--[a-z-]+\)", "", path.read_text(encoding="utf-8"))
        found = [one for one in re.findall(r"(?<![\w-])--[a-z][a-z-]+", text) if one != "--seed"]
        assert not found, f"{path.name}: {found}"
