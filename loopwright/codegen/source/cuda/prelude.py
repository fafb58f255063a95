"""The lines before the kernels: types and numbers that headers would define, each where the text uses it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

# In this order, each by the word that asks for it.
_DEFINITIONS: Final = {
    "int8_t": "typedef signed char int8_t;",
    "uint8_t": "typedef unsigned char uint8_t;",
    "int16_t": "typedef short int16_t;",
    "uint16_t": "typedef unsigned short uint16_t;",
    "int32_t": "typedef int int32_t;",
    "uint32_t": "typedef unsigned int uint32_t;",
    "int64_t": "typedef long long int64_t;",
    "uint64_t": "typedef unsigned long long uint64_t;",
    "uintptr_t": "typedef unsigned long long uintptr_t;",
    "ptrdiff_t": "#define ptrdiff_t long long",
    "INT64_C": "#define INT64_C(x) x##ll",
    "UINT64_C": "#define UINT64_C(x) x##ull",
    "INT32_MIN": "#define INT32_MIN (-2147483647 - 1)",
    "INT64_MIN": "#define INT64_MIN (-9223372036854775807ll - 1)",
    "NULL": "#define NULL nullptr",
    "NAN": "#define NAN __int_as_float(0x7fc00000)",
    "INFINITY": "#define INFINITY __int_as_float(0x7f800000)",
}
_WORD: Final = re.compile(r"[A-Za-z_]\w*")


def prelude(texts: Iterable[str]) -> str:
    """The definitions that the texts need, one a line."""
    used = {word for text in texts for word in _WORD.findall(text)}
    return "\n".join([line for word, line in _DEFINITIONS.items() if word in used])
