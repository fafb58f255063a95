"""json_text: JSON that somebody else wrote, read without trust.

Python's parser of JSON recurses in C. Where a deep walk has raised the recursion limit (`ir/deep.py`), a text of
100,000 brackets would end the process, so the levels are counted first; elsewhere it would raise a `RecursionError`.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final, TypeAlias

import numpy as np

from loopwright.runtime.errors import LoopwrightError

# Any: what an object holds follows from the format, whose reader checks it.
JsonObject: TypeAlias = dict[str, Any]

MOST_LEVELS: Final = 500  # of lists and objects in each other; ours have a dozen

_STRING: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_OPENS, _CLOSES = b"[{", b"]}"
_ELSE: Final = bytes(byte for byte in range(256) if byte not in _OPENS + _CLOSES)
_STEPS: Final = np.zeros(256, np.int8)
_STEPS[list(_OPENS)] = 1
_STEPS[list(_CLOSES)] = -1


class NestedTooDeep(LoopwrightError, ValueError):
    """A JSON text has too many lists and objects in each other. Nothing that Loopwright writes nests like that.

    For example:

        from loopwright.runtime.json_text import read_json

        read_json("[" * 100_000 + "]" * 100_000)
    """

    code = "LW0152"

    def __init__(self, levels: int) -> None:
        super().__init__(
            f"the JSON text nests {levels:,} levels deep, and {MOST_LEVELS} are read",
            hint="give a text as Loopwright wrote it",
            fields={"levels": levels},
        )


def read_json(text: str | bytes) -> Any:
    """The value that a JSON text holds; ValueError where it is none, and `NestedTooDeep` where it is too deep."""
    if isinstance(text, (bytes, bytearray)):
        text = text.decode(json.detect_encoding(text))
    levels = _levels(text)
    if levels > MOST_LEVELS:
        raise NestedTooDeep(levels)
    return json.loads(text)


def _levels(text: str) -> int:
    """How deep lists and objects nest at most; exact up to the first place where the text is no JSON."""
    if text.count("[") + text.count("{") <= MOST_LEVELS:
        return 0
    brackets = _STRING.sub(b"", text.encode("utf-8", "replace")).translate(None, _ELSE)
    steps = _STEPS[np.frombuffer(brackets, np.uint8)]
    return int(np.cumsum(steps, dtype=np.int64).max(initial=0))
