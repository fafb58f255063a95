"""FunctionBuilder: the text of one LLVM function, block by block.

Values are their text (`%v3`, `7`, `true`); the builder only numbers them. A block is closed by its terminator; code
after a terminator and before the next label would be lost, so it is refused.
"""

from __future__ import annotations

from loopwright.codegen.llvm.module_text import ModuleText
from loopwright.runtime.errors import InternalError


class FunctionBuilder:
    """One function of a module, written in order."""

    def __init__(self, module: ModuleText, signature: str, attributes: str = "") -> None:
        self.module = module
        self.signature, self.attributes = signature, attributes
        self.lines: list[str] = []
        self.entry: list[str] = []  # allocas: they belong to the first block, so that a loop does not grow the stack
        self.block = "entry"
        self.open = True
        self.keeps_tiles = False  # on the stack; see `text`
        self.moves_cells = False  # one at a time
        self._values = 0
        self._labels = 0

    def value(self, instruction: str) -> str:
        """Emit an instruction with a result; gives the name of the result."""
        if not self.open:
            raise InternalError(f"code after the end of block {self.block}: {instruction}")
        name = f"%v{self._values}"
        self._values += 1
        self.lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Emit an instruction without a result."""
        if not self.open:
            raise InternalError(f"code after the end of block {self.block}: {instruction}")
        self.lines.append(f"  {instruction}")

    def alloca(self, type_text: str, count: int, alignment: int) -> str:
        """Stack memory that lives as long as the function."""
        name = f"%a{self._values}"
        self._values += 1
        self.entry.append(f"  {name} = alloca [{count} x {type_text}], align {alignment}")
        return name

    def at_entry(self, instruction: str) -> str:
        """An instruction of the first block, whose operands are known there."""
        name = f"%v{self._values}"
        self._values += 1
        self.entry.append(f"  {name} = {instruction}")
        return name

    def label(self, stem: str) -> str:
        """A fresh label."""
        self._labels += 1
        return f"{stem}.{self._labels}"

    def start(self, label: str) -> None:
        """Begin the block `label`."""
        if self.open:
            raise InternalError(f"block {self.block} has no end before {label}")
        self.lines.append(f"{label}:")
        self.block, self.open = label, True

    def jump(self, label: str, loop: str | None = None) -> None:
        self.do(f"br label %{label}" + (f", !llvm.loop {loop}" if loop else ""))
        self.open = False

    def branch(
        self, condition: str, then: str, otherwise: str, loop: str | None = None, weights: str | None = None
    ) -> None:
        message = (f", !llvm.loop {loop}" if loop else "") + (f", !prof {weights}" if weights else "")
        self.do(f"br i1 {condition}, label %{then}, label %{otherwise}{message}")
        self.open = False

    def ret(self, text: str) -> None:
        self.do(f"ret {text}")
        self.open = False

    def unreachable(self) -> None:
        self.do("unreachable")
        self.open = False

    def text(self) -> str:
        """The whole definition.

        A tile on the stack is to become registers. LLVM sees loops that clear and copy it first, makes them calls of
        memset and memcpy, and has to undo that when they are written out: an eighth of its time. Only cells that are
        moved one at a time gain by such calls.
        """
        body = "\n".join(["entry:", *self.entry, *self.lines])
        is_settled = self.keeps_tiles and not self.moves_cells
        attributes = self.attributes + '"no-builtins" ' if is_settled else self.attributes
        return f"define {self.signature} {attributes}{{\n{body}\n}}"
