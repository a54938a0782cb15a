"""Every state of the page of questions has an address, and every button leads to another one. No browser needed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hynt.graph.units.conversion import with_display
from hynt.service.pages.answers import field_of, rounded_texts
from hynt.service.pages.questions import BLANK, MOST_QUALIFIERS, TOPS, AskedForm, beginnings, changed, written_number
from tests.browser.hostile_names import hostile_graph

texts = st.text(min_size=0, max_size=20).map(str.strip)
pairs = st.lists(st.tuples(texts, texts), max_size=5).map(tuple)
forms = st.builds(
    AskedForm,
    texts,
    texts,
    texts,
    pairs,
    st.sampled_from(TOPS),
    st.sampled_from([(), ("type",), ("type", "unknown")]),
    st.booleans(),
)


def read(address: str) -> AskedForm:
    return AskedForm.read(parse_qsl(urlsplit(address).query, keep_blank_values=True))


@given(forms)
def test_an_address_says_the_whole_state(form):
    assert read(form.address) == form


@given(forms, st.sampled_from(["head", "relation", "tail", "0r", "0v", "1v"]))
def test_there_is_one_blank_after_asking_for_a_part(form, place):
    moved = form.with_blank(place)
    if place in form.places():
        assert moved.blanks() == 1
        assert moved.part(place) == BLANK
    kept = [one for one in form.places() if one != place and form.part(one) != BLANK]
    assert all(moved.part(one) == form.part(one) for one in kept)


@given(forms)
def test_rows_come_and_go(form):
    assert form.with_qualifier().without(len(form.qualifiers)) == form
    assert changed(form, {"add": "1"}) == form.with_qualifier()
    assert changed(form, {"remove": "0"}) == form.without(0)
    assert changed(form, {"remove": "x"}) == form
    assert changed(form, {}) is None


@pytest.mark.parametrize("junk", ["-1", "99999999999999999999", "x", "", "9v9", "0x", "²v"])
def test_odd_places_change_nothing(junk):
    form = AskedForm("a", "b", BLANK, (("c", "d"),))
    assert form.put(junk, "z") == form
    assert changed(form, {"remove": junk}) == form


def test_odd_addresses_fall_back():
    assert read("/ask?top=7&candidates=evil&qualifier=a") == AskedForm(qualifiers=(("a", ""),))
    assert read("/ask?top=²").top == TOPS[0]
    many = "&".join("qualifier=a&value=b" for _ in range(MOST_QUALIFIERS + 9))
    assert len(read(f"/ask?{many}").qualifiers) == MOST_QUALIFIERS


def test_what_is_missing_is_named():
    form = AskedForm("Japan", "", BLANK, (("sex", ""), ("", "2024"), ("", "")))
    assert form.missing() == ["relation", "value of qualifier 1", "relation of qualifier 2"]
    assert form.filled.qualifiers == (("sex", ""), ("", "2024"))
    assert AskedForm().is_empty


def test_variants_leave_out_one_qualifier_each():
    form = AskedForm("Japan", "life expectancy", BLANK, (("sex", "female"), ("point in time", "2024"), ("", "")))
    told = [(without, variant.qualifiers) for without, variant in form.variants()]
    assert told == [
        ("", (("sex", "female"), ("point in time", "2024"))),
        ("sex female", (("point in time", "2024"),)),
        ("point in time 2024", (("sex", "female"),)),
        ("all qualifiers", ()),
    ]
    hidden = AskedForm("Japan", "life expectancy", "80", (("sex", BLANK), ("point in time", "2024")))
    assert [variant.blanks() for _, variant in hidden.variants()] == [1, 1, 1], "the blank itself is never left out"
    assert len(replace(form, qualifiers=()).variants()) == 1


@pytest.mark.parametrize(
    "pointer, place",
    [
        ("#/head", "head"),
        ("#/questions/0/tail", "tail"),
        ("#/questions/3/qualifiers/2/value", "2v"),
        ("#/qualifiers/0/relation", "0r"),
        ("#/qualifiers/1", "1v"),
        ("#/top", ""),
        ("", ""),
    ],
)
def test_faults_find_their_field(pointer, place):
    assert field_of(pointer) == place


def test_numbers_show_as_many_digits_as_their_interval_is_sure_of():
    texts = {"text": "84.8 years", "low_text": "78.5 years", "high_text": "91 years"}
    answer = {"unit": "year", "value": 84.76781, "low": 78.51287, "high": 91.02256, **texts}
    shown = {"value": "84.8 years", "low": "78.5 years", "high": "91 years"}
    assert rounded_texts(answer) == shown
    date = {"unit": "date", "value": 1995.5, "low": None, "high": None, "text": "1995-07-02"}
    assert rounded_texts(date) == {"value": "1995-07-02"}


def test_dates_are_written_as_they_are_read():
    assert written_number(1995.0, "date") == "1995"
    assert written_number(-43.0, "date") == "-0043"
    assert written_number(0.0, "date") == "0000"
    assert written_number(80.5, "kg") == "80.5"
    assert written_number(1300.0, with_display("m", "km"), "1.3 km") == "1.3 km"
    assert written_number(1300.4, with_display("m", "km"), "1.3 km") == "1300.4", "what is rounded is another number"
    assert written_number(1300.0, "m", "1.3 furrows") == "1300"


def test_beginnings_can_be_asked():
    found = beginnings(hostile_graph())
    assert len(found["entities"]) == 8
    for one in found["questions"]:
        form = read(one["address"])
        assert (form.blanks(), form.missing()) == (1, [])
        assert BLANK in one["text"]
    assert [one["address"].startswith("/trends?head=p") for one in found["trends"]] == [True], "one relation has dates"


def test_pages_need_no_torch():
    """The HTTP process stays small: the model lives in a process of its own."""
    loaded = "import sys, hynt.service.pages.routes; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", loaded], check=False).returncode == 0
