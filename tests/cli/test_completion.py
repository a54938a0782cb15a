"""What a shell offers after Tab."""

from __future__ import annotations

import pytest


@pytest.fixture
def offered(monkeypatch, tmp_path):
    """Values offered for a parameter of a verb, in a folder with a graph and a run."""
    from hynt.cli.application import Verbs

    for name, files in {"graphs/people": (), "runs/first": ("weights.safetensors",), "other": ()}.items():
        (tmp_path / name).mkdir(parents=True)
        for file in ("manifest.json", *files) if name != "other" else ():
            (tmp_path / name / file).write_text("{}")
    monkeypatch.chdir(tmp_path)

    def look(verb: str, parameter: str, begun: str = "", **said: str) -> list[str]:
        command = Verbs().get_command(None, verb.split()[0])
        for inner in verb.split()[1:]:
            command = command.commands[inner]
        found = next(one for one in command.params if parameter in (*one.opts, one.metavar))
        context = type("Context", (), {"params": said})()
        return [one.value for one in found.shell_complete(context, begun)]

    return look


def test_models_presets_and_formats(offered):
    from hynt.training.resolve_settings import PRESETS

    assert offered("train", "--model", "hynt") == ["hynt", "hynt-inductive"]
    assert set(offered("train", "--preset")) == set(PRESETS)
    assert offered("train", "--preset", "wo", model="hynt") == ["world"]
    assert offered("data import", "--format", "js") == ["jsonl"]


def test_graphs_and_runs_nearby(offered):
    assert offered("train", "GRAPH") == ["graphs/people", "world"]
    assert offered("predict", "RUN", "runs/") == ["runs/first"]
    assert offered("audit", "GRAPH|RUN") == ["graphs/people", "runs/first", "world"]
    assert offered("predict", "RUN", "nowhere/") == []


def test_what_takes_anything_is_left_to_the_shell(offered):
    from hynt.cli.application import Verbs

    command = Verbs().get_command(None, "train")
    out = next(one for one in command.params if "--out" in one.opts)
    assert out._custom_shell_complete is None
