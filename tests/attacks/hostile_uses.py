"""Hostile files of what is done with a run: updates, calibrations, ensembles, decisions, questions, other graphs."""

from __future__ import annotations

import json
import random
import shutil
from pathlib import Path
from typing import Any

from hynt.formats.from_python import graph_from_facts
from hynt.graph.storage import save_graph
from tests.attacks.forging import sign_run, sign_updates, write_index
from tests.attacks.mutations import Originals, changed, mutated, sign_anyway, write_json

QUESTION = ("--head", "person 0", "--relation", "height", "--tail", "?", "--qualifier=year=2001", "--json")
LINK = ("--head", "person 0", "--relation", "knows", "--tail", "?", "--json")


def updates(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    """The journal of a run's updates says something else, or one of its versions does."""
    run = Path(shutil.copytree(originals.followed, place / "run"))
    files = sorted((run / "updates").glob("*.jsonl"))
    path = chance.choice(files)
    if chance.random() < 0.3:
        path.write_bytes(mutated(chance, path.read_bytes()))
    else:
        lines = path.read_bytes().splitlines()
        at = chance.randrange(len(lines))
        lines[at] = json.dumps(changed(chance, json.loads(lines[at]))).encode("utf-8", "surrogatepass")
        path.write_bytes(b"\n".join(lines) + b"\n")
    if chance.random() < 0.8:
        sign_anyway(sign_updates, run)
    more = place / "more.jsonl"
    more.write_text('{"head": "person 3", "relation": "knows", "tail": "somebody"}\n')
    verbs = (
        ["predict", str(run), *chance.choice((QUESTION, LINK))],
        ["predict", str(run), *LINK, "--as-of", "1"],
        ["update", str(run), str(more), *chance.choice(([], ["--key", "monday"], ["--skip-known"]))],
        ["update", str(run), "--merge", "Zoe", "person 1"],
        ["update", str(run), "--log", "--json"],
    )
    return chance.choice(verbs)


def calibration(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    run = Path(shutil.copytree(originals.followed, place / "run"))
    path = run / "calibration.json"
    content = json.loads(path.read_bytes())
    parts = [name for name in ("link", "relation", "number", "reach", "number", "reach") if name in content]
    name = chance.choice(parts) if chance.random() < 0.8 else None
    said = changed(chance, content if name is None else content[name])
    content = {**content, name: said} if name is not None else said
    if isinstance(content, dict):
        write_index(path, content)
    else:
        write_json(path, content)
    verbs = (["predict", str(run), *QUESTION], ["predict", str(run), *LINK], ["calibrate", str(run), "--json"])
    return chance.choice(verbs)


def ensemble(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    """What the members of an ensemble are, or how much they count, is something else."""
    run = Path(shutil.copytree(originals.ensemble, place / "run"))
    path = run / chance.choice(("combination.json", "members.json"))
    if chance.random() < 0.1:
        path.write_bytes(mutated(chance, path.read_bytes()))
    else:
        said = changed(chance, json.loads(path.read_bytes()))
        if isinstance(said, dict):
            write_index(path, said)
    sign_run(run)
    return ["predict", str(run), *chance.choice((QUESTION, LINK))]


def decisions(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    """A file of decisions about doubtful facts."""
    fact = {"head": "person 0", "relation": "knows", "tail": "person 1"}
    other = {"head": "person 0", "relation": "height", "tail": 170, "qualifiers": {"year": 2001}}
    decisions = [
        {"decision": "remove", "fact": fact},
        {"decision": "keep", "fact": other},
        {"decision": "replace", "fact": {**fact, "head": "person 1", "tail": "person 2"}, "with": fact},
    ]
    path = place / "decisions.jsonl"
    chosen = [changed(chance, one) if chance.random() < 0.3 else one for one in chance.sample(decisions, 3)]
    path.write_bytes(b"".join(json.dumps(one).encode("utf-8", "surrogatepass") + b"\n" for one in chosen))
    if chance.random() < 0.2:
        path.write_bytes(mutated(chance, path.read_bytes()))
    if chance.random() < 0.5:
        source = place / "source.jsonl"
        source.write_text("".join(json.dumps(one) + "\n" for one in (fact, other)))
        return ["data", "import", str(source), "--corrections", str(path), "--out", str(place / "out")]
    run = shutil.copytree(originals.followed, place / "run")
    return ["update", str(run), "--corrections", str(path)]


def questions(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    """A file of questions, some of which are none."""
    known = {"head": "person 0", "relation": "knows", "tail": "?"}
    number = {"head": "person 1", "relation": "height", "tail": "?", "qualifiers": {"year": [2001]}}
    path = place / "questions.jsonl"
    chosen = [changed(chance, one) if chance.random() < 0.6 else one for one in chance.choices((known, number), k=3)]
    path.write_bytes(b"".join(json.dumps(one).encode("utf-8", "surrogatepass") + b"\n" for one in chosen))
    if chance.random() < 0.3:
        path.write_bytes(mutated(chance, path.read_bytes()))
    run = shutil.copytree(originals.away, place / "run")
    words = ["complete", str(run), str(path), "--out", str(place / "answers.parquet")]
    return [*words, *chance.choice(([], ["--on-error", "record"], ["--top", "1000000000"]))]


def elsewhere(chance: random.Random, place: Path, originals: Originals) -> list[str]:
    """A run is asked of a graph that it was not trained on: other kinds, odd numbers, hardly any facts."""
    names = ("person 0", "person 1", "Q1", "?", "=1", "x" * 500)
    numbers = (5, 180.5, -1e308, 1e308, 1e-320, 0)
    kinds = {name: chance.choice((names, numbers)) for name in ("knows", "height", "married", "year", "new")}
    if chance.random() < 0.7:  # those that the run knows
        kinds |= {"height": numbers, "year": numbers, "knows": names, "married": names}
    facts: dict[str, list[Any]] = {"train": [], "valid": [], "test": []}
    for _ in range(chance.choice((1, 2, 10, 40))):
        relation, other = (chance.choice(sorted(kinds)) for _ in range(2))
        pairs = [(other, chance.choice(kinds[other]))] if chance.random() < 0.5 else []
        split = chance.choice(("train", "train", "valid", "test"))
        facts[split].append((chance.choice(names), relation, chance.choice(kinds[relation]), pairs))
    save_graph(graph_from_facts(facts), place / "graph")
    graph, run = str(place / "graph"), str(shutil.copytree(originals.followed, place / "run"))
    if chance.random() < 0.4:
        return ["predict", run, *chance.choice((QUESTION, LINK)), "--graph", graph]
    which = chance.choice((["--observed"], ["--asked"], ["--observed", "--asked"]))
    told = [word for name in which for word in (name, chance.choice((graph, graph, str(originals.graph))))]
    return ["evaluate", run, *told, "--json", *chance.choice(([], ["--without-duplicates"], ["--intervals"]))]
