"""ModuleText: the parts of an LLVM module as they are collected: functions, declarations, strings, metadata."""

from __future__ import annotations

from collections.abc import Mapping

from loopwright import ir
from loopwright.codegen.llvm.constant_data import SMALLEST, reserve
from loopwright.codegen.llvm.types import byte_string, c_string


class ModuleText:
    """An LLVM module under construction."""

    def __init__(self, triple: str = "", data_layout: str = "", data: dict[str, bytes] | None = None) -> None:
        """Bytes of large constants are put into `data`, by symbol, if it is given; otherwise they are in the text."""
        self.head = []
        if triple:
            self.head.append(f'target triple = "{triple}"')
        if data_layout:
            self.head.append(f'target datalayout = "{data_layout}"')
        self.functions: Mapping[str, ir.PrimFunc] = {}  # those of the same module, by the name that calls use
        self._data = data
        self._placed: dict[tuple[bytes, int], str] = {}  # large constants by content: equal ones are stored once
        self._declared: dict[str, str] = {}
        self._defined: set[str] = set()
        self._strings: dict[str, str] = {}
        self._globals: list[str] = []
        self._functions: list[str] = []
        self._metadata: list[str] = []
        self._weights: dict[str, str] = {}
        self._names: dict[str, int] = {}

    def unique(self, stem: str) -> str:
        """A symbol name not given before. `stem` holds no number after a last dot: those are ours."""
        count = self._names.get(stem, 0)
        self._names[stem] = count + 1
        return f"{stem}.{count}"

    def declare(self, name: str, signature: str) -> None:
        """Declare an external function once; `signature` is the text after `declare`, with `@name` in it."""
        self._declared.setdefault(name, f"declare {signature}")

    def define(self, text: str) -> None:
        """Add a whole function definition."""
        self._functions.append(text)

    def is_defined(self, name: str) -> bool:
        return name in self._defined

    def mark_defined(self, name: str) -> None:
        """Note that `name` will be defined here, so that it is emitted once and not declared."""
        self._defined.add(name)

    def string(self, text: str) -> str:
        """The symbol of a constant C string."""
        name = self._strings.get(text)
        if name is None:
            name = self._strings[text] = f"@.str.{len(self._strings)}"
        return name

    def constant(self, name: str, text: str, alignment: int) -> str:
        """The symbol of a constant with initialiser `text`."""
        self._globals.append(f"@{name} = private unnamed_addr constant {text}, align {alignment}")
        return f"@{name}"

    def constant_bytes(self, name: str, content: bytes, alignment: int, writable: bool = False) -> str:
        """The symbol of a constant array; a large one has its content outside the text.

        One that is `writable` lies where a store is no fault, and shares its memory with no other.
        """
        if self._data is None or len(content) < SMALLEST:
            text = byte_string(content)
            return self.variable(name, text, alignment) if writable else self.constant(name, text, alignment)
        if not writable:
            known = self._placed.setdefault((content, alignment), name)
            if known != name:
                return f"@{known}"
        self._data[name] = content
        self._globals.append(reserve(name, len(content), alignment, writable))
        return f"@{name}"

    def variable(self, name: str, text: str, alignment: int) -> str:
        """The symbol of a variable of this module that starts as `text`."""
        self._globals.append(f"@{name} = internal global {text}, align {alignment}")
        return f"@{name}"

    def section(self, name: str, text: str) -> None:
        """Bytes in a section of their own, which neither the optimizer nor the linker drops."""
        data = byte_string(text.encode())
        self._globals.append(f'@lw.section = private constant {data}, section "{name}", align 1')
        self._globals.append('@llvm.used = appending global [1 x ptr] [ptr @lw.section], section "llvm.metadata"')

    def loop_metadata(self, *properties: str) -> str:
        """A distinct loop identifier with properties: `llvm.loop.unroll.full`, `llvm.loop.isvectorized, i32 1` …

        A property of the loop that another one becomes is written after an arrow:
        `llvm.loop.vectorize.followup_vectorized -> llvm.loop.isvectorized, i32 1`.
        """
        items = [self._property(text) for text in properties]
        own = f"!{len(self._metadata)}"
        self._metadata.append(f"{own} = distinct !{{{', '.join([own, *items])}}}")
        return own

    def branch_weights(self, then: int, otherwise: int) -> str:
        """How often the first and the second side of a choice are taken, as metadata."""
        text = f'!{{!"branch_weights", i32 {then}, i32 {otherwise}}}'
        own = self._weights.get(text)
        if own is None:
            own = self._weights[text] = f"!{len(self._metadata)}"
            self._metadata.append(f"{own} = {text}")
        return own

    def _property(self, text: str) -> str:
        name, _, follows = text.partition(" -> ")
        word, _, value = name.partition(", ")
        operands = [f'!"{word}"', *filter(None, [value]), *([self._property(follows)] if follows else [])]
        own = f"!{len(self._metadata)}"
        self._metadata.append(f"{own} = !{{{', '.join(operands)}}}")
        return own

    def text(self) -> str:
        """The module as LLVM assembly text."""
        strings = [
            f"{name} = private unnamed_addr constant {c_string(text)}, align 1" for text, name in self._strings.items()
        ]
        declarations = [text for name, text in self._declared.items() if name not in self._defined]
        parts = [*self.head, *strings, *self._globals, *self._functions, *declarations, *self._metadata]
        return "\n".join(parts) + "\n"
