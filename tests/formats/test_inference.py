"""The format of a source is known where its names and first lines leave no doubt; where two fit, both are shown."""

from __future__ import annotations

import pytest

from hynt.errors import DataError, UsageError
from hynt.formats.format import ReadOptions
from hynt.formats.importing import ImportOptions, read_graph
from hynt.formats.inference import infer_format
from hynt.graph.fact import Fact, Number, Qualifier

KNOWN = {
    "facts.ttl": ("<http://x/a> <http://x/b> <http://x/c> .", "rdf"),
    "facts.nt.gz": ("", "rdf"),
    "facts.jsonl": ('{"head": "a", "relation": "r", "tail": "b"}', "jsonl"),
    "broken.jsonl": ('{"head": "a", "relation": "r", "tail": "b', "jsonl"),
    "facts.json": ('{"P1_h": "a", "P1_t": "b", "N": 2}', "nary-json"),
    "gran.json": ('{"N": 2, "relation": "r", "subject": "a", "object": "b"}', "nary-json"),
    "apoc.json": ('{"type": "node", "id": "1", "labels": ["A"], "properties": {}}', "graph-json"),
    "nodes.json": ('{\n "nodes": [],\n "edges": []\n}', "graph-json"),
    "facts.csv": ("source,target,type\na,b,r\n", "csv-edges"),
    "neo4j.csv": (":START_ID;:END_ID;:TYPE\n1;2;R\n", "csv-edges"),
    "wd50k.txt": ("Q1,P1,Q2\nQ1,P1,Q2,P3,Q4\n", "stare"),
    "count.txt": ("1\nQ1\tP1\tQ2\n", "hynt"),
    "typed.txt": ('a\tarea\t"73.32"^^<km2>\n', "hynt"),
    "own.tsv": ("a\tweight\t=80 kg\n", "tsv"),
    "exported.tsv": ("head\trelation\ttail\na\tr\tb\n", "tsv"),
    "edges.tsv": ("head\trelation\ttail\tyear\na\tr\tb\t1999\n", "csv-edges"),
    "wn18rr.txt": ("00260881\t_hypernym\t00260622\n", "triples"),
    "fb15k.txt": ("/m/1\t/people/profession\t/m/2\n", "triples"),
    "spaces.txt": ("a r b\nb r c\n", "triples"),
    "icews14.txt": ("South Korea\tMake statement\tChina\t2014-05-05\n", "temporal"),
    "yago11k.txt": ("1\t2\t3\t1999-##-##\t####-##-##\n", "temporal"),
    "yago15k.txt": ('<a>\t<plays>\t<b>\n<a>\t<plays>\t<c>\t<occursSince>\t"2012-##-##"\n', "temporal"),
    "jf17k.txt": ("film.cast\ta\tb\nfilm.cast\ta\tb\tc\n", "hype"),
}


@pytest.mark.parametrize("name", KNOWN)
def test_what_is_certain_is_known(tmp_path, name):
    text, expected = KNOWN[name]
    (tmp_path / name).write_text(text)
    assert infer_format(tmp_path / name).name == expected


def test_a_folder_is_known_by_its_train_file(tmp_path):
    (tmp_path / "test.txt").write_text("a\tr\t5\n")
    (tmp_path / "train.txt").write_text("a\tr\tb\n")
    (tmp_path / "README.md").write_text("A graph.\n")
    assert infer_format(tmp_path).name == "triples"
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(UsageError, match="no file here that can be told to hold facts"):
        infer_format(empty)


def test_where_two_fit_both_are_shown(tmp_path):
    (tmp_path / "facts.txt").write_text("/m/1\tlongitude\t9.7\n")
    with pytest.raises(UsageError) as error:
        infer_format(tmp_path / "facts.txt")
    assert str(error.value) == (
        f"--format: {tmp_path}/facts.txt fits hynt and triples. As hynt, 9.7 is a number; as triples it is a name, "
        "or a number with --numeric auto. Say --format hynt or --format triples."
    )


