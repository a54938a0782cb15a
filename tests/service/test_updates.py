"""A service whose graph changes while it is asked."""

from __future__ import annotations

import asyncio
import json
import re
import shlex
import subprocess
import time

import httpx2
import pytest
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

import hynt
from hynt.cli.application import run as invoke
from hynt.formats.jsonl import write_fact
from hynt.runs.journal import Journal
from hynt.service.http.problems import Fault
from hynt.service.inference.answering import Reply
from tests.conftest import ROOT
from tests.service.conftest import BEARER, TOKEN, serving
from tests.service.inference.fake_engine import FakeEngine
from tests.service.loop_apart import run_apart

PAGE = (ROOT / "docs" / "how-to" / "keeping-up-to-date.md").read_text(encoding="utf-8")


def facts(*given, **more):
    return {"facts": [{"head": head, "relation": relation, "tail": tail} for head, relation, tail in given], **more}


def send(site, method, value):
    return site.send(method, "/v1/facts", json.dumps(value), {"Content-Type": "application/json", **BEARER})


def ask(site, head):
    return site.post("/v1/predict", {"head": head, "relation": "born in", "tail": "?"}, **BEARER)


def counted(site, version, seconds=20.0):
    """The first answer that counts a version; until then there are answers from versions before."""
    until = time.monotonic() + seconds
    while True:
        answer = ask(site, "person 1")
        assert answer.status == 200, answer.body
        if int(answer.headers["hynt-version"]) >= version:
            return answer
        assert time.monotonic() < until


def test_facts_come_and_go_while_it_answers(updating):
    before = ask(updating, "person 1")
    assert before.headers["hynt-version"] == "0"
    assert ask(updating, "Zoe").status == 422
    told = send(updating, "POST", facts(("Zoe", "knows", "person 1"), ("Zoe", "height", 171), key="one"))
    assert told.status == 200, told.body
    assert told.json["version"] == 1
    assert (told.json["added"], told.json["new_entities"], told.json["changed"]) == (2, 1, True)
    assert updating.get("/v1/entities/Zoe", **BEARER).status == 200  # listed at once
    assert Journal(updating.run).latest() == 1
    counted(updating, 1)
    answer = ask(updating, "Zoe")
    assert answer.status == 200
    library = hynt.load(updating.run, "cpu").predict("Zoe", "born in", "?").to_dict()
    assert answer.json["answers"] == json.loads(json.dumps(library))["answers"]
    again = send(updating, "POST", facts(("Zoe", "knows", "person 2"), key="one"))
    assert (again.json["version"], again.json["changed"]) == (1, False)
    gone = send(updating, "DELETE", facts(("Zoe", "knows", "person 1")))
    assert (gone.json["version"], gone.json["removed"]) == (2, 1)
    assert counted(updating, 2).json != before.json
    assert Journal(updating.run).versions()[1].source == "the service"


@pytest.mark.parametrize(
    ("method", "given", "status", "pointers"),
    [
        ("POST", facts(("a", "knows", "b"), ("c", "height", "tall")), 422, ["#/facts/1"]),
        ("POST", facts(("person 0", "born in", "town 0")), 422, ["#/facts/0"]),
        ("DELETE", facts(("nobody", "knows", "b")), 422, ["#/facts/0"]),
        ("POST", {"facts": []}, 422, ["#/facts"]),
        ("POST", facts(*[("a", "knows", f"b{i}") for i in range(257)]), 422, ["#/facts"]),
        ("POST", {"facts": [{"head": "a", "relation": "knows", "tail": "b", "more": 1}]}, 422, ["#/facts/0/more"]),
    ],
)
def test_bad_input_changes_nothing(updating, method, given, status, pointers):
    version = Journal(updating.run).latest()
    refused = send(updating, method, given)
    assert (refused.status, refused.pointers) == (status, pointers)
    assert Journal(updating.run).latest() == version


