"""The curve of quality over time, from a file as `benchmarks/device.py` writes it."""

import json
import sys

from benchmarks import curve_plot


def test_a_curve_is_drawn_from_its_validations(tmp_path, monkeypatch):
    curve = [
        {"epoch": 25, "value": 0.1, "trained_seconds": 99.0},
        {"epoch": 50, "value": 0.2, "trained_seconds": 200.0},
    ]
    file, out = tmp_path / "run.json", tmp_path / "curve.png"
    file.write_text(json.dumps({"jobs": {"link": {"train": {"seeds": {"3": {"curve": curve}}}}}}))
    assert curve_plot.points(file) == [(99.0, 0.1), (200.0, 0.2)]
    monkeypatch.setattr(sys, "argv", ["curve_plot", "--out", str(out), f"HN-YG={file}"])
    curve_plot.main()
    assert out.read_bytes().startswith(b"\x89PNG")
