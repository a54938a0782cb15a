"""Writes the pages that are tables of raw files or of the embedded graph, and nothing else.

python -m tools.results_pages            # after a raw file, or the way a table is laid out, has changed
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import hynt
from benchmarks.audit_table import tables as audit_tables
from benchmarks.missing_quality import table as proposal_table
from benchmarks.model_speed import table as speed_table
from benchmarks.own_graph_table import markdown as small_graph_table
from benchmarks.paper import grids
from benchmarks.paper.beyond import BEYOND
from benchmarks.paper.beyond import not_run as not_run_beyond
from benchmarks.paper.printed import PAPER
from benchmarks.paper.tables import RawFiles, not_run, paper_grids, row_grids
from benchmarks.result_file import read_measured, read_results, trial_of_row
from hynt.comparison.table import cost_table, markdown, quality_table
from tools.world.relations import RELATIONS

RESULTS = Path(__file__).resolve().parent.parent / "docs" / "results"
RAW = RESULTS / "raw"
PACKAGED = Path(hynt.__file__).resolve().parent / "world" / "run"

START = """# Measured tables

Look up the figures behind the how-to pages. Made from the raw files by `tools/results_pages.py`; a test keeps it up to
date. Each section names its raw file and the command that measures it.
"""
INTERVALS = """## Probabilities and intervals

Calibrated on valid, measured on test: `python -m benchmarks.interval_coverage RUN … --out FILE`. The error is the
expected calibration error of first answers; the width is on the scale where a relation's training range is 1. Runs on
`world` trained three and four minutes on one core, and were measured before relations had temperatures and radii of
their own; those of `hynt-inductive` on the benchmarks are of its presets, seed 0. The last column is the
width that one radius per relation gives, as in 0.1.0; rows without it have such intervals. Raw:
`raw/interval-coverage-*.json`.

| run | links: error before → after | relations: before → after | numbers | truth in 90 % intervals | width | 0.1.0 |
|---|---|---|---|---|---|---|
"""
THIRDS = """### What a width is worth

`python -m benchmarks.interval_coverage RUN … --only-thirds --device cpu --out FILE`: numbers of validation alone,
halved at random again and again, fitted on one half and measured on the other. One width for each relation covers nine
tenths in all by giving hard questions up: thirds are told by how far intervals made for the question reach, the easiest
first. The score is Winkler's, the width and twenty times how far a truth lies outside; it is lowest where true
quantiles are told. The run on HN-YG has its preset, that on HN-WK-resplit had six minutes of one core, and that on
`world` is the packaged one. Raw: `raw/interval-thirds.json`.

| run | intervals | score | width: mean, median | truth inside | in each third |
|---|---|---|---|---|---|
"""
HARDEST = """
On HN-YG the mean is the width of the hardest third: it makes up {share:.0f} % of it. The other two thirds have
intervals that are {narrower:.0f} % narrower than those of one width for each relation ({easy} beside {one_easy}). The
hardest has {hard} beside {one_hard}, which hold {held:.0f} % of its truths instead of nine in ten. Nothing was found
that narrows these intervals and gives up no truths; a model with smaller errors there would.
"""
WIDTHS_BEFORE = """### Beside the first intervals

Runs on file on 15 November 2026, when all intervals of a relation were of one width, and those of today, on test.
Here the models differ as well: on HN-YG the better model explains the gain, as the tables above show. Raw:
`raw/interval-width-before.json`, `raw/interval-coverage-benchmarks.json`, and `measurements-test.json` of the packaged
run.

| graph | then | truth inside | width | now | truth inside | width | change |
|---|---|---|---|---|---|---|---|
"""
UNLIKE = """### Questions unlike all others

How often the rule says that a question is about a thing of another kind than the relation is known of, and claims no
interval: of questions of validation, where it should hardly ever, and of questions about things of other kinds, where
it nearly always should. Kinds are the types of `world`; in the others, who has a few telling relations. Three constants
of the rule were chosen on these splits. `python -m benchmarks.unlike_heads`; raw: `raw/unlike-heads.json`.

| graph | held out | held out, numbers | of another kind | of another kind, numbers |
|---|---|---|---|---|
"""
PROPOSALS = """## Facts that are missing

