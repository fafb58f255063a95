"""The pictures of docs/how_the_proof_works.md:  python docs/assets/draw_proof.py

Writes the SVG files beside this one. `tests/test_docs.py` holds them against what this draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

INK, FAINT, WRITE, READ, WRONG = "#24292f", "#8c959f", "#0969da", "#1a7f37", "#cf222e"


class Picture:
    """Shapes on a white page, in pixels from the top left."""

    def __init__(self, width: int, height: int, title: str) -> None:
        self.lines = [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
            'font-family="sans-serif" font-size="13">',
            f"<title>{title}</title>",
            "<defs>",
            *[
                f'<marker id="{name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
                f'orient="auto"><path d="M0 0 8 4 0 8z" fill="{colour}"/></marker>'
                for name, colour in (("read", READ), ("wrong", WRONG), ("ink", FAINT))
            ],
            "</defs>",
            f'<rect width="{width}" height="{height}" fill="#fff"/>',
        ]

    def text(self, x: int, y: int, words: str, colour: str = INK, anchor: str = "start", code: bool = False) -> None:
        words = words.replace("&", "&amp;").replace("<", "&lt;")
        font = ' font-family="monospace" xml:space="preserve"' if code else ""
        self.lines.append(f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{anchor}"{font}>{words}</text>')

    def code(self, x: int, y: int, lines: Sequence[tuple[str, str]]) -> None:
        """A program, each line in its colour."""
        for number, (words, colour) in enumerate(lines):
            self.text(x, y + 20 * number, words, colour, code=True)

    def dot(self, x: int, y: int, colour: str = INK, filled: bool = True) -> None:
        fill = colour if filled else "#fff"
        self.lines.append(f'<circle cx="{x}" cy="{y}" r="6" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>')

    def box(self, x: int, y: int, width: int, height: int, colour: str = FAINT, dashed: bool = False) -> None:
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.lines.append(
            f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="6" fill="none" stroke="{colour}" '
            f'stroke-width="1.5"{dash}/>'
        )

    def arrow(self, path: str, kind: str = "read", dashed: bool = False) -> None:
        colour = {"read": READ, "wrong": WRONG, "ink": FAINT}[kind]
        dash = ' stroke-dasharray="5 4"' if dashed else ""
        self.lines.append(
            f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5" marker-end="url(#{kind})"{dash}/>'
        )

    def svg(self) -> str:
        return "\n".join([*self.lines, "</svg>"]) + "\n"


def domains_and_time() -> Picture:
    """Two statements, the points at which they run, and when."""
    p = Picture(720, 230, "Two statements, the points at which they run, and when")
    p.code(
        20,
        50,
        [
            ("for i in range(4):", INK),
            ("    B[i] = A[i]", WRITE),
            ("    for j in range(i + 1):", INK),
            ("        C[i, j] = B[i]", READ),
        ],
    )
    p.text(20, 160, "when:", FAINT)
    p.text(70, 160, "(0, i, 0)", WRITE, code=True)
    p.text(70, 182, "(0, i, 1, j, 0)", READ, code=True)
    p.text(20, 210, "compared like words in a dictionary", FAINT)
    for i in range(4):
        y = 60 + 40 * i
        p.text(330, y + 5, f"i = {i}", FAINT)
        p.dot(400, y, WRITE)
        for j in range(4):
            p.dot(470 + 55 * j, y, READ if j <= i else "#d0d7de", filled=j <= i)
    p.text(400, 30, "B", WRITE, "middle")
    for j in range(4):
        p.text(470 + 55 * j, 30, f"j = {j}", FAINT, "middle")
    p.arrow("M 412 140 L 455 140", "ink")
    p.arrow("M 480 140 L 513 140", "ink")
    p.arrow("M 535 140 L 568 140", "ink")
    p.text(330, 215, "filled: the domain of each statement;  →: the order within i = 2", FAINT)
    return p


def who_wrote_it() -> Picture:
    """B is written in order, and read backwards: an arrow from each read to the write that it sees."""
    p = Picture(720, 210, "An arrow from each read to the write that it sees")
    for i in range(8):
        x = 120 + 75 * i
        p.dot(x, 60, WRITE)
        p.dot(x, 150, READ)
        p.text(x, 42, f"B({i})", WRITE, "middle")
        p.text(x, 178, f"C({i})", READ, "middle")
        across = 75 * (7 - 2 * i)
        length = (across**2 + 90**2) ** 0.5
        east, north = 9 * across / length, 9 * 90 / length  # arrows end at the rim of a dot
        p.arrow(f"M {x + east:.1f} {150 - north:.1f} L {x + across - east:.1f} {60 + north:.1f}")
    p.text(20, 64, "writes", WRITE)
    p.text(20, 154, "reads", READ)
    p.text(120, 202, "C(i) reads B[7 − i]:  C(i) → B(7 − i), for all i at once", INK)
    return p


def witness() -> Picture:
    """After merge, C(0) runs before B(7), whose value it reads."""
    p = Picture(720, 230, "After merge, C(0) runs before B(7), whose value it reads")
    p.arrow("M 30 130 L 700 130", "ink")
    p.text(690, 118, "time", FAINT, "middle")
    for i in range(8):
        x = 50 + 80 * i
        p.dot(x, 130, WRITE)
        p.dot(x + 34, 130, READ)
        p.text(x, 112, f"B({i})", WRITE, "middle")
        p.text(x + 34, 158, f"C({i})", READ, "middle")
    p.arrow("M 84 140 C 200 210, 500 210, 609 141", "wrong")
    p.arrow("M 644 122 C 560 30, 160 30, 52 120", "read")
    p.text(360, 30, "C(7) reads what B(0) wrote: still so", READ, "middle")
    p.text(330, 218, "C(0) reads what B(7) is yet to write: the witness", WRONG, "middle")
    return p


def reductions() -> Picture:
    """A reader of a sum sees its start value, and each update once."""
    p = Picture(720, 276, "A reader of a sum sees its start value, and each update once")
    p.box(150, 40, 250, 70, WRITE, dashed=True)
    p.dot(70, 75, INK)
    p.text(70, 55, "init", INK, "middle")
    p.text(70, 105, "the base", FAINT, "middle")
    for k in range(6):
        p.dot(175 + 40 * k, 75, WRITE)
        p.text(175 + 40 * k, 58, str(k), WRITE, "middle")
    p.text(275, 100, "updates, in any order", FAINT, "middle")
    p.dot(480, 75, READ)
    p.text(480, 55, "reader", READ, "middle")
    p.arrow("M 78 75 L 146 75", "ink")
    p.arrow("M 404 75 L 470 75", "ink")
    p.text(530, 80, "right", READ)
    rows = [
        ("0 1 2 R 3 4 5", "missing: the reader comes too early"),
        ("0 1 2 3 4 4 5 R", "twice: an update is done again"),
        ("0 1 2 3 4 5 x R", "extra: another update gets in"),
        ("0 1 2 init 3 4 5 R", "missing, too: the init comes late, and 0, 1, 2 are lost"),
        ("y 0 1 2 3 4 5 R", "base: the sum begins with what another block wrote"),
    ]
    for number, (order, words) in enumerate(rows):
        y = 150 + 26 * number
        p.text(70, y, order, WRONG, code=True)
        p.text(260, y, words, INK)
    return p


def deferred() -> Picture:
    """A trace is proved in stretches; a step with a reason of its own ends one."""
    p = Picture(720, 200, "A trace is proved in stretches; a step with a reason of its own ends one")
    names = ["split", "reorder", "compute_at", "transform_layout", "split", "vectorize"]
    for number in range(7):
        p.box(20 + 100 * number, 60, 50, 34, INK)
        p.text(45 + 100 * number, 82, f"P{number}", INK, "middle")
    for number, name in enumerate(names):
        x = 72 + 100 * number
        p.arrow(f"M {x} 77 L {x + 46} 77", "wrong" if name == "transform_layout" else "ink")
        p.text(x + 23, 112, name, WRONG if name == "transform_layout" else FAINT, "middle")
    p.arrow("M 45 56 C 100 10, 290 10, 342 56", "read")
    p.text(195, 16, "one comparison", READ, "middle")
    p.arrow("M 445 56 C 490 15, 590 15, 643 56", "read")
    p.text(545, 16, "one comparison", READ, "middle")
    p.text(395, 140, "its own reason", WRONG, "middle")
    p.text(20, 180, "A doubt anywhere: the whole trace again, with a proof at each step.", INK)
    return p


PICTURES = {
    "domains_and_time": domains_and_time,
    "who_wrote_it": who_wrote_it,
    "witness": witness,
    "reductions": reductions,
    "deferred": deferred,
}


def main() -> None:
    """Write every picture beside this file."""
    for name, draw in PICTURES.items():
        (Path(__file__).parent / f"{name}.svg").write_text(draw().svg(), encoding="utf-8")


if __name__ == "__main__":
    main()
