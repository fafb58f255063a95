"""page: one HTML page that stands alone: its style, its frame, and tables. Nothing is fetched, no script runs.

page = html_page("resnet50", [("", summary), ("Kernels", table_html(("kernel", "calls"), rows, (1,)))])      as text
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

# Light or dark, as the reader's system is.
_STYLE: Final = """
:root { color-scheme: light dark }
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem }
h1 { margin-bottom: 0 } h2 { margin-top: 2.5rem } .faint { opacity: .7 }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums }
th, td { text-align: left; padding: .2rem .7rem .2rem 0; border-bottom: 1px solid #8884; vertical-align: top }
td.number, th.number { text-align: right } td.name { overflow-wrap: anywhere }
.frame { overflow: auto; max-height: 75vh; border: 1px solid #8884; border-radius: 6px; padding: .5rem }
.bar { background: #4e79a7; height: .7rem; border-radius: 2px; min-width: 1px }
pre { font-size: 12px; overflow: auto; max-height: 30rem; border-left: 3px solid #8884; padding-left: .8rem }
summary { cursor: pointer }
"""


def html_page(title: str, parts: Sequence[tuple[str, str]], style: str = "") -> str:
    """The page; `parts` are headings and the HTML under them, `style` is CSS for what is theirs alone."""
    body = "\n".join(f"<h2>{escape(head)}</h2>\n{content}" if head else content for head, content in parts)
    return (
        f'<!doctype html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f"<style>{_STYLE}{style}</style></head>\n<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


class Html(str):
    """A cell of a table that is HTML already; other texts are escaped."""


def table_html(columns: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """A table; the columns at the places `numbers` stand to the right."""

    def row(cells: Sequence[str], tag: str) -> str:
        result = []
        for index, cell in enumerate(cells):
            kind = ' class="number"' if index in numbers else ""
            result.append(f"<{tag}{kind}>{cell if isinstance(cell, Html) else escape(cell)}</{tag}>")
        return f"<tr>{''.join(result)}</tr>"

    return f"<table>{row(columns, 'th')}{''.join(row(one, 'td') for one in rows)}</table>"
