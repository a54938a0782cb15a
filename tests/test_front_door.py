"""The front door: every public name has an example that runs, the reference is made of them, and what a served run
answers, a loaded one answers by the same words.
"""

from __future__ import annotations

import doctest
import inspect
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import hynt
from hynt.front.run import Run
from hynt.service.client import Client
from tests.conftest import ROOT
from tests.small_world import DUMP, small_world, small_world_address, small_world_run  # noqa: F401 - fixtures
from tools import api_reference

PUBLIC = [name for name in hynt.__all__ if name != "__version__"]
CLASSES = ("Run", "KnowledgeGraph", "Answers")
ASKING = [name for name, _ in api_reference.members(Client) if name != "is_ready"]


def examples() -> list[tuple[str, object]]:
    """Every public name, and all that the main classes offer."""
    found = [(name, getattr(hynt, name)) for name in PUBLIC]
    for name in CLASSES:
        found += [(f"{name}.{member}", one) for member, one in api_reference.members(getattr(hynt, name), methods=True)]
    return found


@pytest.mark.parametrize("name, thing", examples(), ids=[name for name, _ in examples()])
def test_every_public_name_has_an_example_that_runs(name, thing, request, tmp_path, monkeypatch):
    text = inspect.getdoc(thing) or ""
    parsed = doctest.DocTestParser().get_doctest(text, {"hynt": hynt}, name, None, None)
    assert parsed.examples, f"{name} has no example in its docstring"
    monkeypatch.chdir(tmp_path)
    wanted = {word for word in ("graph", "run", "address") if word in text}
    if wanted:
        parsed.globs["graph"] = request.getfixturevalue("small_world")
    if wanted & {"run", "address"} or '"runs/world"' in text:
        shutil.copytree(request.getfixturevalue("small_world_run"), tmp_path / "runs" / "world")
        parsed.globs["run"] = hynt.load("runs/world", "cpu")
    if "inductive" in text:
        people = shutil.copytree(request.getfixturevalue("inductive_run"), tmp_path / "runs" / "people")
        parsed.globs["inductive"] = hynt.load(people, "cpu")
    if "address" in wanted:
        parsed.globs["address"] = request.getfixturevalue("small_world_address")
    (tmp_path / "dump.json").write_text(DUMP, encoding="utf-8")
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(parsed, out=told.append)
    assert not runner.failures, "".join(told)


def test_the_first_program_runs(small_world, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("hynt.runs.journal.load_graph", lambda source: small_world)  # a smaller one, for the time
    text = (ROOT / "docs" / "start" / "python.md").read_text(encoding="utf-8")
    blocks = re.findall(r"```pycon\n(.*?)```", text, flags=re.DOTALL)
    parsed = doctest.DocTestParser().get_doctest("\n".join(blocks), {}, "python.md", None, None)
    told: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS)
    runner.run(parsed, out=told.append)
    assert not runner.failures, "".join(told)


