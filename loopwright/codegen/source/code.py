"""Code: a piece of a C expression that knows how tightly it binds, so that brackets stand only where they are needed.

Sources are read by people and by compilers with limits: C99 promises 63 nested brackets, clang stops at 256. Each piece
counts how deep it is nested; what is too deep or too long gets a variable of its own.
"""

from __future__ import annotations

from typing import Final

# How tightly an expression binds, tightest first.
PRIMARY: Final = 0  # a name, a literal, a call, an element of an array
UNARY: Final = 1  # a cast, a sign, a negation
PRODUCT: Final = 2
SUM: Final = 3
COMPARISON: Final = 4
LOOSE: Final = 5  # bits, shifts, && and ||, a choice: always in brackets within another expression

_MOST_DEPTH: Final = 12
_MOST_LETTERS: Final = 160


class Code(str):
    """The text of an expression."""

    __slots__ = ("depth", "level", "typed")

    level: int
    depth: int  # of brackets inside
    typed: bool  # whether C gives it the type it has in the program; a small int64 literal is an int for C

    def __new__(cls, text: str, level: int = PRIMARY, depth: int = 0, typed: bool = True) -> Code:
        self = super().__new__(cls, text)
        self.level, self.depth, self.typed = level, depth, typed
        return self

    def within(self, level: int) -> str:
        """The text as an operand of something that binds as tightly as `level`."""
        return str(self) if self.level <= level else f"({self})"

    @property
    def is_long(self) -> bool:
        """Whether it is better given a name before it is used."""
        return self.depth >= _MOST_DEPTH or len(self) > _MOST_LETTERS


def nested(*parts: Code) -> int:
    """The depth of an expression made from `parts`."""
    return 1 + max([part.depth for part in parts], default=0)


def infix(operator: str, a: Code, b: Code, level: int) -> Code:
    """a operator b. Operators of one level group to the left; loose ones always show their brackets."""
    left = level if level < COMPARISON else SUM if level == COMPARISON else UNARY
    right = level - 1 if level < LOOSE else UNARY
    return Code(f"{a.within(left)} {operator} {b.within(right)}", level, nested(a, b), a.typed or b.typed)


def call(name: str, *arguments: Code) -> Code:
    """name(arguments)"""
    return Code(f"{name}({', '.join(arguments)})", PRIMARY, nested(*arguments))


def choice(condition: Code, a: Code, b: Code) -> Code:
    """condition ? a : b"""
    text = f"{condition.within(UNARY)} ? {a.within(UNARY)} : {b.within(UNARY)}"
    return Code(text, LOOSE, nested(condition, a, b), a.typed or b.typed)


def converted(type_text: str, value: Code) -> Code:
    """(type)value"""
    return Code(f"({type_text}){value.within(UNARY)}", UNARY, nested(value))
