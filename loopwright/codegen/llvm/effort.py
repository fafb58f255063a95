"""Effort: how much LLVM looks for in a program, by what its author has left to find."""

from __future__ import annotations

from enum import IntEnum


class Effort(IntEnum):
    """What LLVM is asked to do."""

    TIDY = 0  # fold what is known, keep sums in registers, write out what is to be: for code that runs once
    SIMPLIFY = 1  # the passes of -O1, function by function: for loops that a schedule laid out
    REUSE = 2  # all passes over a function: what bodies of exp and its like have in common, inlined, is computed once
    SEARCH = 3  # everything: functions to inline, loops to vectorize, unroll and cut