def test_what_is_refused_while_the_model_reads_says_so(site):
    class Refusing(FakeEngine):
        async def exchange(self, kind, jobs):
            return [Reply(b"", (Fault("no Zoe.", "#/head", advice="Ask."),)) for _ in jobs]

    asked = site(Refusing())
    question = {"head": "Zoe", "relation": "born in", "tail": "?"}
    assert asked.post("/v1/predict", question).json["errors"][0]["advice"] == "Ask."
    asked.service.served.version = 1
    refused = asked.post("/v1/predict", question)
    assert (refused.status, refused.headers["hynt-version"]) == (422, "0")
    told = "Ask. The model answers from version 0 until it has read version 1: ask again then."
    assert refused.json["errors"][0]["advice"] == told


def test_known_facts_may_be_passed_over(updating):
    known = facts(("person 0", "born in", "town 0"), skip_known=True)
    total = len(hynt.read_graph(updating.run))
    told = send(updating, "POST", known).json
    assert (told["changed"], told["added"], told["facts"]) == (False, 0, total)


def test_another_writer_is_waited_for_by_the_client_and_heard_by_the_service(updating):
    with Journal(updating.run).writer():
        busy = send(updating, "POST", facts(("x", "knows", "y")))
    assert (busy.status, busy.headers["retry-after"]) == (503, "1")
    elsewhere = hynt.load(updating.run, "cpu").update([("Ada", "knows", "person 1")])
    told = send(updating, "POST", facts(("x", "knows", "Ada")))
    assert (told.json["version"], told.json["new_entities"]) == (elsewhere.version + 1, 1)
    counted(updating, elsewhere.version + 1)
    assert ask(updating, "Ada").status == 200


def test_what_another_process_writes_is_taken_over(updating):
    elsewhere = hynt.load(updating.run, "cpu").update([("Ines", "knows", "person 1")], source="a job at night")
    counted(updating, elsewhere.version)
    assert ask(updating, "Ines").status == 200
    (listed,) = updating.get("/v1/entities/Ines", **BEARER).json["facts"]
    assert listed["added"] == "a job at night"
    told = send(updating, "POST", facts(("Ines", "knows", "person 2")))
    assert told.json["version"] == elsewhere.version + 1


def test_entities_that_cannot_be_told_apart_are_named_everywhere(updating, capsys):
    told = send(updating, "POST", facts(("Mo", "knows", "person 9"), ("Jo", "knows", "person 9")))
    counted(updating, told.json["version"])
    question = {"head": "?", "relation": "knows", "tail": "person 9", "top": 50}
    notes = updating.post("/v1/predict", question, **BEARER).json["notes"]
    (alike,) = [note for note in notes if "apart by their facts: their order says nothing" in note]
    assert alike.endswith("until a fact is added that one of them lacks")
    assert "Mo" in alike
    assert "Jo" in alike
    page = updating.get("/ask?head=%3F&relation=knows&tail=person+9&top=50", **BEARER).body.decode()
    assert alike[1:] in page
    asked = ["--head", "?", "--relation", "knows", "--tail", "person 9", "--top", "50"]
    assert invoke(["predict", str(updating.run), *asked]) == 0
    assert alike in " ".join(capsys.readouterr().out.split())
    stale = [note for note in notes if "have changed since probabilities were fitted" in note]
    assert stale
    assert all(note.endswith("training on from this run fits them anew") for note in stale)


def test_who_may_not(updating, site, tmp_path, capsys):
    body = json.dumps(facts(("a", "knows", "b")))
    assert updating.send("POST", "/v1/facts", body, {"Content-Type": "application/json"}).status == 401
    refused = site().post("/v1/facts", facts(("a", "knows", "b")))
    assert refused.status == 403
    assert refused.json["detail"] == (
        "this service only reads its graph. Whoever runs it can start it so that it takes facts too."
    )
    vectors = site(accept_updates=True).post("/v1/facts", facts(("a", "knows", "b")))
    assert vectors.status == 409
    assert invoke(["serve", str(tmp_path), "--accept-updates", "--port", "0"]) == 2
    assert "whoever may change the graph has to show a token" in capsys.readouterr().err
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    both = ["--accept-updates", "--token-file", str(tmp_path / "token"), "--as-of", "0"]
    assert invoke(["serve", str(updating.run), *both, "--port", "0"]) == 2
    assert "the graph is served as it was" in capsys.readouterr().err


