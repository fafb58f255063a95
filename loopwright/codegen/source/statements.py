"""SourceStatements: statements of lowered, scalar IR as lines of a C-like source.

What comes in is the pipeline's last stage for such targets: loops, flat buffers of scalars, one index each. Leaving a
function, memory of its own and calls of functions differ between dialects; they are the dialect's methods.
"""

from __future__ import annotations

import re
from collections import Counter

from loopwright import ir
from loopwright.codegen.source.code import Code, call
from loopwright.codegen.source.expressions import Bodies, SourceExpressions
from loopwright.codegen.source.helpers import Helpers
from loopwright.codegen.source.names import Names
from loopwright.codegen.source.types import memory_type, value_type
from loopwright.runtime.dtype import DataType

_WORD = re.compile(r"[A-Za-z_]\w*")
_NAMED = re.compile(r"\s*const [\w ]+[ *](\w+) = (.*);")
_MARKED = re.compile(r"\s*\(void\)(&?)(\w+);")
_STORE = re.compile(r"\s*(\w+)\[")


class SourceStatements(SourceExpressions):
    """Writes one function, statement by statement."""

    def __init__(self, helpers: Helpers, names: Names, bodies: Bodies) -> None:
        super().__init__(helpers, names, bodies)
        self.effects: set[str] = set()  # variables whose value is a call to be made even if nobody reads it

    def run(self, statement: ir.Stmt) -> None:
        self._table[type(statement)](self, statement)

    def block(self, head: str, body: ir.Stmt) -> None:
        """head { body }"""
        self.line(f"{head} {{")
        self.indent += 1
        self.run(body)
        self.indent -= 1
        self.line("}")

    def visit_SeqStmt(self, statement: ir.SeqStmt) -> None:
        for part in statement.seq:
            self.run(part)

    def visit_For(self, loop: ir.For) -> None:
        var, text = loop.loop_var, value_type(loop.loop_var.dtype)
        end = loop.extent if isinstance(loop.min, ir.IntImm) and loop.min.value == 0 else loop.min + loop.extent
        self.start_statement(loop.min, end)
        low, (_, most) = self.index(loop.min), self.intervals.of(loop.extent)
        if most <= 0:
            return
        high = self.index(end)
        if not isinstance(end, (ir.IntImm, ir.Var)):
            high = self.named(f"{var.name}_end", var.dtype, high)
        self.intervals.bind(var, (self.intervals.of(loop.min)[0], max(0, self.intervals.of(end)[1] - 1)))
        name = self.names.counter(var.name)
        self.values[var] = Code(name)
        self.block(f"for ({text} {name} = {low}; {name} < {high}; ++{name})", loop.body)
        self.names.give_back(var.name, name)

    def visit_While(self, loop: ir.While) -> None:
        self.start_statement(loop.condition)
        condition, lines = self.captured(lambda: self.value(loop.condition))
        self.line(f"while ({'true' if lines else condition}) {{")
        if lines:
            self.lines += lines
            self.line(f"    if (!({condition})) {{ break; }}")
        self.indent += 1
        self.run(loop.body)
        self.indent -= 1
        self.line("}")

    def visit_LetStmt(self, statement: ir.LetStmt) -> None:
        self.start_statement(statement.value)
        self.bind(statement.var, statement.value)
        self.run(statement.body)

    def visit_AttrStmt(self, statement: ir.AttrStmt) -> None:
        self.run(statement.body)

    def visit_DeclBuffer(self, statement: ir.DeclBuffer) -> None:
        self.run(statement.body)

    def visit_Evaluate(self, statement: ir.Evaluate) -> None:
        if isinstance(statement.value, ir.IntImm):
            return
        self.start_statement(statement.value)
        self.value(statement.value)  # what has an effect has a line; the value itself nobody uses

    def visit_IfThenElse(self, statement: ir.IfThenElse) -> None:
        self.start_statement(statement.condition)
        self.block(f"if ({self.value(statement.condition)})", statement.then_case)
        if statement.else_case is not None:
            self.lines[-1] += " else {"
            self.indent += 1
            self.run(statement.else_case)
            self.indent -= 1
            self.line("}")

    def visit_BufferStore(self, store: ir.BufferStore) -> None:
        index = self.only_index(store.buffer, store.indices)
        self.start_statement(store.value, index)
        value = self.value(store.value)
        where = self.index(index)
        if self.is_typed(store.buffer):
            self.line(f"{self.element(store.buffer, where)} = {value};")
        else:
            name = self.helpers.store(memory_type(store.buffer.dtype))
            self.line(f"{call(name, self.visit_Var(store.buffer.data), where, value)};")

    def effect(self, dtype: DataType, code: Code) -> Code:
        """Make the call here and now."""
        if dtype.kind == "void":
            self.line(f"{code};")
            return Code("0")
        name = self.names.fresh("t")
        text = value_type(dtype)
        self.effects.add(name)
        if text.endswith("*"):
            self.line(f"{text}const {name} = {code};")
            self.line(f"(void){name};")
        else:
            self.line(f"const {text} {name} = {code};")
        return Code(name)


def without_unused(lines: list[str], parameters: list[str], effects: set[str]) -> list[str]:
    """The lines of a function less the variables that nothing reads: compilers warn about them.

    Names are unique in a function, so a word that stands once is a name that is never read. `effects` are the variables
    that hold the result of a call to be made all the same. A variable that the branches of an `if` assign is followed
    by `(void)name;`, an array by `(void)&name;`, which stay only if nothing else reads it.
    """
    words = Counter(word for line in lines for word in _WORD.findall(line))
    stores = Counter(result[1] for line in lines if (result := _STORE.match(line)))
    kept: list[str] = []
    for line in reversed(lines):
        named, marked = _NAMED.fullmatch(line), _MARKED.fullmatch(line)
        if named and words[named[1]] == 1:
            if named[1] not in effects:
                words.subtract(_WORD.findall(line))
                continue
            line = f"{line[: len(line) - len(line.lstrip())]}(void){named[2]};"
        elif marked:
            # This line and the declaration; two assignments, or the stores to an array.
            written = 2 + (stores[marked[2]] if marked[1] else 2)
            if words[marked[2]] > written:
                words.subtract(_WORD.findall(line))
                continue
        kept.append(line)
    kept += [f"    (void){name};" for name in reversed(parameters) if words[name] == 0]
    return kept[::-1]
