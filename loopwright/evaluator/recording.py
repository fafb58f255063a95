"""record: run a program and write down every element that is loaded or stored, in the order in which it happens.

    >>> import numpy as np
    >>> from loopwright.ir import BufferStore, For, ForKind, PrimFunc, Var, decl_buffer
    >>> A, B, i = decl_buffer((2,), name="A"), decl_buffer((2,), name="B"), Var("i")
    >>> double = PrimFunc([A, B], For(i, 0, 2, ForKind.SERIAL, BufferStore(B, A[i] + A[i], [i])))
    >>> recording = record(double, np.array([1, 2], "float32"), np.zeros(2, "float32"))
    >>> for event in recording.events:
    ...     print(recording.told(event))
    A[0] is 1.0 at i=0
    A[0] is 1.0 at i=0
    B[0] = 2.0 at i=0
    A[1] is 2.0 at i=1
    A[1] is 2.0 at i=1
    B[1] = 4.0 at i=1

`on_step` of `evaluate` tells of stores and blocks as they are about to run; here loads are told as well, and lanes in
lockstep store after all of them have loaded. What a called function does by itself is not seen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from loopwright.evaluator.arguments import Array
from loopwright.evaluator.evaluate import Program, choose_function
from loopwright.evaluator.expressions import Scope
from loopwright.evaluator.locations import Place, Run
from loopwright.evaluator.memory import Memory, Pointer
from loopwright.evaluator.threads import ThreadCompiler
from loopwright.evaluator.values import Body, Value
from loopwright.ir import BlockRealize, Buffer, IRModule, Node, PrimFunc, Stmt, deep
from loopwright.runtime.dtype import DataType


class Site(NamedTuple):
    """A load or store of the program."""

    writes: bool
    block: str  # the name of the block around it, if any
    names: tuple[str, ...]  # the loop variables and block axes around it, outermost first


class Piece(NamedTuple):
    """Memory that an argument or an allocation brought along."""

    buffer: Buffer
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    begin: int  # the offset of its first element
    is_argument: bool

    def indices(self, offset: int) -> tuple[int, ...]:
        """The indices of the element at an offset."""
        result, rest = [], offset // self.buffer.dtype.lanes - self.begin
        for stride in self.strides:
            result.append(rest // stride if stride else 0)
            rest = rest % stride if stride else rest
        return tuple(result)


class Event(NamedTuple):
    """An element is loaded or stored."""

    site: int  # its number among the sites
    piece: int  # its number among the pieces of memory
    offset: int  # of the element in that memory
    value: Value
    iteration: tuple[int, ...]  # the values of the site's names


@dataclass
class Recording:
    """What happened."""

    sites: list[Site] = field(default_factory=list)
    pieces: list[Piece] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    is_complete: bool = True  # False when there was more than was asked for

    def message(self, event: Event) -> str:
        """An event in words."""
        site, piece = self.sites[event.site], self.pieces[event.piece]
        cell = f"{piece.buffer.name}[{', '.join([str(index) for index in piece.indices(event.offset)])}]"
        where = ", ".join([f"{name}={value}" for name, value in zip(site.names, event.iteration, strict=True)])
        return f"{cell} {'=' if site.writes else 'is'} {event.value}" + (f" at {where}" if where else "")


@deep
def record(
    program: PrimFunc | IRModule, *arguments: object, function: str | None = None, most: int | None = None
) -> Recording:
    """Run a function as `evaluate` does, and give what was loaded and stored; it stops after `most` of these."""
    module, func = choose_function(program, function)
    result = Recording()
    recorder = _Recorder(result, most)
    with np.errstate(all="ignore"):
        compiled = Program(module, lambda: _RecordingCompiler(recorder)).function(func)
        values = compiled.parameters.convert(arguments)
        for param, value in zip(func.params, values, strict=True):
            if isinstance(value, Array):
                strides = value.strides or ()
                recorder.know(value.pointer.memory, Piece(func.buffer_map[param], value.shape or (), strides, 0, True))
        try:
            compiled.run(values)
        except _Enough:
            result.is_complete = False
    return result


class _Enough(Exception):
    """More happened than was asked for. Never leaves `record`."""


class _Recorder:
    def __init__(self, result: Recording, most: int | None) -> None:
        self.made, self.most = result, most
        self.numbers: dict[Memory, int] = {}  # memory → its piece

    def know(self, memory: Memory, piece: Piece) -> None:
        self.numbers[memory] = len(self.made.pieces)
        self.made.pieces.append(piece)

    def add(self, event: Event) -> None:
        if len(self.made.events) == self.most:
            raise _Enough
        self.made.events.append(event)


class _RecordingCompiler(ThreadCompiler):
    """Compiles a program so that it tells of every element it touches."""

    def __init__(self, recorder: _Recorder) -> None:
        super().__init__(check=True)
        self.recorder = recorder
        self.block = ""
        self.allocated: Buffer | None = None  # what memory is being made for

    def compile_block(self, stmt: BlockRealize, compile_body: Callable[[Stmt], Body]) -> tuple[Run, Run, Body]:
        outer, self.block = self.block, stmt.block.name_hint
        compiled = super().compile_block(stmt, compile_body)
        self.block = outer
        return compiled

    def _allocation(self, buffer: Buffer) -> Run:
        self.allocated = buffer
        run = super()._allocation(buffer)
        self.allocated = None
        return run

    def new_memory(self, name: str, dtype: DataType, sizes: Sequence[object]) -> Run:
        make, buffer, recorder = super().new_memory(name, dtype, sizes), self.allocated, self.recorder
        if buffer is None:
            return make
        shape = [self.constant_or_run(size) for size in buffer.shape]
        strides = [self.constant_or_run(stride) for stride in buffer.effective_strides()]
        begin = [self.constant_or_run(buffer.elem_offset)]

        def known() -> Value:
            pointer = make()
            (first,) = _numbers(begin)
            recorder.know(pointer.memory, Piece(buffer, _numbers(shape), _numbers(strides), first, False))
            return pointer

        return known

    def read(self, buffer: Buffer, location: Place, at: Node) -> Callable[[int], Value]:
        one, tell = super().read(buffer, location, at), self._teller(buffer, writes=False)

        def message(k: int) -> Value:
            value = one(k)
            tell(k, value)
            return value

        return message

    def write(self, buffer: Buffer, location: Place, at: Node) -> Callable[[int, Value], None]:
        one, tell = super().write(buffer, location, at), self._teller(buffer, writes=True)

        def message(k: int, value: object) -> None:
            one(k, value)
            tell(k, value)

        return message

    def _teller(self, buffer: Buffer, writes: bool) -> Callable[[int, Value], None]:
        names, slots = _around(self.scope)
        number = len(self.recorder.made.sites)
        self.recorder.made.sites.append(Site(writes, self.block, names))
        recorder, frame, pointer, size = self.recorder, self.frame, self.slots[buffer.data], buffer.dtype.element.nbytes

        def tell(k: int, value: object) -> None:
            where: Pointer = frame[pointer]
            piece = recorder.numbers.get(where.memory)
            if piece is None:  # memory that no buffer was declared for: a constant, or a raw allocation
                piece = len(recorder.made.pieces)
                count = len(where.memory.data) // size
                recorder.know(where.memory, Piece(buffer, (count,), (1,), 0, False))
            offset = (where.offset + k * size) // where.memory.unit
            recorder.add(Event(number, piece, offset, value, tuple([frame[slot] for slot in slots])))

        return tell


def _around(scope: Scope | None) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """The names and slots of the iteration variables, outermost first."""
    result = []
    while scope is not None:
        result.append((scope.var.name, scope.slot))
        scope = scope.outer
    return tuple([name for name, _ in reversed(result)]), tuple([slot for _, slot in reversed(result)])


def _numbers(items: Sequence[Value]) -> tuple[int, ...]:
    return tuple([item if isinstance(item, int) else item() for item in items])
