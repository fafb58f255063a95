"""A target's text form, taken apart and put together: `llvm -mcpu=core-avx2 -mattr=+avx512f,+fma -num-cores=4`.

An option is `-name=value`, `-name value`, or `-name` alone for yes; two dashes do as well. A value with spaces is
quoted whole, an item of a list with commas is quoted by itself.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from loopwright.target.errors import BadTargetText
from loopwright.target.kinds import ValueType

_QUOTED: Final = r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'"
_WORD: Final = re.compile(rf"(?:{_QUOTED}|[^\s\"'])+")
_ITEM: Final = re.compile(rf"(?:{_QUOTED}|[^,\"'])+")
_NEEDS_QUOTES: Final = re.compile(r"[\s,\"'\\]|^$")


def split_text(text: str, attributes: Mapping[str, ValueType]) -> dict[str, object]:
    """The options of a target's text after its kind: lists as lists, flags as True, everything else as text."""
    words = _words(text)[1:]
    options: dict[str, object] = {}
    position = 0
    while position < len(words):
        word = words[position]
        position += 1
        if not word.startswith("-"):
            raise BadTargetText(text, f"{word!r} is not an option; options start with a dash")
        name, equals, value = word.lstrip("-").partition("=")
        if not name:
            raise BadTargetText(text, f"{word!r} has no name")
        if not equals:
            is_flag = attributes.get(name) is bool or position == len(words) or words[position].startswith("-")
            if is_flag:
                options[name] = True
                continue
            value = words[position]
            position += 1
        options[name] = _items(value) if attributes.get(name) is list else _unquote(value)
    return options


def first_word(text: str) -> str:
    """The kind or tag a target's text starts with."""
    words = _words(text)
    if not words:
        raise BadTargetText(text, "it is empty")
    return words[0]


def join_text(kind: str, options: Mapping[str, object]) -> str:
    """The text form; reading it back gives the same kind and options."""
    return " ".join([kind, *(f"-{name}={_written(value)}" for name, value in options.items())])


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "1" if value else "0"
    if isinstance(value, (list, tuple)):
        return ",".join(_quote(str(item)) for item in value)
    return _quote(str(value))


def _words(text: str) -> list[str]:
    words = _WORD.findall(text)
    if _WORD.sub("", text).strip():  # only spaces lie between words, unless a quote is left open
        raise BadTargetText(text, "a quote is not closed")
    return words


def _items(value: str) -> list[str]:
    return [_unquote(item) for item in _ITEM.findall(value)]


def _quote(value: str) -> str:
    if not _NEEDS_QUOTES.search(value):
        return value
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _unquote(value: str) -> str:
    return re.sub(_QUOTED, lambda match: re.sub(r"\\(.)", r"\1", match[0][1:-1]), value)