`world` split afresh three times (`hynt.load_graph("world").resplit(seed=40)`, `41`, `42`), `hynt` trained two minutes
each on a busy core, then `python -m benchmarks.missing_quality RUN …`: test is hidden, and what it does not confirm
counts as wrong. The standard error takes relations for what is drawn: their proposals are right or wrong together. With
nothing hidden nothing is proposed; the surest guess has a probability of {surest}. Raw: `raw/missing-world.json`.
"""
STATED = """
What `complete --missing` says itself of each split: how many should be true, as a share of the proposals, and its
bounds nine times in ten.

| split | probability | proposals | said | between | confirmed |
|---|---|---|---|---|---|
"""
AUDITS = """## Finding planted errors

2 % of the facts of a copy were altered, a quarter of them in each of four ways, and audited with a short schedule:
`python -m benchmarks.audit_quality --graph GRAPH --preset PRESET --epochs 20 --out FILE`. By chance, precision and
average precision would be 0.02, and 0.005 for one kind. Raw: `raw/audit-*.json`. Those of `world` are of the preset as
it was before: with `--set log_relations=[] --set model.number_of_hidden_relation=relation`, which shows the number in
questions for its relation.
"""
SMALL = """## Settings for small graphs

Validation splits, one seed, processor seconds of one core: `python -m benchmarks.own_graph`. `preset world` and
`before` are earlier rules, `now` is the one in use. Raw: `raw/own-graph.json`.
"""
WORLD = """## All models on world

`hynt compare --graph world --models all --minutes-per-model 1.5 --processor-time --device cpu --out compared`, test
split, seed 0. Raw: `raw/world-comparison.json`.
"""
SPEED = """## Speed of the models

Each model alone, facts per second of training and questions per second of test: `python -m benchmarks.model_speed`.
"""
MACHINES = {
    "model-speed-cpu": "`world`, small presets, two CPU cores",
    "model-speed-h200": "HN-YG, the papers' sizes and batches, one NVIDIA H200",
    "model-speed-h200-four": "the same, in a second run",
    "model-speed-h200-later": "the same, later: fewer kernels a step, and TF32 products",
    "long-facts": "1,000 generated facts, the longest with 358 qualifiers, one epoch, one CPU core",
}
PAPER_START = """# The paper's tables

Look up what each model reaches here beside what the HyNT paper prints, in brackets. Figures within .010 of the paper's,
or better, are **bold**: {counts}.

Test split, realistic ties, one seed for baselines. A baseline is trained once for all columns; its weights have the
best link MRR on validation. The last column is filled where a row falls short, or its time ended before the authors'
schedule did: epochs, settings compared on validation, and the epoch at which validation was best. A model that was run
more than once stands with the run that finished the schedule, else with the one that validated best; the others are in
`raw/baselines-aside.json`.

`python -m benchmarks.paper TABLE` prints a table of the paper with Hits@k, deviations and differences; `rows` prints
the next four, `costs` what each row cost and changed, and `--run` makes rows anew. The raw files hold each row's
commands, and `tools/results_pages.py` makes this page from them.

"""
SHORT = """## Why rows fall short

Each baseline's loss is held against one worked out by hand (`tests/models/test_losses_*.py`): negatives, labels,
smoothing and means are those of the papers. What differs, as far as it is known, of HN-YG where nothing else is said:

- **Relations of `gran`, `neuinfer`, `hinge`.** Three of four numbers in the test split never occur in training. As
  the masked node (GRAN) or as a row that training never moves, such a number hides the relation beside it. Read as
  the mean of all literals instead (`model.unseen=mean`, `raw/unseen-literals.json`), small models gain .088, .049 and
  .008 of MRR, and GRAN .069. What is left of the difference is not known for GRAN: after 177 of its 200 epochs links
  were still best at epoch 40 (.164; end .155), where relations have .779 / .804 (`raw/baselines-aside.json`). HINGE's
  schedule was cut, and the row of `neuinfer` is from before that.
- **Links of `tnalp`, `hinge`, `neuinfer`.** With the authors' settings, which `nalp`, `tnalp` and `hinge` now have,
  all were still rising on validation when their time ended, side by side with other trainings: `tnalp` .076, .083,
  .086 after 250, 500 and 628 of 5,000 epochs, `hinge` .062, .080, .101, .089, .106, .104, .111 after 100 to 692 of
  1,000. `neuinfer` so reaches .082 after 704 of 5,000 (`raw/evidence-hn-yg-neuinfer.json`), and relations .624 /
  .613; its row, which validates better, has another loss, rate and batch.