def test_what_the_user_says_decides(tmp_path):
    (tmp_path / "facts.txt").write_text("/m/1\tlongitude\t9.7\n")
    assert infer_format(tmp_path / "facts.txt", ReadOptions(numeric=("auto",))).name == "triples"
    (tmp_path / "table.csv").write_text("country,year\nJapan,2020\n")
    assert infer_format(tmp_path / "table.csv", ReadOptions(wide=True, head="country")).name == "csv-edges"
    assert infer_format(tmp_path / "table.csv", ReadOptions(base="http://x.org/")).name == "rdf"
    with pytest.raises(DataError, match="cannot be read: no such file"):
        infer_format(tmp_path / "nowhere")


def test_what_is_said_of_a_table_leaves_other_files_what_they_are(tmp_path):
    facts, table = tmp_path / "facts.jsonl", tmp_path / "wide.csv"
    facts.write_text('{"head": "Japan", "relation": "capital", "tail": "Tokyo"}\n')
    table.write_text("country,population\nJapan,126\n")
    options = ReadOptions(wide=True, head="country", numeric=("population",))
    assert infer_format(facts, options).name == "jsonl"
    graph = read_graph([facts, table], "", ImportOptions(options))
    assert {"Japan · capital · Tokyo", "Japan · population · 126"} == set(graph["Japan"].texts())
    with pytest.raises(UsageError, match="the format jsonl has no option 'head'"):
        read_graph(facts, "", ImportOptions(options))


def test_what_no_format_has_is_refused_with_a_way_on(tmp_path):
    (tmp_path / "wide.csv").write_text("country,year,population\nJapan,2020,126\n")
    with pytest.raises(UsageError, match="name the columns with --head, --relation and --tail"):
        infer_format(tmp_path / "wide.csv")
    (tmp_path / "wide.tsv").write_text("country\tyear\tpopulation\nJapan\t2020\t126\n")
    with pytest.raises(UsageError, match=r"the columns 'country', 'year', 'population'\..* add: --wide --head country"):
        infer_format(tmp_path / "wide.tsv")
    (tmp_path / "names.tsv").write_text("Q1\tAnn\nQ2\tBob\n")
    with pytest.raises(UsageError, match=r"holds pairs and no facts\. Names of entities or relations"):
        infer_format(tmp_path / "names.tsv")
    (tmp_path / "dump.json").write_text('{"type": "item", "id": "Q1", "claims": {}}\n')
    with pytest.raises(UsageError, match="hynt create wikidata"):
        infer_format(tmp_path / "dump.json")


# What the plain formats make of published files.


def facts(folder, files, **options):
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    graph = read_graph(folder, "", **options)
    return graph, {split: set(graph.facts(split)) for split in graph.splits}


def test_triples_are_found_by_their_common_names(tmp_path):
    names = ["freebase_mtr100_mte100-train.txt", "freebase_mtr100_mte100-valid.txt", "freebase_mtr100_mte100-test.txt"]
    _, found = facts(tmp_path, dict.fromkeys(names, "/m/1\tr\t/m/2\n"))
    assert list(found) == ["train", "valid", "test"]
    for folder, files in {
        "bare": ("train", "val", "test"),
        "triples": ("train_triples.txt", "dev_triples.txt", "test_triples.txt"),
    }.items():
        place = tmp_path / folder
        place.mkdir()
        assert list(facts(place, dict.fromkeys(files, "a r b\n"))[1]) == ["train", "valid", "test"]


def test_hype_names_the_entities_beyond_the_second_by_their_place(tmp_path):
    files = {
        "train.txt": "cast\ta\tb\ncast\ta\tb\tc\td\nborn\ta\tp\tq\n",
        "test.txt": "cast\tb\ta\n",
        "test_2.txt": "cast\tb\ta\n",
    }
    graph, found = facts(tmp_path, files)
    assert found["train"] == {
        Fact("a", "cast", "b"),
        Fact("a", "cast", "b", (Qualifier("cast2", "c"), Qualifier("cast3", "d"))),
        Fact("a", "born", "p", (Qualifier("born2", "q"),)),
    }
    assert graph.manifest.importing["beside"] == ["test_2.txt"]


