"""The curve of quality over time, from a file as `benchmarks/device.py` writes it."""

import sys

from benchmarks import curve_plot
from benchmarks.result_file import ResultFile, Row, Run


def test_a_curve_is_drawn_from_its_validations(tmp_path, monkeypatch):
    file, out = tmp_path / "run.json", tmp_path / "curve.png"
    run = Run(3, curve=[[25, 99.0, 0.1], [50, 200.0, 0.2]])
    ResultFile("A curve.", [Row("link", [], "cpu", runs=[run])]).write(file)
    assert curve_plot.points(file) == [(99.0, 0.1), (200.0, 0.2)]
    monkeypatch.setattr(sys, "argv", ["curve_plot", "--out", str(out), f"HN-YG={file}"])
    curve_plot.main()
    assert out.read_bytes().startswith(b"\x89PNG")
