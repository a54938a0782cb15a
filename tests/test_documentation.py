"""What the papers say is so: examples run, links lead somewhere, versions and exit codes agree."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import hynt
from hynt.cli import application as failures
from hynt.errors import DataError, UsageError
from tests.conftest import ROOT
from tools import api_reference, commands_reference, gallery, results_pages, settings_reference

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
DOCS = ROOT / "docs"
GENERATED = {
    DOCS / "reference" / "api.md": (api_reference.page, "api_reference"),
    DOCS / "reference" / "commands.md": (commands_reference.page, "commands_reference"),
    DOCS / "reference" / "settings.md": (settings_reference.page, "settings_reference"),
    DOCS / "background" / "world-relations.md": (results_pages.world_relations, "results_pages"),
    DOCS / "results" / "measured.md": (results_pages.measured, "results_pages"),
    DOCS / "results" / "baselines.md": (results_pages.baselines, "results_pages"),
    DOCS / "results" / "evidence.md": (results_pages.evidence, "results_pages"),
}
"""Pages that a tool writes, with what makes them."""

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_python_examples_print_what_the_readme_shows(world_run, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(world_run, tmp_path / "runs" / "world")
    examples = re.findall(r"```python\n(.*?)```\n\n```text\n(.*?)```", text_of("README.md"), flags=re.DOTALL)
    assert len(examples) == text_of("README.md").count("```python")
    names: dict[str, object] = {}
    for example, shown in examples:
        exec(compile(example, "README.md", "exec"), names)
        # A run that has hardly learned anything says so; the one that the README shows has nothing of the kind to say.
        printed = re.sub(r"note: probabilities may be off: those of held-out.*\n", "", capsys.readouterr().out)
        assert [shape(line) for line in printed.splitlines()] == [shape(line) for line in shown.splitlines()]
    assert isinstance(names["graph"], hynt.KnowledgeGraph)
    assert printed == shown, "what is printed of a graph does not depend on the weights of a run"


def test_the_first_screen_of_the_readme_asks_a_run():
    first = "\n".join(text_of("README.md").splitlines()[:40])
    assert len(text_of("README.md").splitlines()) < 120
    assert all(words in first for words in ("pip install", "hynt demo", "hynt.load(", ".predict(", ".to_pandas()"))


def shape(line: str) -> str:
    """What does not depend on weights: the start of a line about new answers or guesses, and words around numbers."""
    of_weights = re.match(r"  (new:|\d+ guess)", line)
    return re.sub(r"\d+", "0", of_weights[0]) if of_weights else re.sub(r"[<>]?[\d.,]+", "0", line)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8")):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}, which does not exist"


def test_the_index_for_language_models_names_every_page():
    named = set(re.findall(r"\]\(([^)]+\.(?:md|ipynb))\)", text_of("docs/llms.txt")))
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*") if page.suffix in (".md", ".ipynb")}
    assert named == {page for page in pages if not re.match(r"decisions/\d", page)}


def test_the_site_can_be_built_and_its_menu_is_in_reading_order(tmp_path):
    """Strict: a link or an anchor that leads nowhere stops it."""
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    built = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    home = (tmp_path / "site" / "index.html").read_text(encoding="utf-8")
    menu = home[home.index("md-nav--primary") :]
    titles = [title.strip() for title in re.findall(r'<span class="md-ellipsis">(.*?)</span>', menu, flags=re.DOTALL)]
    wanted = ["Home", "Start", "Your own data, in five minutes", "How-to", "Training", "Reference", "Background"]
    wanted += ["Results", "HyNT against its paper", "Decisions"]
    assert [title for title in dict.fromkeys(titles) if title in wanted] == wanted
    assert "None" not in titles
    assert "site.css" in home
    walked, page = [], tmp_path / "site" / "index.html"
    while link := re.search(
        r'<a href="([^"]+)" class="md-footer__link md-footer__link--next"', page.read_text("utf-8")
    ):
        page = (page.parent / link[1] / "index.html").resolve()
        walked.append(page.parent.relative_to(tmp_path / "site").as_posix())
    assert walked[:2] == ["start/own-data", "start/python"]
    assert walked.index("start/notebooks/up-to-date") + 1 == walked.index("how-to/training")
    assert len(walked) == len(set(walked)) == len(list((tmp_path / "site").rglob("index.html"))) - 1


def words_of(page: Path) -> int:
    """A word has a letter or a digit, so the bars of a table are none; of a notebook, its text and its code count."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        text = " ".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
    return sum(any(mark.isalnum() for mark in word) for word in text.split())


def test_what_is_written_by_hand_is_short():
    pages = [page for page in (ROOT / "docs").rglob("*") if page.suffix in (".md", ".ipynb")]
    by_hand = {page: words_of(page) for page in pages if page not in GENERATED}
    assert sum(by_hand.values()) < 30_000, sorted(by_hand.items(), key=lambda one: -one[1])[:10]


def test_every_page_begins_with_what_its_reader_can_do():
    openings = "After this page|Look up|See|Read"
    pages = [page for page in DOCS.rglob("*.md") if not re.match(r"\d{4}-", page.name) and page != DOCS / "index.md"]
    others = [page.name for page in pages if not re.search(rf"^# .*\n\n({openings})\b", page.read_text("utf-8"))]
    assert others == []


@pytest.mark.parametrize("page", GENERATED, ids=lambda page: page.name)
def test_generated_pages_are_up_to_date(page):
    made, tool = GENERATED[page]
    assert page.read_text(encoding="utf-8") == made(), f"say: python -m tools.{tool}"


def test_every_setting_says_what_it_is_and_why():
    """In words of its own: no symbol alone, nothing that goes on from the name of the setting, no word of Python."""
    rows = [re.split(r" (?<!\\)\| ", line) for line in settings_reference.page().splitlines() if line.startswith("| `")]
    assert len(rows) > 150
    for name, _, _, meaning, why in rows:
        assert len(meaning.split()) >= 3, name
        assert not re.match(r"(of|on|in|None) ", meaning), name
        assert "None" not in meaning, name
        assert len(why.split()) >= 3, name


def test_every_command_of_the_gallery_has_its_picture():
    named = {word for command in gallery.commands() for word in command if word.endswith(".svg")}
    assert len(named) == 5
    for name in named | set(gallery.PAGES) | {"report.png"}:
        assert (gallery.IMAGES / name).exists(), name


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