- **Links of `kbln` and `literale`.** `kbln`: eight of the paper's twelve settings of links for the whole 100 epochs,
  each validated 50 times. The first is best: .099 after 30 epochs, and .135 to .143 from epoch 58 on, so more time
  would not help. Nor does it help to read literals raw, or to learn the answers of both directions as one question, as
  the released code does; leaving out the other answers in both directions, as it does too, gives .005 (on validation,
  `raw/tried-kbln.json`). `literale` has the best of five validations. Leaving qualifiers out of the filter changes
  nothing: the frequency row has .1187 either way. The paper does not say whether models of triplets are asked for the
  heads of numbers, 28 % of the questions; without these the frequency row has .1638, and `kbln` .1919.
- **The time of the authors' schedules.** At the [speeds of one H200](measured.md#speed-of-the-models) they take 6 to
  41 seconds for `transea`, `kbln`, `literale`, `hy-transformer` and `mt-kgnn`, 140 for `gran`, 206 for `hinge`, 225
  for `ram`, and 10 minutes for `nalp`, 13 for `neuinfer`, 14 for `stare` and 17 for `tnalp`, where the goal was 4;
  the last three were timed before, with float32 products and more kernels a step. `nalp`, `tnalp` and `neuinfer` take
  2.4 million steps. To read and write weights, gradients and moments alone, nine passes over 35 to 39 MB, takes 73 to
  82 µs a step at 4.3 TB/s, three minutes in all; a step of `nalp` takes 242. Side by side on one card, as most rows
  here, they take many times that.
- **WD50K and WikiPeople-.** No row that falls short finished its schedule in the minutes it had of an H200 that
  others shared: `gran` ran 24 and 12 of 200 epochs, models with negatives 8 to 323 of 1,000 to 5,000, most of them
  best at the end. `stare` on WikiPeople- fell from .323 after 88 epochs to .174: its batches were 16 times the
  authors', its rate ten times.
- **Numbers of `ram` and `neuinfer`.** A row's weights are those with the best links, which suit numbers by chance:
  NeuInfer with the authors' settings has .0982 / .1148 after 704 epochs (`raw/evidence-hn-yg-neuinfer.json`).
- **Numbers of `kbln` and `literale`.** The mean of each relation has .1019, better than the paper's. `literale` says
  no more than that. The head of `kbln` starts there and is worse after its 100 epochs at a rate of .01; the paper's
  other rate and length were not tried with it.

"""
NOT_RUN = """## Not run