def test_a_run_is_served_as_it_was(inductive_run, tmp_path, capsys):
    run = hynt.load(inductive_run, "cpu").update([("Zoe", "knows", "person 1")], out=tmp_path / "run")
    run.update([("Zoe", "knows", "person 2"), ("Ada", "knows", "Zoe")])
    with serving(run.path, tmp_path / "log", "--as-of", "1") as site:
        assert site.get("/v1/entities/Zoe").json["total"] == 1
        assert site.get("/v1/entities/Ada").status == 404
        answer = site.post("/v1/predict", {"head": "Zoe", "relation": "born in", "tail": "?"})
        assert (answer.status, answer.headers["hynt-version"]) == (200, "1")
        library = hynt.load(run.path, "cpu", version=1).predict("Zoe", "born in", "?").to_dict()
        assert answer.json["answers"] == json.loads(json.dumps(library))["answers"]
        assert "1 version: 1 fact added" in site.get("/about").body.decode()
        run.update([("Ada", "knows", "person 1")])
        time.sleep(2.5)  # a service of the newest version looks every second
        assert site.post("/v1/predict", {"head": "Zoe", "relation": "born in", "tail": "?"}).json == answer.json
    assert invoke(["serve", str(run.path), "--as-of", "9", "--port", "0", "--json"]) == 2
    assert json.loads(capsys.readouterr().out)["error"]["where"] == "--as-of"


