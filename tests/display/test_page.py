"""Pages stand alone, and only what says that it is HTML is HTML."""

from __future__ import annotations

from loopwright.display.page import Html, html_page, table_html
from tests.html_check import check_html


def test_a_page_stands_alone():
    page = html_page("a < b", [("", "<p>first</p>"), ("Rows & more", "<p>second</p>")], ".own { color: red }")
    check_html(page.partition("</head>")[2].removesuffix("</html>\n"))
    assert "<title>a &lt; b</title>" in page and "<h1>a &lt; b</h1>" in page
    assert "<h2>Rows &amp; more</h2>\n<p>second</p>" in page and ".own { color: red }" in page


def test_cells_are_escaped_unless_they_are_html():
    table = table_html(("name", "count"), [("<b>", "2"), (Html("<b>x</b>"), "3")], (1,))
    assert table == (
        '<table><tr><th>name</th><th class="number">count</th></tr>'
        '<tr><td>&lt;b&gt;</td><td class="number">2</td></tr>'
        '<tr><td><b>x</b></td><td class="number">3</td></tr></table>'
    )