def test_dir_shows_public_names_alone():
    done = subprocess.run(
        [sys.executable, "-c", "import hynt; hynt.load_graph('world'); print(*dir(hynt))"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == sorted(hynt.__all__)


@pytest.mark.parametrize("name", ASKING)
def test_a_client_is_asked_as_a_run_is(name):
    assert inspect.signature(getattr(Client, name)) == inspect.signature(getattr(Run, name))


def test_a_question_by_its_parts_or_whole(small_world_run):  # noqa: F811
    run = hynt.load(small_world_run, "cpu")
    pairs = [("point in time", 2024), ("sex", "female")]
    whole = run.predict(("Japan", "life expectancy", "?", pairs))
    assert run.predict("Japan", "life expectancy", "?", pairs) == whole
    assert run.predict("Japan", "life expectancy", "?", dict(pairs)) == whole
    assert run.predict("Japan", "life expectancy", "?", qualifiers=dict(pairs)) == whole
    assert run.predict(head="Japan", relation="life expectancy", tail="?", qualifiers=pairs) == whole
    assert (
        run.predict({"head": "Japan", "relation": "life expectancy", "tail": "?", "qualifiers": dict(pairs)}) == whole
    )
    for twice in ({"head": "Japan"}, {"relation": "capital"}, {"qualifiers": pairs}):
        with pytest.raises(hynt.UsageError, match="the question was given twice"):
            run.predict(("Japan", "capital", "?"), **twice)


def test_a_run_without_a_place_goes_with_its_object(small_world, tmp_path):  # noqa: F811
    run = hynt.train(small_world, "frequency")
    folder = run.path
    assert folder.is_dir()
    assert "in a temporary folder" in repr(run)
    kept = run.save(tmp_path / "kept")
    answers = run.predict("Japan", "capital", "?")
    del run
    assert not folder.exists()
    assert kept.predict("Japan", "capital", "?") == answers
    with pytest.raises(hynt.UsageError, match="exists already"):
        kept.save(tmp_path / "kept")


def test_settings_are_given_by_name(small_world, tmp_path):  # noqa: F811
    given = {"schedule": {"epochs": 2, "period": 2}, "log_relations": ("population",), "model.margin": 2.0}
    run = hynt.train(small_world, "transea", out=tmp_path / "run", batch_size=256, seed=3, **given)
    settings = run.settings
    assert (settings.batch_size, settings.seed, settings.schedule.epochs) == (256, 3, 2)
    assert settings.log_relations == ("population",)
    assert settings.model.margin == 2.0
    with pytest.raises(hynt.UsageError, match="unknown setting") as refused:
        hynt.train(small_world, "transea", batch_sise=256)
    assert refused.value.where == "batch_sise"
    again = hynt.train(small_world, "transea", out=tmp_path / "run", resume=True, batch_size=256)
    assert again.path == run.path
    with pytest.raises(hynt.UsageError, match="other settings"):
        hynt.train(small_world, "transea", out=tmp_path / "run", resume=True, batch_size=128)


def test_tables_go_through_arrows_door(small_world_run):  # noqa: F811
    import polars
    import pyarrow as pa

    run = hynt.load(small_world_run, "cpu")
    question = ("Japan", "life expectancy", "?", {"point in time": 2024, "sex": "female"})
    tables = [
        run.graph,
        run.graph["Japan"],
        run.predict(question),
        run.predict("Japan", "capital", "?"),
        run.explain(question),
        run.trends("Japan", "life expectancy", points=3, qualifiers={"sex": "female"}),
        run.evaluate("valid", tasks="link"),
        run.complete([question]),
        run.propose(budget=2),
    ]
    for table in tables:
        arrow = pa.table(table)
        assert arrow.equals(table.to_arrow())
        assert table.to_pandas().shape == arrow.shape
        assert table.to_polars().shape == arrow.shape
        assert polars.DataFrame(table).shape == arrow.shape


def test_what_notebooks_show_has_no_script_and_its_own_colours(small_world_run, tmp_path):  # noqa: F811
    run = hynt.load(small_world_run, "cpu")
    question = ("Japan", "life expectancy", "?", {"point in time": 2024, "sex": "female"})
    shown = [
        run,
        run.graph,
        run.graph["Japan"],
        run.predict(question),
        run.predict("Japan", "capital", "?"),
        run.explain(question),
        run.explain("Japan", "capital", "?"),
        run.trends("Japan", "life expectancy", points=3, qualifiers={"sex": "female"}),
        run.evaluate("valid", intervals=True, breakdown=["position"]),
        run.calibrate(),
        run.complete([question]),
        run.propose(budget=2),
    ]
    for one in shown:
        page = one._repr_html_()
        assert "<script" not in page
        assert "http" not in page
        assert not re.search(r"#[0-9a-f]{3,6}\b|rgb\(|:\s*(black|white)\b", page), "colours are the page's own"
        assert "0x" not in repr(one), f"{type(one).__name__} says nothing"


def test_names_in_the_data_cannot_break_a_notebook():
    graph = hynt.graph_from_facts([("<script>alert(1)</script>", "knows", "<img src=x onerror=alert(2)>")])
    for page in (graph._repr_html_(), graph["<script>alert(1)</script>"]._repr_html_()):
        assert "<script>" not in page
        assert "<img" not in page


def test_progress_is_shown_in_a_notebook(monkeypatch, small_world, capsys):  # noqa: F811
    kernel = type(sys)("IPython")
    kernel.get_ipython = lambda: type("ZMQInteractiveShell", (), {})()
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    hynt.train(small_world, "transea", epochs=2)
    shown = capsys.readouterr().out
    assert "epoch 2 of 2" in shown
    assert "\r" in shown, "the line is written over"
    hynt.train(small_world, "transea", epochs=1, progress=False)
    assert capsys.readouterr().out == ""


def test_nothing_is_said_where_nobody_looks(small_world, capfd):  # noqa: F811
    hynt.train(small_world, "transea", epochs=1).evaluate("valid", tasks="link")
    assert capfd.readouterr() == ("", "")


@pytest.mark.slow  # tests/distributed holds the same for training, in the fast lane
def test_several_processes(small_world, tmp_path):  # noqa: F811
    small = {"epochs": 1, "batch_size": 512, "device": "cpu", "model.dimension": 16}
    run = hynt.train(small_world, out=tmp_path / "run", processes=2, **small)
    assert run.manifest["training"]["weights_of_epoch"] == 1
    with pytest.raises(hynt.UsageError, match="exists already"):
        hynt.train(small_world, out=tmp_path / "run", processes=2, **small)


@pytest.mark.slow
def test_several_processes_answer_as_one(small_world_run, tmp_path):  # noqa: F811
    run = hynt.load(shutil.copytree(small_world_run, tmp_path / "run"), "cpu")
    alone, together = run.evaluate("valid", tasks="link"), run.evaluate("valid", tasks="link", processes=2)
    assert alone["link"] == together["link"]
    questions = [(name, "capital", "?") for name in ("Japan", "Brazil", "India")]
    assert run.complete(questions, processes=2).to_arrow().equals(run.complete(questions).to_arrow())


def test_a_graph_is_split_anew_as_an_import_would(tmp_path):
    from hynt.graph.splitting import SplitRule

    graph = hynt.read_graph("world")
    again = graph.resplit("6:2:2", seed=5, by=["head"])
    rule = SplitRule((6.0, 2.0, 2.0), 5, ("head",))
    made = hynt.graph_from_facts(graph.facts(), split=rule, convert_units=False)
    assert {name: set(again.facts(name)) for name in again.splits} == {
        name: set(made.facts(name)) for name in made.splits
    }


def test_the_format_of_a_file_is_known_by_its_name(tmp_path):
    line = '{"head": "Ann", "relation": "knows", "tail": "Bob"}\n'
    for name in ("facts.jsonl", "facts.ndjson"):
        (tmp_path / name).write_text(line)
        assert len(hynt.import_graph(tmp_path / name)) == 1
    (tmp_path / "facts.csv").write_text("head,relation,tail\nAnn,knows,Bob\n")
    assert len(hynt.import_graph(tmp_path / "facts.csv")) == 1
    (tmp_path / "facts.txt").write_text("Ann\theight\t1.7\n")
    with pytest.raises(hynt.UsageError, match="fits hynt and triples"):
        hynt.import_graph(tmp_path / "facts.txt")
    graph = hynt.import_graph(tmp_path / "facts.jsonl", out=tmp_path / "saved", name="people")
    assert hynt.read_graph(tmp_path / "saved") == graph
    assert graph.name == "people"


def test_names_that_several_share_are_in_the_graph():
    graph = hynt.graph_from_facts([("a", "knows", "b")], labels={"a": "Ann", "b": "Ann"})
    assert "Ann" in graph
    assert "a" in graph
    assert "Eve" not in graph
    assert 3 not in graph
    with pytest.raises(hynt.UsageError, match="2 entities are called 'Ann'"):
        _ = graph["Ann"]
    assert list(graph) == list(graph.facts())


def test_every_verb_of_the_command_is_a_call():
    from hynt.cli.application import VERBS

    calls = {"data": "import_graph", "models": "list_models", "demo": "train", "mcp": "serve"}
    for verb in VERBS:
        name = calls.get(verb, verb)
        assert hasattr(hynt, name) or hasattr(hynt.Run, name), f"Python cannot {verb}"


def test_paths_are_taken_as_text_too(small_world, tmp_path, monkeypatch):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    small_world.save("graph")
    run = hynt.train("graph", "frequency", out="runs/first")
    assert isinstance(run.path, Path)
    assert hynt.load("runs/first").predict("Japan", "capital", "?")[0].rank == 1


def test_an_import_gives_its_account(tmp_path):
    (tmp_path / "facts.csv").write_text("head,relation,tail,year\nAnn,height,1.7,2020\nBob,height,tall,2021\n")
    words = {"numeric": ["height"], "on_error": "skip"}
    for out in (None, tmp_path / "graph"):
        made = hynt.import_source(tmp_path / "facts.csv", out=out, **words)
        assert (made["importing"]["read"], made["importing"]["kept"], made["counts"]["train"]) == (2, 1, 1)
        (problem,) = made["problems"]
        assert (problem["where"], problem["reason"]) == (f"{tmp_path / 'facts.csv'}:3", "bad-number")
        assert made["graph"] == (None if out is None else str(out))
        assert repr(made).splitlines()[0] == "<2 records of facts.csv: 1 kept, 1 rejected>"
        assert "note: values of year are written like years" in repr(made)
        with pytest.warns(UserWarning, match=r"written like years .* add: dates=\['year'\]"):
            assert made.graph == hynt.import_graph(tmp_path / "facts.csv", **words)
    assert made.graph == hynt.read_graph(tmp_path / "graph")