def test_the_curl_example_of_the_page(updating):
    (example,) = re.findall(r"```sh\n(curl.*?)```", PAGE, flags=re.DOTALL)
    command = example.replace("http://127.0.0.1:8000", updating.url).replace("$(cat token)", TOKEN)
    version = Journal(updating.run).latest()
    done = subprocess.run(shlex.split(command.replace("\\\n", " ")), capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["version"] == version + 1


def test_an_agent_with_the_token_writes_too(updating):
    fact = {"head": "Edith", "relation": "knows", "tail": "person 1"}

    async def work():
        async with (
            httpx2.AsyncClient(headers=BEARER) as web,
            Client(streamable_http_client(f"{updating.url}/mcp", http_client=web)) as agent,
        ):
            listed = {tool.name: tool for tool in (await agent.list_tools()).tools}
            calls = [("add_facts", "edith"), ("add_facts", "edith"), ("remove_facts", ""), ("remove_facts", "")]
            return listed, [await agent.call_tool(name, {"facts": [fact], "key": key}) for name, key in calls]

    listed, (added, again, removed, refused) = run_apart(asyncio.wait_for(work(), 60))
    assert not added.is_error, added.content
    assert not listed["add_facts"].annotations.read_only_hint
    assert listed["facts_of"].annotations.read_only_hint
    assert (added.structured_content["added"], added.structured_content["new_entities"]) == (1, 1)
    assert again.structured_content["changed"] is False
    assert removed.structured_content["removed"] == 1
    assert refused.is_error
    assert "Edith" in refused.content[0].text
    assert [one.source for one in Journal(updating.run).versions()][-2:] == ["an agent"] * 2


def test_numbers_and_dates_of_new_relations_are_written_as_in_json_lines(updating):
    given = {
        "head": "Vera",
        "relation": "shoe length",
        "tail": {"number": 27, "unit": "cm"},
        "qualifiers": [{"relation": "measured", "value": {"date": "2020-05"}}],
    }
    told = send(updating, "POST", {"facts": [given]})
    assert told.status == 200, told.body
    journal = Journal(updating.run)
    (fact,) = journal.change(journal.versions()[-1]).added
    assert (fact.tail.value, fact.tail.unit) == (pytest.approx(0.27), "m")
    assert (fact.qualifiers[0].value.unit, fact.qualifiers[0].value.literal) == ("date", "2020-05")
    for value, place in (
        ({"number": 3, "unit": "shoes"}, "#/facts/0"),
        ({"number": "3"}, "#/facts/0/tail/number"),
        ({"number": 3, "units": "m"}, "#/facts/0/tail/units"),
        ({"date": "soon"}, "#/facts/0/tail/date"),
        ({}, "#/facts/0/tail/number"),
        ([3], "#/facts/0/tail"),
    ):
        refused = send(updating, "POST", {"facts": [{"head": "Vera", "relation": "of a new kind", "tail": value}]})
        assert (refused.status, refused.pointers) == (422, [place]), refused.body
    assert journal.versions()[-1].version == told.json["version"]


def test_a_line_of_json_lines_is_a_fact_in_each_of_its_forms(updating):
    measured, seen = {"number": 0.27, "unit": "m", "literal": "27"}, {"date": "2020-05"}
    pairs = [["seen", seen], ["with", "person 1"]]
    for head, qualifiers in (
        ("Kim", pairs),
        ("Kai", [{"relation": name, "value": value} for name, value in pairs]),
        ("Kid", {"seen": seen, "with": ["person 1"]}),
    ):
        given = {"head": head, "relation": "foot length", "tail": measured, "qualifiers": qualifiers}
        assert send(updating, "POST", {"facts": [given]}).status == 200
    added = [fact for head in ("Kim", "Kai", "Kid") for fact in hynt.load(updating.run, "cpu").graph[head]]
    assert {(fact.tail, fact.qualifiers) for fact in added} == {(added[0].tail, added[0].qualifiers)}
    assert added[0].tail.literal == "27"
    exported = [json.loads(write_fact(fact)) for fact in added]  # the form that a refused removal is sent to
    assert send(updating, "DELETE", {"facts": exported}).json["removed"] == 3
    broken = {"head": "Kim", "relation": "knows", "tail": "Kai", "qualifiers": [["seen"]]}
    refused = send(updating, "POST", {"facts": [broken]})
    assert refused.pointers == ["#/facts/0/qualifiers/0"]
    assert refused.json["detail"] == "this must be an object of fields and values"


def test_a_quantity_of_a_relation_that_nobody_knows_is_a_number(updating):
    """As people type it on a page. A bare number may be a name, and a name that the graph has is that."""
    given = [
        {
            "head": "Vera",
            "relation": "arm length",
            "tail": " 1,050 mm",
            "qualifiers": [{"relation": "seen", "value": "2020-05"}],
        },
        {"head": "Vera", "relation": "lives in flat", "tail": "7"},
        {"head": "Vera", "relation": "likes", "tail": "7 Samurai"},
        {"head": "Vera", "relation": "was born around", "tail": "2020-19"},
    ]
    assert send(updating, "POST", {"facts": given}).status == 200
    journal = Journal(updating.run)
    arm, *names = journal.change(journal.versions()[-1]).added
    assert (arm.tail.value, arm.tail.unit) == (pytest.approx(1.05), "m")
    assert (arm.qualifiers[0].value.unit, arm.qualifiers[0].value.literal) == ("date", "2020-05")
    assert [one.tail for one in names] == ["7", "7 Samurai", "2020-19"]
    assert send(updating, "DELETE", {"facts": given}).status == 200, "as it was typed, it can be taken back"
    assert send(updating, "POST", {"facts": [{"head": "Vera", "relation": "arm length", "tail": "1 kg"}]}).status == 422


def test_the_page_about_the_run_counts_its_updates(updating):
    before = updating.get("/about", **BEARER).body.decode()
    count = Journal(updating.run).latest()
    send(updating, "POST", facts(("Otto", "knows", "person 1")))
    page = " ".join(re.sub(r"<[^>]+>", " ", updating.get("/about", **BEARER).body.decode()).split())
    found = re.search(rf"updates {count + 1} versions?: (\d+) facts? added, \d+ removed, (\d+\.\d) % of", page)
    assert found, page
    assert float(found[2]) >= 0.1 * int(found[1])  # of some hundred facts
    assert ("<dt>updates</dt>" in before) == (count > 0)


def test_every_answer_says_its_version(updating):
    told = send(updating, "POST", facts(("Nora", "knows", "person 1")))
    version = str(told.json["version"])
    for address in ("entities?query=Nora", "entities/Nora", "relations", "relations/height"):
        assert updating.get(f"/v1/{address}", **BEARER).headers["hynt-version"] == version
    counted(updating, int(version))
    for address in ("similar?entity=Nora", "proposals?entity=Nora"):
        assert updating.get(f"/v1/{address}", **BEARER).headers["hynt-version"] == version
    refused = ask(updating, "nobody at all")
    assert (refused.status, refused.headers["hynt-version"]) == (422, version)
