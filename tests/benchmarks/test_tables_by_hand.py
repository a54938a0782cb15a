"""Tables of results that are written by hand: each figure of ours is one of a raw file, as the cell rounds it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from functools import cache
from statistics import fmean

import pytest

from benchmarks.result_file import RAW, Row, read_results

PAGES = RAW.parent
OVERVIEW, INDUCTIVE, HYNT = "index.md", "hynt-inductive.md", "hynt.md"
SIGNS = {"LM": "link.triplet.mrr", "LA": "link.all.mrr", "L10": "link.triplet.hits@10", "A10": "link.all.hits@10"}
SIGNS |= {"L1": "link.triplet.hits@1", "A1": "link.all.hits@1", "NONE": "link.all_without_numbers.mrr"}
SIGNS |= {"RT": "relation.triplet.mrr", "RA": "relation.all.mrr", "NT": "number.triplet.rmse", "NA": "number.all.rmse"}
SIGNS |= {"CT": "number.triplet.crps", "CA": "number.all.crps"}
"""What columns are about, as the tables below call it."""

HN, WD, WP, WK = (f"hynt-inductive-{name}" for name in ("hn-yg", "wd50k", "wikipeople", "hn-wk-resplit"))
OLD = "before numbers were read in the graph's unit: "
FIVE, THREE = (f"{count} seeds, equal weights" for count in ("five", "three"))
FITTED = "seeds and statistics, weights fitted on validation"
MIXED = f"five seeds, three without numbers in the graph's unit and {FITTED.removeprefix('seeds and ')}"
LATE = "train and valid, relations by the weights of epoch 26"
CARRIED = "train and valid, three seeds and statistics, weights fitted for the runs on train"
ABLATED, PLAIN = "hynt-inductive-ablations", "hynt-inductive-plain-numbers"
SHARES = [f"{PLAIN}: HN-YG, all, share {share}" for share in (".85", ".35", ".15", ".05")]


@dataclass(frozen=True)
class Table:
    """A table with what its columns and rows are about; a cell of another source names it."""

    page: str
    place: str  # words of the paragraph or heading before it
    columns: dict[str, str]  # by a word of the header: figures in their order
    rows: dict[str, str | list[str]]  # by the beginning of the first cell: FILE: ROW; a list has one for each figure
    others: dict[tuple[str, str], str] = field(default_factory=dict)  # by row and column: another FILE: ROW


TABLES = [
    Table(
        INDUCTIVE,
        "## HN-YG",
        {"link MRR": "LA A10", "relation": "RT RA", "RMSE": "NT NA", "CRPS": "CT CA"},
        {
            "**`hynt-inductive`, one run": f"{HN}: {HN}",
            "its five runs, equal": f"{HN}: {FIVE}",
            "its five runs, fitted": f"{HN}: five {FITTED}",
            "these and three": f"{HN}: {MIXED}",
            "the same without": f"{HN}: {OLD}{HN}",
            "`hynt`, the best": "hn-yg-link: link",
            "trivial": "baselines-hn-yg: HN-YG frequency",
        },
        {
            ("`hynt`, the best", "relation"): "hn-yg-number-and-relation: relation",
            ("`hynt`, the best", "RMSE"): "hn-yg-number-long: number",
            ("trivial", "RMSE"): "baselines-hn-yg: HN-YG neighbour-mean",
        },
    ),
    Table(
        INDUCTIVE,
        "## WD50K",
        {"link MRR": "LM LA", "H@10": "L10 A10", "relation": "RT RA"},
        {
            "`hynt`, train only": "wd50k-link: link",
            "**`hynt-inductive`, train only": f"{WD}: train only",
            "its three runs, fitted": f"{WD}: train only, three {FITTED}",
            "three earlier runs, equal": f"{WD}: earlier: train only, {THREE}",
            "`hynt`, train and valid": "wd50k-link-train-and-valid: link",
            "**`hynt-inductive`, train and valid": f"{WD}: {LATE}",
            "these three, equal": f"{WD}: train and valid, {THREE}",
            "these three, fitted": f"{WD}: {CARRIED}",
            "trivial": "baselines-wd50k: WD50K frequency",
        },
    ),
    Table(
        INDUCTIVE,
        "## WikiPeople- and HN-WK-resplit",
        {"WikiPeople-": "LM LA", "HN-WK-resplit": "LM LA", "relation": "RT RA", "RMSE": "NT NA", "CRPS": "CT CA"},
        {
            "`hynt`": "hn-wk-resplit-link: link",
            "**`hynt-inductive`, one run": f"{WK}: hynt-inductive-hn-wk",
            "its three runs, equal": f"{WK}: {THREE}",
            "its three runs, fitted": f"{WK}: three {FITTED}",
            "the same without": f"{WK}: {OLD}hynt-inductive-hn-wk",
            "trivial": "baselines-hn-wk-resplit: HN-WK-resplit frequency",
        },
        {
            ("`hynt`", "WikiPeople-"): "wikipeople-link: link",
            ("**`hynt-inductive`, one run", "WikiPeople-"): f"{WP}: {WP}",
            ("its three runs, equal", "WikiPeople-"): f"{WP}: {THREE}",
            ("its three runs, fitted", "WikiPeople-"): f"{WP}: three {FITTED}",
            ("trivial", "WikiPeople-"): "baselines-wikipeople: WikiPeople- frequency",
            ("`hynt`", "RMSE"): "hn-wk-resplit-number: number",
            ("trivial", "RMSE"): "baselines-hn-wk-resplit: HN-WK-resplit relation-mean",
        },
    ),
    Table(
        INDUCTIVE,
        "**WD20K100-v1**",
        {"MRR": "LM", "H@1": "L1", "H@10": "L10"},
        {"**`hynt-inductive`**": "hynt-inductive-wd20k100: hynt-inductive-wd20k100"},
    ),
    Table(
        INDUCTIVE,
        "**A tenth of HN-YG's",
        {"link": "LA", "relation": "RA", "RMSE": "NA"},
        {
            "never met": [f"hynt-inductive-held-out: draw {draw}, held out" for draw in range(3)],
            "trained with": [f"hynt-inductive-held-out: draw {draw}, trained with them" for draw in range(3)],
        },
    ),
    Table(
        INDUCTIVE,
        "Ablations on validation of HN-YG",
        {"link": "LA", "without numbers": "NONE", "relation": "RA", "RMSE": "NT NA"},
        {
            "without numbers in": f"{HN}: {OLD}the same on validation, seeds 0 to 2",
            "no split": f"{ABLATED}: no split",
            "mean of messages": f"{ABLATED}: mean of messages",
            "messages that include": f"{ABLATED}: message with its receiver",
            "squared error": f"{ABLATED}: squared error",
            "literals removed": f"{ABLATED}: literals removed",
            "literals shuffled": f"{ABLATED}: literals shuffled",
            "half of the facts": f"{ABLATED}: half of the facts observed",
            "12 layers": f"{ABLATED}: 12 layers",
            "relation weight 3": f"{ABLATED}: relation weight 3",
            "numbers in the graph's unit": f"{PLAIN}: HN-YG, plain_numbers=asked",
            "**the preset**": f"{PLAIN}: HN-YG, plain_numbers=all",
            "the preset, relation weight 2": f"{PLAIN}: HN-YG, all, relation weight 2",
            "the preset, .85": SHARES,
            "the preset, the same facts": f"{PLAIN}: HN-YG, all, the same facts observed in every step",
            "the preset, any number": f"{PLAIN}: HN-YG, all, any number of masks",
            "the preset, a vector": f"{PLAIN}: HN-YG, all, a residual for each entity",
        },
    ),
    Table(
        HYNT,
        "Numbers scaled on all splits",
        {"link MRR": "LA", "link H@10": "A10", "relation": "RT RA", "RMSE": "NT NA"},
        {
            "ours, `hn-yg-link`": "hn-yg-link: link",
            "ours, `hn-yg-relation`": "hn-yg-number-and-relation: relation",
            "ours, `hn-yg-number-long`": "hn-yg-number-long: number",
            "ours, `hn-yg-number`,": "hn-yg-number-and-relation: number",
        },
    ),
    Table(
        HYNT,
        "## WD50K",
        {"link MRR": "LM LA", "H@10": "L10 A10", "H@1,": "L1 A1"},
        {"ours, train only": "wd50k-link: link", "ours, train and valid": "wd50k-link-train-and-valid: link"},
    ),
]

OF_OTHERS = ("paper", "best published", "goal", "published", "HART")
"""How rows begin that are not ours."""

HN_LINK = {"hynt": "hn-yg-link: link", "one": f"{HN}: {HN}", "trivial": "baselines-hn-yg: HN-YG frequency"}
LEAD: dict[str, tuple[str, dict[str, str]]] = {
    "HN-YG link": ("LA", HN_LINK | {"ensemble": f"{HN}: five {FITTED}"}),
    "HN-YG relation": (
        "RT RA",
        HN_LINK | {"hynt": "hn-yg-number-and-relation: relation", "ensemble": f"{HN}: five {FITTED}"},
    ),
    "HN-YG number": (
        "NT NA",
        {"hynt": "hn-yg-number-long: number", "one": f"{HN}: {HN}", "ensemble": f"{HN}: {MIXED}"}
        | {"trivial": "baselines-hn-yg: HN-YG neighbour-mean"},
    ),
    "WD50K link, train only": (
        "LM LA",
        {"hynt": "wd50k-link: link", "one": f"{WD}: train only", "ensemble": f"{WD}: train only, three {FITTED}"}
        | {"trivial": "baselines-wd50k: WD50K frequency"},
    ),
    "WD50K link, train and valid": (
        "LM LA",
        {"hynt": "wd50k-link-train-and-valid: link", "one": f"{WD}: {LATE}"}
        | {"ensemble": f"{WD}: {CARRIED}", "trivial": "baselines-wd50k: WD50K frequency"},
    ),
    "WD50K relation, train and valid": (
        "RT RA",
        {"one": f"{WD}: {LATE}", "ensemble": f"{WD}: {CARRIED}", "trivial": "baselines-wd50k: WD50K frequency"},
    ),
    "WikiPeople- link, train only": (
        "LM LA",
        {
            "hynt": "wikipeople-link: link",
            "one": f"{WP}: {WP}",
            "ensemble": f"{WP}: three {FITTED}",
            "trivial": "baselines-wikipeople: WikiPeople- frequency",
        },
    ),
    "HN-WK-resplit link": (
        "LM LA",
        {"hynt": "hn-wk-resplit-link: link", "one": f"{WK}: hynt-inductive-hn-wk", "ensemble": f"{WK}: three {FITTED}"}
        | {"trivial": "baselines-hn-wk-resplit: HN-WK-resplit frequency"},
    ),
    "HN-WK-resplit number": (
        "NT NA",
        {"hynt": "hn-wk-resplit-number: number", "one": f"{WK}: hynt-inductive-hn-wk"}
        | {"ensemble": f"{WK}: three {FITTED}", "trivial": "baselines-hn-wk-resplit: HN-WK-resplit relation-mean"},
    ),
    "WD20K100-v1 link": ("LM L1 L10", {"one": "hynt-inductive-wd20k100: hynt-inductive-wd20k100"}),
}
"""The first table of all: what a row is about, and the raw row of each cell."""
COLUMNS = ("best published", "hynt", "one", "ensemble", "trivial", "goal")


@cache
def row_of(source: str) -> Row:
    file, _, name = source.partition(": ")
    row = read_results(RAW / f"{file}.json").row(name)
    assert row is not None, f"no row of {file}.json is called {name!r}"
    return row


def expected(source: str, sign: str) -> tuple[float, float | None]:
    figure = row_of(source).figure(*SIGNS[sign].split("."))
    assert figure is not None, f"{source} has no {SIGNS[sign]}"
    return figure.mean, figure.deviation


def written(page: str, place: str) -> list[list[str]]:
    """The cells of the first table after these words, its header first."""
    return table_of((PAGES / page).read_text(encoding="utf-8"), place)


def table_of(text: str, place: str) -> list[list[str]]:
    assert place in text, place
    lines = text[text.index(place) :].splitlines()
    start = next(index for index, line in enumerate(lines) if line.startswith("|"))
    end = next((index for index in range(start, len(lines)) if not lines[index].startswith("|")), len(lines))
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[start:end]]
    return [cells[0], *cells[2:]]


def figures_of(cell: str) -> list[str | None]:
    """`.2574 ± .0013` and the like; None where a dash says that there is none."""
    plain = re.sub(r"\*\*|[¹²³⁴⁵]|[a-z]+", "", cell)
    return [None if part.strip() in ("–", "") else part.strip() for part in plain.split("/")]


def rounded(value: float, like: str) -> str:
    return f"{value:.{len(like.partition('.')[2])}f}".removeprefix("0")


def differing(cell: str, sources: list[str], signs: list[str]) -> list[str]:
    """What a cell says that raw files do not."""
    found = figures_of(cell)
    if len(found) != len(sources):
        return [f"{cell!r} has {len(found)} figures, not {len(sources)}"]
    wrong = []
    for figure, source, sign in zip(found, sources, signs, strict=True):
        if figure is None:
            continue
        mean, _, deviation = figure.partition(" ± ")
        value, apart = expected(source, sign)
        if rounded(value, mean) != mean:
            wrong.append(f"{mean}: {source} has {SIGNS[sign]} {value:.6f}")
        if deviation and (apart is None or rounded(apart, deviation) != deviation):
            wrong.append(f"± {deviation}: {source} has {apart}")
    return wrong


@pytest.mark.parametrize("table", TABLES, ids=lambda table: f"{table.page} {table.place}")
def test_figures_are_those_of_raw_files(table):
    header, *rows = written(table.page, table.place)
    column_of = {word: next(at for at, cell in enumerate(header) if cell.startswith(word)) for word in table.columns}
    wrong, seen = list[str](), set[str]()
    for cells in rows:
        label = max((one for one in table.rows if cells[0].startswith(one)), key=len, default=None)
        if label is None:
            assert cells[0].startswith(OF_OTHERS), f"{table.page}: no raw row is known of {cells[0]!r}"
            continue
        seen.add(label)
        for word, at in column_of.items():
            signs, source = table.columns[word].split(), table.others.get((label, word), table.rows[label])
            if any(figures_of(cells[at])) and re.search(r"\d", cells[at]):
                listed = source if isinstance(source, list) else [source] * len(signs)
                signs = signs if not isinstance(source, list) else signs[-1:] * len(source)
                wrong += [f"{table.page}, {cells[0]}, {word}: {one}" for one in differing(cells[at], listed, signs)]
    assert seen == set(table.rows)
    assert wrong == [], "\n".join(wrong)


def reaches(row: str, column: str, goal: list[str | None]) -> bool:
    signs, sources = LEAD[row]
    pairs = [(expected(sources[column], sign)[0], one) for sign, one in zip(signs.split(), goal, strict=True) if one]
    smaller = signs.startswith("N")
    return all(round(value, 4) <= float(one) if smaller else round(value, 4) >= float(one) for value, one in pairs)


def test_every_cell_of_the_first_table_is_of_a_raw_row():
    wrong, seen = list[str](), set[str]()
    for cells in written(OVERVIEW, "| graph, task |")[1:]:
        label = max((one for one in LEAD if cells[0].startswith(one)), key=len, default=None)
        if label is None:
            assert cells[0].startswith("FB15K-237-numeric")  # has a test of its own
            continue
        seen.add(label)
        signs, sources = LEAD[label]
        for column, cell in zip(COLUMNS, cells[1:], strict=True):
            if column in ("best published", "goal"):
                continue
            if column in sources:
                each = signs.split()
                wrong += [f"{label}, {column}: {it}" for it in differing(cell, [sources[column]] * len(each), each)]
            elif re.search(r"\d", cell):
                wrong.append(f"{label}, {column}: {cell!r} has no raw row")
        wanted, _, verdict = cells[-1].partition(": ")
        if label != "WD20K100-v1 link":
            goal = figures_of(wanted)
            told = "reached" if reaches(label, "one", goal) else "missed"
            if told == "missed" and "ensemble" in sources and reaches(label, "ensemble", goal):
                told = "reached by the ensemble"
            if verdict != told:
                wrong.append(f"{label}: {verdict}, but raw files say {told}")
    assert seen == set(LEAD)
    assert wrong == [], "\n".join(wrong)


def test_the_readme_says_the_same():
    text = (RAW.parents[2] / "README.md").read_text(encoding="utf-8")
    said = {cells[0].partition(",")[0]: cells for cells in table_of(text, "| | best published | `hynt` |")[1:]}
    wrong = differing(said["HN-YG"][2], ["hn-yg-link: link", "hn-yg-number-long: number"], ["LA", "NA"])
    for graph, label in [("WD50K", "WD50K link, train only"), ("WikiPeople-", "WikiPeople- link, train only")]:
        signs, sources = LEAD[label]
        for column, cell in (("hynt", said[graph][2]), ("one", said[graph][3])):
            each = signs.split()[: len(figures_of(cell))]
            wrong += differing(cell, [sources[column]] * len(each), each)
    wrong += differing(said["HN-YG"][3], [f"{HN}: {HN}"] * 2, ["LA", "NA"])
    wrong += differing(said["WD20K100-v1"][3], [LEAD["WD20K100-v1 link"][1]["one"]], ["LM"])
    assert wrong == [], "\n".join(wrong)


ATTRIBUTES = {
    "birth": "people.person.date_of_birth",
    "death": "people.deceased_person.date_of_death",
    "film release": "film.film.initial_release_date",
    "organisation founded": "organization.organization.date_founded",
    "place founded": "location.dated_location.date_founded",
    "latitude": "location.geocode.latitude",
    "longitude": "location.geocode.longitude",
    "area": "location.location.area",
    "population": "topic_server.population_number",
    "height": "people.person.height_meters",
    "weight": "people.person.weight_kg",
}


def test_errors_of_attributes_and_their_counts_are_those_of_raw_files():
    file = "hynt-inductive-fb15k-237-numeric"
    trivial = row_of(f"{file}: mean absolute errors of trivial models").measured["mae"]
    runs = row_of(f"{file}: {file}").runs
    (together,) = row_of(f"{file}: {THREE}").runs
    (plain,) = row_of(f"{file}: hynt").runs
    wrong, better, worst = list[str](), [0, 0, 0], [0, 0]
    _, *rows = written(INDUCTIVE, "## FB15K-237-numeric")
    assert [cells[0].partition(",")[0] for cells in rows] == list(ATTRIBUTES)
    for cells in rows:
        name = ATTRIBUTES[cells[0].partition(",")[0]]
        of_runs = fmean(run.per_relation[name]["mae"] for run in runs)
        of_all = together.per_relation[name]["mae"]
        of_hynt = plain.per_relation[name]["mae"]
        assert of_all < of_hynt, name
        baselines = [trivial["relation-median"][name], trivial["neighbour-mean"][name]]
        for cell, value in zip((*cells[1:3], *cells[4:]), (*baselines, of_hynt, of_runs, of_all), strict=True):
            figure = re.sub(r"[*² ]", "", cell)
            told = f"{value:.1e}".replace("e+0", "e") if "e" in figure else rounded(value, figure)
            if figure != told:
                wrong.append(f"{name}: {figure}, but raw files have {value:.6g}")
        best = float(re.sub(r"[*]|\(.*\)", "", cells[3]))
        better = [count + (value < best) for count, value in zip(better, (of_hynt, of_runs, of_all), strict=True)]
        worst = [count + (of_runs < value) for count, value in zip(worst, baselines, strict=True)]
    assert wrong == [], "\n".join(wrong)
    (cells,) = [cells for cells in written(OVERVIEW, "| graph, task |") if cells[0].startswith("FB15K")]
    assert cells[2] == f"better than published on {better[0]}"
    assert cells[3] == f"on {better[1]}"
    assert cells[4] == f"on **{better[2]}**, equal"
    assert cells[5] == f"worse on {worst[0]} and {worst[1]}"
