"""`hynt data check`: problems with their places, a summary without them, and nothing changed."""

from __future__ import annotations

import json

import pytest


def test_a_good_source_has_a_summary(hynt, source):
    before = sorted(path.name for path in source.parent.rglob("*"))
    done = hynt("data", "check", source, "--format", "jsonl")
    assert (done.code, done.err) == (0, "")
    assert "7 records read, 7 kept, 0 rejected." in done.out
    assert "1 duplicate dropped." in done.out
    assert "Nothing stands in the way of an import." in done.out
    assert sorted(path.name for path in source.parent.rglob("*")) == before


def test_the_summary_as_json(hynt, source):
    found = hynt("data", "check", source, "--format", "jsonl", "--json").json
    assert (found["ok"], found["read"], found["kept"], found["rejected"]) == (True, 7, 7, {})
    outcome = found["outcome"]
    assert outcome["duplicates"] == 1
    assert outcome["missing_from_train"] == {"entities": 0, "relations": 0}
    assert outcome["counts"]["entities"] == 5
    assert outcome["leakage_left"] == []


def test_numbers_that_nobody_marked_are_hinted_at_once(hynt, tmp_path):
    for split in ("train", "valid", "test"):
        (tmp_path / f"{split}.csv").write_text("head,relation,tail\nJapan,land area,377975\nJapan,capital,Tokyo\n")
    done = hynt("data", "check", tmp_path, "--format", "csv-edges", "--json")
    assert done.json["hints"] == [
        "values of land area are written like numbers and were read as names. "
        "If they are numbers, add: --numeric 'land area'"
    ]
    assert done.err == f"note: {done.json['hints'][0]}\n"
    marked = hynt("data", "check", tmp_path, "--format", "csv-edges", "--numeric", "land area")
    assert (marked.code, marked.err) == (0, "")


def test_a_format_that_cannot_be_told_is_asked_for(hynt, source, tmp_path):
    assert "Read as jsonl." in hynt("data", "check", source).out
    (tmp_path / "facts.txt").write_text("nothing that any format has\n\n")
    done = hynt("data", "check", tmp_path / "facts.txt")
    assert done.code == 2
    assert "no format can be told" in done.err


def test_the_first_twenty_problems_and_a_count_per_reason(hynt, tmp_path):
    bad = ['{"head": "a", "relation": "r", "tail": 1e999}'] * 15 + ['{"head": "a"}'] * 10
    (tmp_path / "bad.jsonl").write_text("\n".join(['{"head": "a", "relation": "r", "tail": 1}', *bad]) + "\n")
    done = hynt("data", "check", tmp_path / "bad.jsonl", "--format", "jsonl")
    assert done.code == 1
    assert "26 records read, 1 kept, 25 rejected." in done.out
    assert f"{tmp_path}/bad.jsonl:2: bad-number:" in done.out
    assert f"{tmp_path}/bad.jsonl:17: missing-key: the key 'relation' is missing." in done.out
    assert "what to do: A fact has a head, a relation and a tail." in done.out
    assert "these are the first 20" in done.out
    assert "By reason: bad-number 15, missing-key 10" in done.out
    found = hynt("data", "check", tmp_path / "bad.jsonl", "--format", "jsonl", "--json")
    assert found.code == 1
    assert (found.json["ok"], len(found.json["problems"]), found.json["outcome"]) == (False, 20, None)
    assert found.json["rejected"] == {"bad-number": 15, "missing-key": 10}
    assert found.json["problems"][0].keys() == {"where", "reason", "what", "advice"}


def test_facts_in_two_splits_and_names_that_train_lacks_are_told(hynt, tmp_path):
    for split, tails in {"train": "bc", "valid": "bd", "test": "c"}.items():
        lines = [json.dumps({"head": "a", "relation": "r", "tail": tail}) for tail in tails]
        (tmp_path / f"{split}.jsonl").write_text("\n".join(lines) + "\n")
    done = hynt("data", "check", tmp_path, "--format", "jsonl")
    assert done.code == 0
    assert "Facts in two splits: train and valid 1, train and test 1, valid and test 0." in done.out
    assert "Train lacks 1 entity and 0 relations of the others." in done.out
    refused = hynt("data", "check", tmp_path, "--format", "jsonl", "--across-splits", "error")
    assert refused.code == 1
    assert "in two splits at once: 2 facts " in refused.err


def test_leakage_is_told(hynt, tmp_path):
    lines = [f"h{at}\tparent of\tt{at}\n" for at in range(20)] + [f"t{at}\tchild of\th{at}\n" for at in range(20)]
    (tmp_path / "family.tsv").write_text("".join(lines))
    done = hynt("data", "check", tmp_path / "family.tsv", "--format", "tsv")
    assert "child of is an inverse of parent of: 20 shared pairs of 20 and 20 (overlap 1.00)" in done.out
    assert "--remove-leakage" in done.out


def test_odd_things_are_noted_and_strict_refuses_them(hynt, tmp_path):
    (tmp_path / "train.txt").write_text('1\nA\twasBornOnDate\t"2016-20-11"^^xsd:date\n')
    done = hynt("data", "check", tmp_path, "--format", "hynt")
    assert done.code == 0
    assert "Odd, but kept (--strict refuses it): impossible-date 1" in done.out
    strict = hynt("data", "check", tmp_path, "--format", "hynt", "--strict")
    assert strict.code == 1
    assert "impossible-date 1" in strict.out


@pytest.mark.parametrize("name", ["\x1b[31mred", "[bold]x[/bold]", "a\u202eb"])
def test_names_from_data_are_shown_not_obeyed(hynt, tmp_path, name):
    (tmp_path / "x.jsonl").write_text(json.dumps({"head": "a", "relation": name, "tail": 1, "more": 2}) + "\n")
    done = hynt("data", "check", tmp_path / "x.jsonl", "--format", "jsonl")
    assert done.code == 1
    assert "\x1b" not in done.out
    assert "\u202e" not in done.out


def test_what_to_do_is_said_once_of_problems_in_a_row(hynt, tmp_path):
    (tmp_path / "clubs.csv").write_text('club,seats\nA,many\nB,few\nC,"1,5"\nD,none at all\n')
    done = hynt("data", "check", tmp_path / "clubs.csv", "--wide", "--head", "club", "--numeric", "seats")
    told = " ".join(done.out.split())
    assert done.code == 1
    assert [f"clubs.csv:{line}: bad-number" in told for line in (2, 3, 4, 5)] == [True] * 4
    assert told.count("what to do: Write a finite decimal number") == 1
