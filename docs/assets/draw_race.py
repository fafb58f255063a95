"""The picture of the race of whole models:  python docs/assets/draw_race.py

Drawn from the record of one run in benchmarks/results. `tests/test_docs.py` holds the file against what this draws.
"""

from __future__ import annotations

import json
from math import log
from pathlib import Path
from typing import Any, Final

from draw_proof import FAINT, INK, READ, WRITE, Picture

RESULTS: Final = Path(__file__).parents[2] / "benchmarks" / "results"
RECORD: Final = RESULTS / "2026-11-16-emeraldrapids-2-cores-models-1.json"
PEERS: Final = {
    "onnxruntime": ("ONNX Runtime", WRITE),
    "openvino": ("OpenVINO", READ),
    "torch compile": ("torch.compile", "#8250df"),
}
LEFT, RIGHT, TOP, ROW = 130, 660, 64, 26
LEAST, MOST = 0.9, 3.0  # the ends of the axis, which is logarithmic


def models_race() -> Picture:
    """How much longer each peer takes than Loopwright, model by model."""
    rows: list[dict[str, Any]] = json.loads(RECORD.read_text(encoding="utf-8"))["rows"]
    bottom = TOP + ROW * len(rows)
    p = Picture(720, bottom + 40, "Time of each library over the time of Loopwright, twelve models, one thread")
    p.text(LEFT, 22, "time of the library / time of Loopwright (right of 1: Loopwright is faster)")
    for number, (name, colour) in enumerate(PEERS.values()):
        p.dot(LEFT + 10 + 140 * number, 42, colour)
        p.text(LEFT + 24 + 140 * number, 47, name, colour)
    for mark in (1.0, 1.5, 2.0, 2.5, 3.0):
        x, colour = _across(mark), INK if mark == 1 else "#d0d7de"
        p.lines.append(f'<line x1="{x}" y1="{TOP}" x2="{x}" y2="{bottom}" stroke="{colour}" stroke-width="1"/>')
        p.text(x, bottom + 18, f"{mark:g}", FAINT, "middle")
    for number, row in enumerate(rows):
        y = TOP + ROW * number + ROW // 2
        p.text(LEFT - 12, y + 5, row["name"], INK, "end")
        for peer, (_, colour) in PEERS.items():
            if peer in row["ratios"]:
                p.dot(_across(row["ratios"][peer]["median"]), y, colour)
    return p


def _across(ratio: float) -> int:
    return round(LEFT + (RIGHT - LEFT) * log(min(max(ratio, LEAST), MOST) / LEAST) / log(MOST / LEAST))


PICTURES = {"models_race": models_race}


def main() -> None:
    """Write the picture beside this file."""
    for name, draw in PICTURES.items():
        (Path(__file__).parent / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
