"""The page of a search stands alone and has a curve for each task; a curve is drawn within its frame."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from loopwright.tune.report import report_html, summary_of
from loopwright.tune.report.curve import curve_drawing
from loopwright.tune.result import Tuned
from tests.html_check import check_html
from tests.tune.report.test_summary import searched


def test_the_page_stands_alone_and_has_every_task(tmp_path):
    Tuned(searched(), None).report(tmp_path / "page.html", "Tuning <net>")
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    check_html(page.partition("</head>")[2].removesuffix("</html>\n"))
    assert "<title>Tuning &lt;net&gt;</title>" in page
    assert page.count('<svg class="curve"') == 3
    for words in ("49×96×200", "tiles of 7 × 48", "of the roofline, bound by", "GFLOP/s", "killed by SIGSEGV"):
        assert words in page
    assert "http" not in page and "nan" not in page


def test_notes_and_names_are_escaped():
    found = summary_of(searched())
    hostile = replace(found.tasks[0], name="<b>x", notes=("<script>",), failures=(("signal", 1, "<i>"),))
    page = report_html(replace(found, tasks=(hostile,)))
    assert "<b>" not in page and "<script" not in page and "<i>" not in page


@pytest.mark.parametrize(
    "points",
    [
        [(0, 1.0, 1.0), (1, 0.01, 1.0)],
        [(0, 1.0, 1.0), (1, 0.0, 1.0), (2, 40.0, 40.0), (3, 39.0, 40.0)],
        [(0, 1.0, 1.0), *[(k, 1.0, 1.0) for k in range(1, 300)]],
    ],
)
def test_a_curve_stays_in_its_frame(points):
    svg = curve_drawing(points)
    check_html(svg)
    assert svg.count("<circle") + svg.count('class="failed"') == len(points)
    heights = [float(y) for y in re.findall(r'(?:cy|y1|y)="(-?[\d.]+)"', svg)]
    assert min(heights) >= 0 and max(heights) <= 190
    assert 1 <= svg.count('text-anchor="end"') <= 8


def test_one_trial_is_no_curve():
    assert curve_drawing([(0, 1.0, 1.0)]) == ""