def test_times_become_qualifiers(tmp_path):
    text = (
        "a\tr\tb\t2014-05-05\n"
        "a\tr\tc\t1999-##-##\t2001-03-##\n"
        "a\tr\td\t####-##-##\t2003-##-##\n"
        'a\tr\te\t<occursSince>\t"2012-##-##"\n'
        "a\tr\tf\n"
        "a\tr\tg\t132\n"
        "a\tr\th\t24\t0\n"
    )
    graph, found = facts(tmp_path, {"facts.txt": text})
    times = {fact.tail: [(q.relation, q.value.value, q.value.unit) for q in fact.qualifiers] for fact in found["train"]}
    assert times["b"] == [("point in time", pytest.approx(2014 + 124 / 365), "date")]
    assert [name for name, _, _ in times["c"]] == ["start time", "end time"]
    assert times["d"] == [("end time", 2003.0, "date")]
    assert times["e"] == [("<occursSince>", 2012.0, "date")]
    assert times["f"] == []
    assert times["g"] == [("time", 132.0, "")]
    assert times["h"] == [("time", 24.0, "")]
    assert graph.manifest.importing["noted"] == {"open-end": 1, "unused-column": 1}


def test_ids_are_read_as_the_names_they_stand_for(tmp_path):
    maps = {"entity2id.txt": "2\nAnn\t0\nBob\t1\n", "relation2id.txt": "knows\t0\n"}
    _, found = facts(tmp_path, {**maps, "train2id.txt": "1\n0 1 0\n", "test2id.txt": "1\n1 0 0\n"})
    assert found == {"train": {Fact("Ann", "knows", "Bob")}, "test": {Fact("Bob", "knows", "Ann")}}
    place = tmp_path / "times"
    place.mkdir()
    _, found = facts(place, {**maps, "train.txt": "0\t0\t1\t24\n"})
    assert found["train"] == {Fact("Ann", "knows", "Bob", (Qualifier("time", Number(24.0, "24")),))}


def test_openke_needs_its_id_maps(tmp_path):
    (tmp_path / "train2id.txt").write_text("1\n0 1 0\n")
    with pytest.raises(DataError, match=r"mean nothing without entity2id\.txt"):
        read_graph(tmp_path, "openke")


def test_gran_says_subject_relation_and_object(tmp_path):
    line = '{"N": 3, "relation": "P166", "subject": "Q7186", "object": "Q38104", "P585": ["+1903-01-01T00:00:00Z"]}\n'
    _, found = facts(tmp_path, {"train.json": line})
    (fact,) = found["train"]
    assert fact[:3] == ("Q7186", "P166", "Q38104")
    assert fact.qualifiers[0].relation == "P585"


def test_an_empty_file_is_called_empty(tmp_path):
    (tmp_path / "facts.csv").touch()
    with pytest.raises(UsageError, match=r"facts\.csv is empty\. Give a file that holds facts"):
        infer_format(tmp_path / "facts.csv")


def test_a_list_in_json_is_refused_with_what_makes_lines_of_it(tmp_path):
    path = tmp_path / "facts.json"
    for text in ('[{"head": "a", "relation": "r", "tail": "b"}]', '[\n{"head": "a",\n"tail": "b"},\n{}\n]', "[\n"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match="this is one list in JSON") as problem:
            infer_format(path)
        assert "jq -c '.[]' FILE > FILE.jsonl" in problem.value.advice
    for text in ('[\n{"type": "item", "claims": {}},\n{}]\n', '{"type": "item", "claims": {}}\n'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match="this is Wikidata's JSON, of which a graph is created"):
            infer_format(path)


@pytest.mark.parametrize(
    ("start", "kind", "advice"),
    [
        (b"PK\x03\x04\x14", "a zip archive, as workbooks of Excel are", "save each sheet as CSV"),
        (b"SQLite format 3\0", "a database of SQLite", "as CSV"),
        ("head,relation,tail\n".encode("utf-16"), "text in UTF-16", "Save it as UTF-8"),
    ],
)
def test_what_people_have_and_no_format_reads_is_called_by_its_name(tmp_path, start, kind, advice):
    path = tmp_path / "facts.csv"
    path.write_bytes(start)
    for options in (None, ReadOptions(wide=True, head="head")):
        with pytest.raises(UsageError, match=f"is {kind}, which hynt does not read") as problem:
            infer_format(path, options)
        assert advice in problem.value.advice
