"""quantities: numbers with their units, for people: 4.98 MiB, 8.21 GFLOP, 12.3 ms, 3 kernels."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import prod
from typing import Final

_BALANCED: Final = r"(?:[^()]|\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))+"  # parentheses three deep


def bytes_text(count: int) -> str:
    """1536 → "1.50 KiB"."""
    for unit, size in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= size:
            return f"{count / size:.2f} {unit}"
    return count_text(count, "byte")


def size_text(size: object) -> str:
    """A size that a call decides, without the types of its parts: `T.int64(4) * n` → "4 * n"."""
    text, before = str(size), ""
    while text != before:
        before = text
        text = re.sub(r"T\.int(?:32|64)\((-?\w+)\)", r"\1", text)
        text = re.sub(r'T\.Cast\("int(?:32|64)", (\w+)\)', r"\1", text)
        if text == before:  # what is cast is more than a name: it stays together
            text = re.sub(rf'T\.Cast\("int(?:32|64)", ({_BALANCED})\)', r"(\1)", text, count=1)
    return text


def open_bytes_text(sizes: Sequence[str]) -> str:
    """Bytes that a call decides, in the names of its sizes: `n * 4096`, `n * 1024`, `m * 2` → "5 KiB × n + …"."""
    sums: dict[tuple[str, ...], int] = {}
    others: list[str] = []
    for size in sizes:
        factors = _factors(size)
        if factors is None:
            others.append(f"({size}) bytes")
            continue
        each = prod(int(factor) for factor in factors if factor.isdecimal())
        names = tuple(factor for factor in factors if not factor.isdecimal())
        key = next((known for known in sums if sorted(known) == sorted(names)), names)
        sums[key] = sums.get(key, 0) + each
    return " + ".join([*[" × ".join([bytes_text(each), *names]) for names, each in sums.items()], *others])


def _factors(size: str) -> list[str] | None:
    """What is multiplied; None where the size is no product."""
    factors: list[str] = []
    depth, start = 0, 0
    for index, sign in enumerate(size):
        depth += (sign == "(") - (sign == ")")
        if depth == 0 and sign in "+-/%,":
            return None
        if depth == 0 and sign == "*":
            factors.append(size[start:index].strip())
            start = index + 1
    factors.append(size[start:].strip())
    return factors


def flops_text(count: float) -> str:
    """8.2e9 → "8.2 GFLOP"."""
    for unit, size in (("TFLOP", 1e12), ("GFLOP", 1e9), ("MFLOP", 1e6), ("kFLOP", 1e3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:g} FLOP"


def time_text(seconds: float) -> str:
    """0.0123 → "12.3 ms"."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 1e-9:.3g} ns"


def count_text(count: int, one: str, many: str | None = None) -> str:
    """2, "kernel" → "2 kernels"."""
    return f"{count:,} {one if count == 1 else many or one + 's'}"
