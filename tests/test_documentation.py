"""What the papers say is so: examples run, links lead somewhere, versions and exit codes agree."""

from __future__ import annotations

import re
import shutil
import tomllib

import pytest

import hynt
from hynt.cli import application as failures
from hynt.errors import DataError, UsageError
from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("page", ["README.md", "docs/index.md"])
def test_python_examples_print_what_the_page_shows(page, world_run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(world_run, tmp_path / "runs" / "world")
    examples = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text_of(page), flags=re.DOTALL)
    assert len(examples) == text_of(page).count("```python")
    names: dict[str, object] = {}
    for example, shown in examples:
        exec(compile(example, page, "exec"), names)
        printed = capsys.readouterr().out
        assert [shape(line) for line in printed.splitlines()] == [shape(line) for line in shown.splitlines()]
    assert isinstance(names["graph"], hynt.KnowledgeGraph)
    assert printed == shown, "what is printed of a graph does not depend on the weights of a run"


def test_the_first_screen_of_the_readme_asks_a_run():
    first = "\n".join(text_of("README.md").splitlines()[:40])
    assert all(words in first for words in ("pip install", "hynt demo", "hynt.load(", ".predict(", ".to_pandas()"))


def shape(line: str) -> str:
    """What does not depend on weights: the start of a line about new answers or guesses, and words around numbers."""
    of_weights = re.match(r"  (new:|\d+ guess)", line)
    return re.sub(r"\d+", "0", of_weights[0]) if of_weights else re.sub(r"[\d.,]+", "0", line)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"


def test_the_index_for_language_models_names_every_page():
    named = set(re.findall(r"\]\(([^)]+\.md)\)", text_of("docs/llms.txt")))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")}
    assert named == {page for page in pages if not re.match(r"decisions/\d", page)}


def test_make_targets_in_the_papers_exist():
    targets = set(re.findall(r"^([a-z-]+):", text_of("Makefile"), flags=re.MULTILINE))
    named = {
        name for page in PAGES for name in re.findall(r"(?:`|\$ )make ([a-z-]+)", page.read_text(encoding="utf-8"))
    }
    assert {"demo", "test", "docs", "test-slow", "test-gpu"} <= named
    assert named <= targets


def test_versions_agree():
    assert PROJECT["version"] == hynt.__version__
    assert f"version: {hynt.__version__}\n" in text_of("CITATION.cff")
    assert f"## {hynt.__version__}" in text_of("CHANGELOG.md")


def test_exit_codes_are_documented():
    page = text_of("docs/reference/exit-codes.md")
    documented = {int(code) for code in re.findall(r"^\| (\d+) \|", page, flags=re.MULTILINE)}
    ours = {value for name, value in vars(failures).items() if name.startswith("EXIT_")}
    assert documented == {0, DataError.exit_code, UsageError.exit_code, *ours}


def test_every_dependency_is_pinned():
    pinned = dict(re.findall(r"^([a-z0-9-]+)==(\S+)$", text_of("constraints.txt"), flags=re.MULTILINE))
    groups = [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    wanted = {re.split(r"[><=\[]", line)[0].lower().replace("_", "-") for group in groups for line in group} - {"hynt"}
    assert wanted <= set(pinned)
    assert pinned["torch"] == "2.13.0"


def test_all_is_every_extra_but_dev():
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    assert set(everything.removeprefix("hynt[").removesuffix("]").split(",")) == set(extras) - {"all", "dev"}
