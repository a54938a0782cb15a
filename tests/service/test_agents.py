"""Agents ask by the protocol's own client: over HTTP at /mcp of a served run, and over standard input and output."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

import hynt
from tests.conftest import ROOT
from tests.service.loop_apart import run_apart

PAGE = (ROOT / "docs" / "how-to" / "agents.md").read_text(encoding="utf-8")

TOOLS = {
    "search_entities",
    "search_relations",
    "facts_of",
    "numbers_of",
    "predict",
    "explain",
    "trends",
    "propose",
    "doubtful_facts",
}


def asked(server: Any, work: Callable[[Client], Awaitable[Any]]) -> Any:
    async def whole() -> Any:
        async with Client(server) as client:
            return await work(client)

    return run_apart(asyncio.wait_for(whole(), 120))


def called(server: Any, *calls: tuple[str, dict[str, Any]]) -> list[Any]:
    async def work(client: Client) -> list[Any]:
        return [await client.call_tool(name, arguments) for name, arguments in calls]

    return asked(server, work)


def test_tools_say_what_they_take_and_that_they_only_read(service):
    listed = asked(f"{service.url}/mcp", lambda client: client.list_tools()).tools
    assert {tool.name for tool in listed} == TOOLS
    for tool in listed:
        assert len(tool.description) > 40
        assert tool.annotations.read_only_hint
        assert tool.output_schema
    # Every conversation pays for the list: a fifth of what the endpoints' own schemas would take.
    assert len(json.dumps([tool.model_dump(mode="json") for tool in listed])) < 25_000


def test_answers_are_those_of_the_service(service):
    found = called(
        f"{service.url}/mcp",
        ("search_entities", {"query": "springf", "limit": 1}),
        ("search_relations", {"query": "popul"}),
        ("facts_of", {"entity": "town/0", "limit": 2}),
        ("numbers_of", {"relation": "population"}),
        ("predict", {"head": "p1", "relation": "P19", "tail": "?", "top": 2}),
        ("predict", {"head": "p1", "relation": "height", "tail": "?"}),
        ("explain", {"head": "p1", "relation": "P19", "tail": "?"}),
        ("trends", {"heads": ["town/0"], "relation": "population", "points": 3}),
        ("propose", {"entity": "p1", "limit": 3}),
    )
    assert not any(one.is_error for one in found), found
    entities, relations, facts, numbers, ranked, number, explained, trend, proposed = (
        one.structured_content for one in found
    )
    assert [one["name"] for one in entities["entities"]] == ["Springfield"]
    assert [one["id"] for one in relations["relations"]] == ["P1082"]
    assert len(facts["facts"]) == 2
    assert facts["total"] == service.get("/v1/entities/town/0").json["total"]
    assert (numbers["count"], numbers["description"]) == (80, "people who live there")
    assert numbers["minimum"] == 1000.0
    same = service.predict(head="p1", relation="P19", tail="?", top=2).json
    assert [one["id"] for one in ranked["the_model_says"]] == [one["id"] for one in same["answers"]]
    assert ranked["the_graph_says"] == [{"text": "Shelbyville", "qualifiers": "", "splits": ["train"], "added": ""}]
    height = service.predict(head="p1", relation="height", tail="?").json
    assert number["the_model_says"][0]["value"] == height["answers"][0]["value"]
    assert number["the_model_says"][0]["low_text"] == height["answers"][0]["low_text"]
    assert "null" not in json.dumps([ranked, number]), "an agent pays for what it reads"
    assert explained["answer"] == same["answers"][0]["name"]
    assert {one["says"] for one in explained["influences"]} >= {"Person 1", "born in"}
    assert all(one["says"] for one in explained["influences"])
    assert [(one["relation"]["name"], one["share"]) for one in numbers["usual"]][:1] == [("date", 1.0)]
    assert len([row for row in trend["rows"] if row["value"] is None]) == 3
    assert proposed["entity"]["name"] == "Person 1"


def test_refusals_say_what_to_do(service):
    unknown, blank, audit, wide = called(
        f"{service.url}/mcp",
        ("predict", {"head": "p1", "relation": "born inn", "tail": "?"}),
        ("predict", {"head": "p1", "relation": "P19", "tail": "town/0"}),
        ("doubtful_facts", {}),
        ("facts_of", {"entity": "x" * 2000}),
    )
    assert all(one.is_error for one in (unknown, blank, audit, wide))
    assert "relation: Give a relation's id or name. The nearest are 'born in'" in unknown.content[0].text
    assert "?" in blank.content[0].text
    assert "hynt audit RUN" in audit.content[0].text
    assert "1000" in wide.content[0].text


def test_a_token_guards_agents_too(site):
    guarded = site(token="a" * 32)
    assert guarded.post("/mcp", {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).status == 401
    assert guarded.post("/mcp", {}, Host="elsewhere.example", Authorization=f"Bearer {'a' * 32}").status == 421
    assert guarded.post("/mcp", {"padding": "x" * 70_000}, Authorization=f"Bearer {'a' * 32}").status == 413


def test_an_agent_starts_the_command_itself(run, tmp_path):
    own = shutil.copytree(run, tmp_path / "run")
    started = StdioServerParameters(
        command=sys.executable, args=["-m", "hynt", "mcp", str(own)], env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    facts, answers = called(
        stdio_client(started),
        ("facts_of", {"entity": "Person 3"}),
        ("predict", {"head": "Person 3", "relation": "employer", "tail": "?", "top": 1}),
    )
    assert facts.structured_content["total"] == 5
    assert len(answers.structured_content["the_model_says"]) == 1


def test_what_the_page_shows_can_be_done(service, run, tmp_path):
    """The configuration that agents are given, and the program, with a run and a question of these tests."""
    configuration = json.loads(re.findall(r"```json\n(.*?)```", PAGE, flags=re.DOTALL)[0])
    ((_, given),) = configuration["mcpServers"].items()
    assert (given["command"], given["args"]) == ("hynt", ["mcp", "world"])
    own = shutil.copytree(run, tmp_path / "run")
    started = StdioServerParameters(command=sys.executable, args=["-m", "hynt", "mcp", str(own)])
    listed = asked(stdio_client(started), lambda client: client.list_tools()).tools
    told = {
        name for row in re.findall(r"^\| (`.*?) \|", PAGE, flags=re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    assert {tool.name for tool in listed} == TOOLS == told - {"add_facts", "remove_facts"}
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, flags=re.DOTALL)
    for written, ours in (("http://127.0.0.1:8000", service.url), ("Japan", "Person 1"), ("capital", "born in")):
        assert written in program
        program = program.replace(written, ours)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[{'name': '")


def test_serving_beside_a_program(run, tmp_path):
    own = shutil.copytree(run, tmp_path / "run")
    with pytest.raises(hynt.UsageError, match="no setting 'que'"):
        hynt.serve(own, port=0, wait=False, que=3)
    with hynt.serve(own, port=0, wait=False, queue=64) as service:
        assert hynt.Client(service.url).entity("Person 3")["total"] == 5
        assert service.url in repr(service)
    assert repr(service) == "<service, stopped>"
    with pytest.raises(hynt.UsageError):
        hynt.serve(tmp_path / "none", port=0, wait=False)
