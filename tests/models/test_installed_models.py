"""A fourteenth model, from another package: the page's example is checked, listed, trained, and asked by name."""

from __future__ import annotations

import importlib
import json
import shutil
import sys

import pytest
import torch

import hynt
from hynt.cli.application import run
from hynt.errors import UsageError
from hynt.graph.storage import save_graph
from hynt.models.checking import ContractError
from hynt.models.registry import MODELS
from hynt.runs.model_choice import settings_class_of_run
from hynt.training.run import start
from tests.conftest import ROOT
from tests.training.small_graph import small_graph, tiny_settings

EXAMPLE = ROOT / "docs" / "examples" / "distmult.py"


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Installs a package with these modules and entry points, as far as Python can tell."""
    made = []

    def installing(name, modules, points):
        site = tmp_path / f"site-{name}"
        information = site / f"{name}-1.5.dist-info"
        information.mkdir(parents=True)
        (information / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n", encoding="utf-8")
        lines = "".join(f"{model} = {value}\n" for model, value in points.items())
        (information / "entry_points.txt").write_text(f"[hynt.models]\n{lines}", encoding="utf-8")
        for module, text in modules.items():
            (site / f"{module}.py").write_text(text, encoding="utf-8")
            made.append(module)
        monkeypatch.syspath_prepend(str(site))
        importlib.invalidate_caches()

    yield installing
    for module in made:
        sys.modules.pop(module, None)


def test_the_page_shows_the_example_as_it_is():
    text = EXAMPLE.read_text(encoding="utf-8")  # mkdocs puts it into the page
    page = (ROOT / "docs" / "how-to" / "adding-a-model.md").read_text(encoding="utf-8")
    assert f'```python\n--8<-- "{EXAMPLE.relative_to(ROOT).as_posix()}"\n```' in page
    assert len(text.splitlines()) < 130


def test_the_example_is_listed_checked_trained_and_asked(install, tmp_path, capsys):
    install("my-models", {"my_distmult": EXAMPLE.read_text(encoding="utf-8")}, {"distmult": "my_distmult:ENTRY"})
    assert "my_distmult" not in sys.modules
    assert "distmult" not in MODELS  # what is iterated is hynt's own
    assert list(MODELS.listed().entries)[-1] == "distmult"
    hynt.check_model("distmult", settings={"dimension": 16})

    graph, out = tmp_path / "graph", tmp_path / "run"
    save_graph(small_graph(people=40), graph)
    options = ["--epochs", "3", "--set", "model.dimension=8", "--device", "cpu", "--out", str(out)]
    assert run(["train", str(graph), "--model", "distmult", *options]) == 0
    assert run(["evaluate", str(out), "--task", "link", "--json"]) == 0
    assert run(["models"]) == 0
    told = capsys.readouterr()
    assert "distmult: products of entities and relations (2015)" in told.out
    predictor = hynt.load(out)
    assert len(predictor.predict(("person 1", "born in", "?"), top=3)) == 3


def test_the_example_learns_where_nothing_is_said_about_rates(install, tmp_path):
    """Who is married to whom, of which the other half is known: DistMult is symmetric."""
    install("my-models", {"my_distmult": EXAMPLE.read_text(encoding="utf-8")}, {"distmult": "my_distmult:ENTRY"})
    pairs = [(f"wife {number}", f"husband {number}") for number in range(100)]
    train = [(one, "married to", other) for one, other in pairs]
    train += [(other, "married to", one) for one, other in pairs[:80]]
    valid = [(other, "married to", one) for one, other in pairs[80:]]
    save_graph(hynt.graph_from_facts({"train": train, "valid": valid}, name="couples"), tmp_path / "couples")
    out = tmp_path / "run"
    assert run(["train", str(tmp_path / "couples"), "--model", "distmult", "--device", "cpu", "--out", str(out)]) == 0
    best = json.loads((out / "manifest.json").read_text(encoding="utf-8"))["training"]["best"]
    assert best["metric"] == "link.all.mrr"
    assert best["value"] > 0.9


def test_nothing_is_imported_until_a_model_is_asked_for(install):
    install("loud", {"loud_model": "raise RuntimeError('imported')"}, {"loud": "loud_model:ENTRY"})
    assert "transea" in MODELS
    assert MODELS.get("transea").summary
    with pytest.raises(UsageError, match=r"unknown model 'loudd'.*loud"):
        MODELS.get("loudd")
    assert "loud_model" not in sys.modules


def test_what_is_wrong_with_a_package_is_told_and_keeps_no_other_model_out(install, capsys):
    install(
        "broken-models",
        {"broken_module": "import no_such_module_anywhere", "odd_module": "ENTRY = {'a': 'dictionary'}"},
        {
            "broken": "broken_module:ENTRY",
            "odd": "odd_module:ENTRY",
            "gone": "odd_module:NOTHING",
            "gran": "odd_module:ENTRY",
        },
    )
    with pytest.raises(UsageError) as told:
        MODELS.get("broken")
    assert str(told.value) == (
        "the model 'broken' of broken-models 1.5 cannot be imported from broken_module:ENTRY: "
        "ModuleNotFoundError: No module named 'no_such_module_anywhere'. Repair that package, or remove it."
    )
    with pytest.raises(UsageError, match="odd_module:ENTRY, is not a ModelEntry but a dict"):
        MODELS.get("odd")
    with pytest.raises(UsageError, match="AttributeError"):
        MODELS.get("gone")
    assert MODELS.get("gran").summary.startswith("a transformer")  # a name of hynt's own stays its own
    assert run(["models"]) == 0
    shown = capsys.readouterr()
    assert "hynt: context and prediction transformers" in shown.out
    assert shown.err.count("note: ") == 4
    assert "a package offers a model 'gran', but that name is hynt's own" in shown.err
    assert run(["train", "world", "--model", "broken", "--out", "nowhere"]) == 2


def test_two_packages_that_offer_one_name_are_both_named(install):
    text = EXAMPLE.read_text(encoding="utf-8")
    install("first", {"first_module": text}, {"twice": "first_module:ENTRY"})
    install("second", {"second_module": text}, {"twice": "second_module:ENTRY"})
    with pytest.raises(UsageError, match=r"offered by first 1\.5 and second 1\.5"):
        MODELS.get("twice")


def test_a_model_that_breaks_the_contract_is_caught_by_name(install):
    text = EXAMPLE.read_text(encoding="utf-8").replace("frozenset()  # neither", "frozenset(Part)  # neither")
    install("liar", {"liar_module": text}, {"liar": "liar_module:ENTRY"})
    with pytest.raises(ContractError):
        hynt.check_model("liar", settings={"dimension": 8})


def test_a_run_of_a_package_that_is_gone_says_so(install, tmp_path, monkeypatch, capsys):
    install("passing", {"passing_module": EXAMPLE.read_text(encoding="utf-8")}, {"passing": "passing_module:ENTRY"})
    graph, out = tmp_path / "graph", tmp_path / "run"
    save_graph(small_graph(people=20), graph)
    assert run(["train", str(graph), "--model", "passing", "--epochs", "1", "--device", "cpu", "--out", str(out)]) == 0
    assert json.loads((out / "manifest.json").read_text(encoding="utf-8"))["model_package"] == "passing==1.5"
    shutil.rmtree(tmp_path / "site-passing")
    importlib.invalidate_caches()
    capsys.readouterr()
    for asking in (["evaluate", str(out)], ["train", str(graph), "--out", str(out), "--resume", "--device", "cpu"]):
        assert run(asking) == 2
        told = " ".join(capsys.readouterr().err.split())
        assert "the model 'passing' of this run is of the package passing 1.5, which is not installed here" in told
        assert "pip install passing==1.5" in told


@pytest.mark.parametrize("package", [None, 3, "--index-url http://example.org x==1", "a b==1"])
def test_a_run_that_names_no_package_still_says_what_is_missing(package):
    with pytest.raises(UsageError) as told:
        settings_class_of_run("passing", package, "runs/old")
    assert str(told.value) == (
        "runs/old: the model 'passing' of this run is none of hynt's own, and no package that is installed here offers "
        "it. Install the package that it was trained with; hynt models lists what there is."
    )


def test_a_run_of_hynts_own_model_names_no_package(tmp_path):
    run = start(small_graph(people=20), tiny_settings(), tmp_path / "run", torch.device("cpu"))
    assert "model_package" not in run.manifest
