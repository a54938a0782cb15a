"""Runs the notebooks in `docs/start/notebooks` and keeps their outputs; shows them as pages of the documentation.

python -m tools.notebooks                # after a notebook, or what it shows, has changed

`mkdocs.yml` names this file as a hook: it makes a page of each notebook, puts the menu and what comes next in its
order, and marks code that may be wrapped and code that may not.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "start" / "notebooks"
MENU = FOLDER.parent.parent / "llms.txt"
"""Names every page in the order in which one may read them; decisions follow."""
RUNNING = re.compile(r"[^\n]*\r")
"""What a progress line overwrites."""
LINE = re.compile(r'<span (id="line-[^"]*">.*?\n</span>)', re.DOTALL)
COLUMNS = re.compile(r"[─━│┃]|^(?=.{89}).*?\S {3,}\S")
"""Of a drawn table, or of a long line that is set in columns."""
WORDS = re.compile(r"<code>([^<]+)</code>")
"""Code within a sentence."""
LONG = 72
"""Characters from which on it takes most of a line, or more than one."""
OPTION = re.compile(r"(?<![\w-])--[a-z][\w-]*(?![^<]*>)")
"""In a command; a browser would break the line after its dashes."""
TABLE_STYLE = re.compile(r"<style scoped>.*?</style>", re.DOTALL)
"""Of pandas; tables of the pages look alike without it."""


def run(path: Path) -> Any:
    """The notebook with what its cells show, run in a kernel of its own and a folder of its own."""
    import nbformat
    from nbclient import NotebookClient

    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as folder:
        resources = {"metadata": {"path": folder}}
        NotebookClient(notebook, timeout=600, kernel_name="python3", resources=resources).execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # when it ran
        if cell.cell_type == "code":
            cell.outputs = _settled(cell.outputs)
    return notebook


def _settled(outputs: list[Any]) -> list[Any]:
    """Printed text in one piece, as it stands in the end: what a progress line overwrote is left out."""
    settled: list[Any] = []
    for one in outputs:
        if settled and one.output_type == settled[-1].output_type == "stream" and one.name == settled[-1].name:
            settled[-1].text += one.text
        else:
            settled.append(one)
    for one in settled:
        if one.output_type == "stream":
            one.text = RUNNING.sub("", one.text)
    return [one for one in settled if one.output_type != "stream" or one.text.strip()]


def page(text: str) -> str:
    """A notebook as Markdown: its text, its code, and what each cell shows."""
    parts = []
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        parts += [shown for output in cell["outputs"] if (shown := _shown(output))]
    return "\n\n".join(parts) + "\n"


def _shown(output: dict[str, Any]) -> str:
    """HTML where there is some, else plain text."""
    data = output.get("data", {})
    if "text/html" in data:
        html = TABLE_STYLE.sub("", "".join(data["text/html"])).strip()
        html = re.sub(r'<table border="1" class="dataframe">', "<table>", html)
        return "\n".join(line for line in html.splitlines() if line.strip())  # a blank line would end the HTML
    text = "".join(data.get("text/plain", output.get("text", ""))).rstrip()
    return f"```text\n{text}\n```" if text else ""


def on_files(files: Any, config: Any) -> Any:
    """mkdocs: a page for each notebook, beside the notebook itself."""
    from mkdocs.structure.files import File

    for one in [file for file in files if file.src_uri.endswith(".ipynb")]:
        content = page(Path(one.abs_src_path).read_text(encoding="utf-8"))
        files.append(File.generated(config, one.src_uri.removesuffix(".ipynb") + ".md", content=content))
    return files


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:  # noqa: ARG001
    """mkdocs: marks lines that are drawn in columns, which are not wrapped; long code in sentences, which is; and
    options, which are never broken.
    """

    def whole(code: str) -> str:
        return OPTION.sub(lambda option: f'<span class="option">{option[0]}</span>', code)

    def line(found: re.Match[str]) -> str:
        is_command = 'class="gp"' in found[0]
        is_drawn = not is_command and COLUMNS.search(unescape(re.sub(r"<[^>]+>", "", found[0])))
        return f'<span class="drawn" {found[1]}' if is_drawn else whole(found[0])

    def words(found: re.Match[str]) -> str:
        kind = ' class="long"' if len(found[1]) > LONG else ""
        return f"<code{kind}>{whole(found[1])}</code>"

    return WORDS.sub(words, LINE.sub(line, html))


def on_nav(nav: Any, config: Any, files: Any) -> Any:  # noqa: ARG001 - mkdocs passes them by name
    """mkdocs: what a newcomer needs first, first, in every section."""
    links = re.findall(r"\]\(([^)]+?)(?:\.md|\.ipynb)\)", MENU.read_text(encoding="utf-8"))
    _sort(nav.items, {link: at for at, link in enumerate(links)})
    for item in nav.items:
        if item.is_page:  # a page's own title is known when it is read
            item.title = "Home"
        elif item.title == "How to":
            item.title = "How-to"
    pages = list(_pages(nav.items))
    for before, one, after in zip([None, *pages], pages, [*pages[1:], None], strict=False):
        one.previous_page, one.next_page = before, after
    return nav


def _pages(items: list[Any]) -> Iterator[Any]:
    for item in items:
        if item.is_section:
            yield from _pages(item.children)
        else:
            yield item


def _sort(items: list[Any], order: dict[str, int]) -> None:
    for item in items:
        if item.is_section:
            _sort(item.children, order)
    items.sort(key=lambda item: order.get(_first_page(item), len(order)))


def _first_page(item: Any) -> str:
    return str(next(_pages([item])).file.src_uri).removesuffix(".md")


def main() -> None:
    """Runs all of them."""
    import nbformat

    for path in sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(run(path), path)  # type: ignore[no-untyped-call]
        print(path.name)


if __name__ == "__main__":
    main()
