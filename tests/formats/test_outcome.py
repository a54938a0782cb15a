"""What a source may hold that nobody marked is said, with the option that marks it, and marked when asked for."""

from __future__ import annotations

import pytest

from hynt.formats.format import ReadOptions
from hynt.formats.importing import ImportOptions, check_source, read_graph
from hynt.graph.fact import Number

TABLE = "head,relation,tail,share,since\nA,height,1.8,5 %,1990-02\nB,height,-1e3,unknown,2001-01-31\nA,knows,B,,\n"
TRIPLES = "/m/1\tlongitude\t9.7\n/m/2\tlongitude\t-3\n/m/1\tnear\t/m/2\n"


def hints(text, folder, format_name="csv-edges", **options):
    path = folder / "facts"
    path.write_text(text, encoding="utf-8")
    return check_source(path, format_name, ImportOptions(ReadOptions(**options)))[0].hints


def test_unmarked_numbers_and_dates_are_hinted_at_with_the_option(tmp_path):
    assert hints(TABLE, tmp_path) == [
        "values of height are written like numbers and were read as names. If they are numbers, add: --numeric height",
        "values of since are written like dates and were read as names. If they are dates, add: --dates since",
    ]
    assert hints(TABLE, tmp_path, numeric=("height",), dates=("since",)) == []
    assert hints('head,relation,tail,"a b,c"\nA,knows,B,7\n', tmp_path)[0].endswith("""add: --numeric '"a b,c"'""")


def test_triples_with_numbers_are_hinted_at_when_they_are_imported(tmp_path):
    """The `tsv` of a file of literals made an entity of every number, and nothing said so until `train`."""
    assert hints(TRIPLES, tmp_path, "tsv") == [
        "values of longitude are written like numbers and were read as names. "
        "If they are numbers, add: --numeric longitude"
    ]


def test_names_that_only_spaces_tell_apart_are_said(tmp_path):
    rows = "head,relation,tail\nAnn ,knows,Bob\nAnn,knows , Bob\nEve ,knows,Bob\n"
    (names, relations) = hints(rows, tmp_path)
    assert names == (
        "2 names of entities are another's but for spaces at their ends, such as 'Ann ' and 'Ann'. They were kept "
        "apart: take the spaces away in the source if they mean the same."
    )
    assert relations.startswith("1 name of relations is another's but for spaces at its ends, such as 'knows ' and ")


def test_hints_are_short_however_many_relations_there_are(tmp_path):
    lines = "".join(f"e\thttp://example.org/ns/some.rather.long.name.{number}\t{number}\n" for number in range(50))
    (hint,) = hints(lines, tmp_path, "tsv")
    assert len(hint) <= 300
    assert hint.endswith(
        "and 45 more are written like numbers and were read as names. If they are numbers, add: --numeric auto"
    )


def test_ids_are_no_numbers(tmp_path):
    assert hints("source,target,type\n1,2,knows\n2,3,knows\n", tmp_path) == []
    assert hints(":START_ID,:END_ID,:TYPE\n1,2,knows\n", tmp_path) == []


@pytest.mark.parametrize("format_name, text", [("tsv", TRIPLES), ("csv-edges", TABLE)])
def test_auto_marks_what_the_hint_would_name(tmp_path, format_name, text):
    path = tmp_path / "facts"
    path.write_text(text, encoding="utf-8")
    graph = read_graph(path, format_name, ImportOptions(ReadOptions(numeric=("auto",), dates=("auto",))))
    named = read_graph(path, format_name, ImportOptions(ReadOptions(numeric=("longitude", "height"), dates=("since",))))
    assert set(graph.facts()) == set(named.facts())
    assert {fact.relation for fact in graph.facts() if isinstance(fact.tail, Number)} <= {"longitude", "height"}
    assert len([fact for fact in graph.facts() if isinstance(fact.tail, Number)]) == 2


def test_a_declared_relation_of_any_format_holds_numbers(tmp_path):
    path = tmp_path / "facts"
    path.write_text(TRIPLES, encoding="utf-8")
    options = ImportOptions(ReadOptions(numeric=("longitude", "latitude")))
    report, outcome = check_source(path, "tsv", options)
    assert outcome["counts"]["number_relations"] == 1
    assert report.noted == {"unused-name": 1}
    assert "'latitude' is neither a column nor a relation here." in report.notes[0].what
    path.write_text(TRIPLES + "/m/3\tlongitude\teast\n", encoding="utf-8")
    report, _ = check_source(path, "tsv", options)
    assert report.rejected == {"bad-number": 1}
    assert report.problems[0].where.endswith("facts:4")
