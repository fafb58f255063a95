"""check: a program whose steps fit together, before anything is compiled.

Every value is made once, before it is read; what a loop or branch makes stays inside it; kernels get what they declare.
"""

from __future__ import annotations

from collections.abc import Sequence

from loopwright.ir import Expr, IntImm, Var
from loopwright.model.errors import BadProgram, KernelMismatch
from loopwright.model.liveness import size_key, variables
from loopwright.model.program import (
    Bind,
    Body,
    Branch,
    Copy,
    Launch,
    Program,
    Repeat,
    Require,
    Step,
    Value,
    View,
    walk,
)


def check_program(program: Program) -> None:
    """Raise unless the steps of `program` fit together."""
    _Check(program).run()


class _Check:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.made: dict[Value, str] = {}

    def run(self) -> None:
        for position, value in enumerate(self.program.inputs):
            self._make(value, f"input {position}", set())
        for value in self.program.constants:
            self._make(value, "a constant", set())
            if not value.is_static:
                self._refuse(f"the constant {value.name} has no fixed shape")
            if tuple(self.program.array(value).shape) != value.shape:
                self._refuse(f"the constant {value.name} is declared as {value!r}")
        seen = set(self.made)
        self._steps(self.program.body, seen)
        bound = {step.var: step for step in walk(self.program.body) if isinstance(step, Bind)}
        for value in self.program.outputs:
            self._read(value, "the program", seen)
            for extent in value.shape:
                late = [var for var in _variables(extent) if var in bound]
                if late:
                    self._refuse(
                        f"the output {value.name} has the length {extent}, which is known only when it has run",
                        "give the output as many elements as it may have, and its length as another output",
                    )

    def _refuse(self, problem: str, hint: str | None = None) -> None:
        raise BadProgram(self.program.name, problem, hint)

    def _make(self, value: Value, by: str, seen: set[Value]) -> None:
        if value in self.made:
            self._refuse(f"{value.name} is made twice: by {self.made[value]} and by {by}")
        self.made[value] = by
        seen.add(value)

    def _read(self, value: Value, by: str, seen: set[Value]) -> None:
        if value in seen:
            return
        if value in self.made:
            self._refuse(f"{by} reads {value.name}, which is known only inside {self.made[value]}")
        self._refuse(f"{by} reads {value.name} before anything makes it")

    def _same(self, one: Value, other: Value, by: str) -> None:
        if one.dtype is not other.dtype or size_key(one) != size_key(other):
            self._refuse(f"{by} takes {one!r} for {other!r}")

    def _steps(self, steps: Sequence[Step], seen: set[Value]) -> None:
        for step in steps:
            match step:
                case Launch():
                    self._launch(step, seen)
                case View():
                    self._read(step.of, f"the view {step.value.name}", seen)
                    if not step.first and not _may_be_same_bytes(step.value, step.of):
                        self._refuse(f"{step.value!r} is no view of {step.of!r}: they differ in size")
                    self._make(step.value, "a view", seen)
                case Copy():
                    self._read(step.of, f"the copy {step.value.name}", seen)
                    if not step.first and not _may_be_same_bytes(step.value, step.of):
                        self._refuse(f"{step.value!r} is no copy of {step.of!r}: they differ in size")
                    self._make(step.value, "a copy", seen)
                case Bind():
                    self._read(step.value, f"the size {step.var.name}", seen)
                case Require():
                    for _, value, _ in step.reads:
                        self._read(value, "a check", seen)
                case Branch():
                    self._branch(step, seen)
                case Repeat():
                    self._repeat(step, seen)

    def _branch(self, step: Branch, seen: set[Value]) -> None:
        self._read(step.condition, "a branch", seen)
        for body in (step.then, step.otherwise):
            if len(body.results) != len(step.results):
                self._refuse(f"a branch has {len(step.results)} results, and one side leaves {len(body.results)}")
            self._body(body, set(seen), "a branch")
            for value, result in zip(step.results, body.results, strict=True):
                self._same(value, result, "a branch")
        for value in step.results:
            self._make(value, "a branch", seen)

    def _repeat(self, step: Repeat, seen: set[Value]) -> None:
        if step.count is None and step.condition is None:
            self._refuse("a loop has neither a count nor a condition")
        for value in (step.count, step.condition, *[carried.initial for carried in step.carried]):
            if isinstance(value, Value):
                self._read(value, "a loop", seen)
        inside = set(seen)
        for value in (step.index, step.inside_condition, *[carried.inside for carried in step.carried]):
            if value is not None:
                self._make(value, "a loop", inside)
        for cut in step.scanned:
            self._read(cut.whole, "a loop", seen)
            self._make(cut.part, "a loop", inside)
        self._body(step.body, inside, "a loop")
        for carried in step.carried:
            self._read(carried.next, "a loop", inside)
            for value in (carried.inside, carried.next, carried.result):
                self._same(value, carried.initial, "a loop")
            self._make(carried.result, "a loop", seen)
        if step.next_condition is not None:
            self._read(step.next_condition, "a loop", inside)
        for cut in step.collected:
            self._read(cut.part, "a loop", inside)
            self._make(cut.whole, "a loop", seen)
        for cut in (*step.scanned, *step.collected):
            if len(cut.whole.shape) != len(cut.part.shape) + 1:
                self._refuse(f"a loop takes {cut.part!r} for a slice of {cut.whole!r}")

    def _body(self, body: Body, seen: set[Value], what: str) -> None:
        self._steps(body.steps, seen)
        for value in body.results:
            self._read(value, what, seen)

    def _launch(self, step: Launch, seen: set[Value]) -> None:
        name = step.name or step.func.name
        buffers = step.buffers
        if len(buffers) != len(step.arguments) or not 0 <= step.outputs <= len(buffers):
            raise KernelMismatch(name, f"it takes {len(buffers)} buffers, and is called with {len(step.arguments)}")
        for position, (buffer, value) in enumerate(zip(buffers, step.arguments, strict=True)):
            if buffer.strides:
                raise KernelMismatch(name, f"its buffer {buffer.name} has strides")
            declared = [extent.value if isinstance(extent, IntImm) else extent for extent in buffer.shape]
            fits = len(declared) == len(value.shape) and buffer.dtype is value.dtype
            for a, b in zip(declared, value.shape, strict=False):
                fits = fits and (a == b or not (isinstance(a, int) and isinstance(b, int)))
            if not fits:
                shape = ", ".join(map(str, declared))
                raise KernelMismatch(
                    name,
                    f"its buffer {position + 1}, {buffer.name}, is {buffer.dtype}[{shape}], and is given {value!r}",
                )
        for i, o in step.may_overwrite:
            if not (0 <= i < len(step.inputs) and 0 <= o < step.outputs):
                raise KernelMismatch(name, f"may_overwrite names the pair ({i}, {o}), which it does not have")
        self._parts(step, name, seen)
        for value in step.inputs:
            self._read(value, f"the kernel {name}", seen)
        for value in step.written:
            self._make(value, f"the kernel {name}", seen)

    def _parts(self, step: Launch, name: str, seen: set[Value]) -> None:
        if step.parts and len(step.parts) != len(step.arguments):
            raise KernelMismatch(name, f"it has {len(step.arguments)} arguments, and parts for {len(step.parts)}")
        for index, (part, value) in enumerate(zip(step.parts, step.arguments, strict=False)):
            if part is None:
                continue
            if not value.is_static or not 0 <= part.axis < len(value.shape):
                raise KernelMismatch(name, f"its argument {index + 1} is a part of {value!r}, which has no such axis")
            if not 0 <= part.start <= part.start + part.size <= int(value.shape[part.axis]):  # type: ignore[arg-type]
                raise KernelMismatch(name, f"its argument {index + 1} is no part of {value!r}: {part}")
        if step.keeps is not None:
            self._read(step.keeps, f"the kernel {name}", seen)
            if step.outputs != 1:
                raise KernelMismatch(name, f"it adds to {step.keeps.name}, and has {step.outputs} outputs")
            self._same(step.written[0], step.keeps, f"the kernel {name}")


def _variables(extent: int | Expr) -> list[Var]:
    return [] if isinstance(extent, int) else variables(extent)


def _may_be_same_bytes(one: Value, other: Value) -> bool:
    """Whether two values can be the same bytes; where a length is open, a call finds out."""
    return not (one.is_static and other.is_static) or one.nbytes == other.nbytes