HN-FB-S and HN-FB cannot be had whole, so nothing was run there. Table 3 has no figures; its like is in
[HyNT's results](hynt.md#what-qualifiers-do). Rows of the paper that have no counterpart here:

"""
EVIDENCE_START = """# What papers leave out

See whether numbers help links, whether probabilities hold, and which differences are more than chance. Made from the
raw files by `tools/results_pages.py`; `python -m benchmarks.paper NAME` prints one table, and `benchmarks.reproduce
--evidence` adds what it needs to any row.

Rows of `world` had 20 seconds of one busy core each: they say whether promises hold, not how good a model can become.
Those of HN-YG and HN-WK-resplit trained on the H200, baselines and `hynt` for 8 to 704 epochs, side by side and many
for two minutes alone: the [paper's tables](baselines.md) have longer runs. All are of one seed, so differences of a few
thousandths may be chance. What shuffled numbers cost `hynt-inductive` on validation is on
[its page](hynt-inductive.md#what-was-tried).

Not run, or run without what a table needs:

"""
RELATIONS_START = """# Relations of `world`

Look up what each relation of the [embedded graph](world.md) says, how often it is used, and in which unit. Made from
the graph and its builder by `tools/results_pages.py`; a test keeps it up to date. Dates have the unit `date`.

| relation | as tail | as qualifier | unit | scale | what it says |
|---|---:|---:|---|---|---|
"""


def pages() -> dict[Path, str]:
    """The text of each page by its place."""
    return {
        RESULTS / "measured.md": measured(),
        RESULTS / "baselines.md": baselines(),
        RESULTS / "evidence.md": evidence(),
        RESULTS.parent / "background" / "world-relations.md": world_relations(),
    }


def world_relations() -> str:
    """The page of the embedded graph's relations."""
    graph = hynt.read_graph("world")
    tails, uses = Counter[str](), Counter[str]()
    for fact in graph.facts():
        tails[fact.relation] += 1
        uses.update(qualifier.relation for qualifier in fact.qualifiers)
    scales = {row["relation"]: row["scale"] for row in graph.statistics().to_mapping(graph)["numbers"]}
    rows = [
        f"| {name} | {tails[name] or ''} | {uses[name] or ''} | {one.unit} | {scales.get(name, '')} | "
        f"{one.description} |"
        for name, one in sorted(RELATIONS.items())
        if tails[name] or uses[name]
    ]
    return RELATIONS_START + "\n".join(rows) + "\n"


def baselines() -> str:
    """The page of the paper's tables."""
    files, rows = RawFiles(RAW), row_grids(RawFiles(RAW))
    counts = [f"{near} of {of} on {graph}" for graph, near, of in map(_near, rows) if of]
    lacking = "\n".join(f"- {line}" for line in not_run(files))
    parts = [
        f"## Table {number}: {table.title[0].lower()}{table.title[1:]}\n\n{grids.markdown(paper_grids(number, files))}"
        for number, table in PAPER.items()
        if table.name in ("graphs", "attributes", "discrete-numbers", "ablations")
    ]
    start = PAPER_START.format(counts=", ".join(counts))
    return start + grids.markdown(rows, level=2) + "\n" + SHORT + NOT_RUN + lacking + "\n\n" + "\n".join(parts)


def _near(grid: grids.Grid) -> tuple[str, int, int]:
    """A graph, how many figures come near the paper's, and of how many."""
    compared = [one for one in grid.records if one["paper"] is not None and one["ours"] is not None]
    return grid.title, sum(one["is_near"] for one in compared), len(compared)


def evidence() -> str:
    """The page of tables that papers leave out."""
    parts = []
    for name, (title, table) in BEYOND.items():
        found = [grid for grid in table(RawFiles(RAW)) if grid.rows]
        told = grids.markdown(found) if found else "Nothing was run.\n"
        parts.append(f"## {title}\n\n`python -m benchmarks.paper {name}`\n\n{told}")
    lacking = "\n".join(f"- {line}" for line in not_run_beyond(RawFiles(RAW)))
    return EVIDENCE_START + lacking + "\n\n" + "\n".join(parts)


def measured() -> str:
    """The page of measured tables."""
    audits = [
        f"### {path.stem.removeprefix('audit-')}\n\n{audit_tables(raw(path.stem))}\n"
        for path in sorted(RAW.glob("audit-*.json"), reverse=True)
    ]
    compared = comparison("world-comparison")
    parts = [
        START,
        INTERVALS + "\n".join(interval_rows()) + "\n",
        THIRDS + "\n".join(third_rows()) + "\n",
        hardest_third(),
        WIDTHS_BEFORE + "\n".join(width_rows()) + "\n",
        UNLIKE + "\n".join(unlike_rows()) + "\n",
        missing_facts(),
        AUDITS,
        *audits,
        f"{SMALL}\n{small_graph_table(read_results(RAW / 'own-graph.json'))}",
        SPEED,
        *(
            f"### {said}\n\nRaw: `raw/{name}.json`.\n\n{speed_table(raw(name), by_processor=name == 'long-facts')}\n"
            for name, said in MACHINES.items()
        ),
        f"{WORLD}\n{markdown(quality_table(compared))}\n\n{markdown(cost_table(compared))}\n",
    ]
    return "\n".join(part.rstrip() + "\n" for part in parts)


def interval_rows() -> list[str]:
    """One row per run whose intervals were measured."""
    rows = []
    named = {"world": "`world`, {model}", "benchmarks": "{}, {model}", "h200": "{}, the authors' settings"}
    for name, words in (named | {"small": "{}, small"}).items():
        for told in raw(f"interval-coverage-{name}")["runs"]:
            found = told["measured"]
            cells = [words.format(told["graph"], model=told["model"])]
            for task in ("link", "relation"):
                errors = [found[task][f"calibration_error_{when}"] for when in ("before", "after") if task in found]
                cells.append(" → ".join(_short(error, 4) for error in errors))
            level = found["number"]["levels"]["0.9"]
            coverage, width = f"{100 * level['coverage']:.1f} %", _short(level["mean_width"], 3)
            before = told.get("one_width_each")
            cells += [f"{found['number']['questions']:,}", coverage, width]
            rows.append("| " + " | ".join([*cells, _short(before["mean_width"], 3) if before else ""]) + " |")
    return rows


def third_rows() -> list[str]:
    """Three rows per run: intervals made for the question, and those of one width for each relation."""
    rows = []
    kinds = {
        "for_the_question": "for the question",
        "one_width_each": "one width per relation",
        "one_width_each_same_ends": "the same, ended alike",
    }
    for told in raw("interval-thirds")["runs"]:
        for kind, words in kinds.items():
            one = told["thirds"][kind]
            score, mean, median = (_short(one[name]["mean"], 3) for name in ("score", "width", "median_width"))
            inside, *thirds = (f"{100 * part['coverage']['mean']:.1f} %" for part in (one, *one["thirds"]))
            cells = [f"{told['graph']}, {told['model']}", words, score, f"{mean}, {median}", inside, ", ".join(thirds)]
            rows.append(f"| {' | '.join(cells)} |")
    return rows


def hardest_third() -> str:
    """Why the mean width on HN-YG is what it is."""
    (told,) = [one["thirds"] for one in raw("interval-thirds")["runs"] if one["graph"] == "HN-YG"]
    ours, one = (
        [part["width"]["mean"] for part in told[kind]["thirds"]] for kind in ("for_the_question", "one_width_each")
    )
    easy, one_easy = sum(ours[:2]) / 2, sum(one[:2]) / 2
    return HARDEST.format(
        share=100 * ours[2] / sum(ours),
        narrower=100 * (1 - easy / one_easy),
        easy=_short(easy, 3),
        one_easy=_short(one_easy, 3),
        hard=_short(ours[2], 3),
        one_hard=_short(one[2], 3),
        held=100 * told["one_width_each"]["thirds"][2]["coverage"]["mean"],
    )


def width_rows() -> list[str]:
    """A row per graph: the intervals on file when all were of one width, and today's."""
    now = {
        one["graph"]: (one["model"], one["measured"]["number"]["levels"]["0.9"])
        for one in raw("interval-coverage-benchmarks")["runs"]
    }
    packaged = json.loads((PACKAGED / "measurements-test.json").read_text(encoding="utf-8"))
    now["world"] = ("the packaged run", packaged["coverage"]["levels"]["0.9"])
    rows = []
    for then in raw("interval-width-before")["runs"]:
        model, level = now[then["graph"]]
        change = f"{100 * (level['mean_width'] / then['mean_width'] - 1):.0f} %".replace("-", "−")
        cells = [then["graph"], then["model"], f"{100 * then['coverage']:.1f} %", _short(then["mean_width"], 3)]
        cells += [model, f"{100 * level['coverage']:.1f} %", _short(level["mean_width"], 3), change]
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def unlike_rows() -> list[str]:
    """A row per graph: the shares of questions that are told to be unlike all others."""
    kinds = ("held out", "held out, numbers", "of another kind", "of another kind, numbers")
    rows = []
    for one in raw("unlike-heads")["graphs"]:
        shares = (f"{100 * one[kind]['unlike']:.2f} %" for kind in kinds)
        rows.append(f"| {one['graph']} | {' | '.join(shares)} |")
    return rows


def missing_facts() -> str:
    """The section of proposals: of all splits together, and what runs say themselves of each."""
    told = raw("missing-world")
    surest = max(one["nothing_hidden"]["surest"] for one in told["runs"])
    rows = []
    for number, run in enumerate(told["runs"], 1):
        for one in run["stated"]:
            said, low, high, confirmed = (_short(one[name], 3) for name in ("said", "low", "high", "confirmed"))
            cells = (
                str(number),
                f"at least {one['least']:g}",
                str(one["proposals"]),
                said,
                f"{low} and {high}",
                confirmed,
            )
            rows.append(f"| {' | '.join(cells)} |")
    start = PROPOSALS.format(surest=_short(surest, 2))
    return f"{start}\n{proposal_table(told['precision'])}\n{STATED}" + "\n".join(rows) + "\n"


def raw(name: str) -> dict[str, Any]:
    """What the one row of a raw file measured."""
    return read_measured(RAW / f"{name}.json")


def comparison(name: str) -> dict[str, Any]:
    """A raw file as `hynt compare` would tell of it."""
    rows = read_results(RAW / f"{name}.json").rows
    trials = [trial_of_row(row, run) for row in rows if row.settings for run in row.runs]
    return {"rows": trials, "trivial": {row.name: trial_of_row(row, row.runs[0]) for row in rows if not row.settings}}


def _short(number: float, digits: int) -> str:
    return f"{number:.{digits}f}".removeprefix("0")


if __name__ == "__main__":
    for page, text in pages().items():
        page.write_text(text, encoding="utf-8", newline="\n")
        print(f"{page.name}: {len(text.splitlines())} lines")
