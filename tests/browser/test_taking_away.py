"""Many questions from a file, endpoints that are tried, answers that are copied: in a real browser."""

from __future__ import annotations

import csv
import json

from tests.browser.addresses import HEIGHT

TABLE = 'head,relation,tail,year\nPerson 1,height,?,2003\n@SUM(1),height,?,-2003\n"Person 2",spouse,?,\n'


def test_many_questions_from_a_file(visit, tmp_path):
    watched = visit("/bulk", "phone", "dark")
    page = watched.page
    (tmp_path / "questions.csv").write_text(TABLE)
    page.get_by_label("File").set_input_files(tmp_path / "questions.csv")
    page.get_by_role("button", name="Ask them").press("Enter")
    page.get_by_text("Done: 3 questions, 1 of them refused.").wait_for()
    assert "Question 2: the graph has no entity called" in page.locator(".faults").inner_text()
    assert not page.get_by_role("button", name="Stop").is_visible()
    watched.screenshot("bulk")
    watched.check_fits()
    watched.check_accessibility()
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Download as CSV").click()
    rows = list(csv.DictReader(downloading.value.path().read_text().splitlines()))
    assert [row["question"] for row in rows] == ["1", "2", "3"]
    assert rows[0]["text"].endswith("cm")
    assert "object" not in rows[0]["known"]
    assert "no entity called" in rows[1]["error"]
    assert rows[1]["head"] == "'@SUM(1)"  # a spreadsheet takes it for no formula
    assert rows[2]["name"].startswith("Person") or rows[2]["name"]
    lines = [{"head": "Person 1", "relation": "height", "tail": "?", "qualifiers": [["year", {"date": "2003"}]]}]
    (tmp_path / "questions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    page.get_by_label("File").set_input_files(tmp_path / "questions.jsonl")
    page.get_by_role("button", name="Ask them").click()
    page.get_by_text("Done: 1 questions.").wait_for()
    with page.expect_download() as downloading:
        page.get_by_role("button", name="Download as JSON lines").click()
    (row,) = map(json.loads, downloading.value.path().read_text().splitlines())
    assert row["text"] == rows[0]["text"]
    assert any("422" in text for text in watched.complaints)  # a browser says by itself that it was refused
    watched.complaints.clear()


def test_an_endpoint_is_tried_and_an_answer_copied(visit):
    watched = visit("/docs")
    page = watched.page
    page.locator("#post-v1-predict > summary").press("Enter")
    page.locator("#post-v1-predict").get_by_role("button", name="Try it").press("Enter")
    page.locator("#post-v1-predict .reply").wait_for()
    assert page.locator("#post-v1-predict [role=status]").inner_text().startswith("200 OK")
    assert '"answers"' in page.locator("#post-v1-predict .reply").inner_text()
    watched.screenshot("docs")
    watched.check_accessibility()
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(page.url.replace("/docs", HEIGHT))
    page.locator(".take summary").press("Enter")
    for name, told in (
        ("Copy the link", "/ask?head=Person"),
        ("Copy as curl", "curl -s"),
        ("Copy as Python", "hynt.Client"),
    ):
        page.locator(".take").get_by_role("button", name=name).press("Enter")
        page.get_by_text("Copied.").wait_for()
        assert told in page.evaluate("navigator.clipboard.readText()")
    watched.screenshot("taken")
    watched.check_accessibility()
