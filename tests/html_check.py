"""check_html: HTML that a notebook can show anywhere: well formed, and with nothing from elsewhere."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Final

_ALONE: Final = ("br", "hr", "img", "input", "meta", "link")


class _Check(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag not in ("script", "iframe", "link", "object", "embed"), tag
        for name, value in attrs:
            assert name not in ("src", "href", "xlink:href") and not name.startswith("on"), (tag, name, value)
        if tag not in _ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open and self.open[-1] == tag, f"</{tag}> inside {self.open}"
        self.open.pop()

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)


def check_html(markup: str) -> str:
    """The words of `markup`, after making sure that it is well formed and stands alone."""
    parser = _Check()
    parser.feed(markup)
    parser.close()
    assert parser.open == [], f"never closed: {parser.open}"
    assert not re.search(r"https?:|@import|url\(", markup)
    return "".join(parser.text)
