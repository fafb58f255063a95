"""IRBuilder and its frames: a stack of constructs that are being filled with statements."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from loopwright.ir import Buffer, IRModule, PrimFunc, Stmt, Var
from loopwright.runtime.errors import LoopwrightError, SourceLine, caller
from loopwright.script.parser.frames import Frame
from loopwright.script.parser.functions import FunctionParser
from loopwright.script.parser.scopes import Environment, Scopes
from loopwright.script.parser.source import Source
from loopwright.script.parser.statements import sequence

T = TypeVar("T")
# What an open frame gives: what stands around its statements, what `as` binds, what its statements become.
Opened = tuple[Frame | None, object, Callable[[Stmt], object]]


class NoBuilder(LoopwrightError, ValueError):
    """A word of the builder was called outside every `with IRBuilder():`, so there is nothing to add to.

    In a function under `@T.prim_func` use the words of `loopwright.script.tir`; those of `script.ir_builder.tir` are
    for Python code that builds a program by calls.

    For example:

        from loopwright.script.ir_builder import tir as T

        T.evaluate(0)
    """

    code = "LW0329"

    def __init__(self) -> None:
        super().__init__(
            "no IRBuilder is open",
            hint="write `with IRBuilder() as builder:` around it, and take the result with builder.get()",
        )


class NothingBuilt(LoopwrightError, ValueError):
    """`IRBuilder.get()` was called before anything was finished, or while a frame is still open.

    For example:

        from loopwright.script.ir_builder import IRBuilder

        IRBuilder().get()
    """

    code = "LW0330"

    def __init__(self, problem: str) -> None:
        super().__init__(problem, hint="call get() after the frames, with at least one statement in them")


class Engine(FunctionParser):
    """The parser without text: places are those of the calling lines."""

    def __init__(self) -> None:
        super().__init__(Source("<builder>", []), Scopes(Environment()), {})

    def place(self, node: ast.AST) -> SourceLine:
        return caller() or SourceLine("<builder>", 0)


NOWHERE: Final = ast.Constant(None)  # what stands for the syntax that a builder does not have
_current: ContextVar[tuple[IRBuilder, ...]] = ContextVar("builders", default=())


class IRBuilder:
    """A program in the making; `get()` gives it when all frames are closed."""

    def __init__(self) -> None:
        self.engine = Engine()
        self.statements: list[list[Stmt]] = [[]]
        self.results: list[object] = []
        self.module: IRModule | None = None

    def __enter__(self) -> IRBuilder:
        _current.set((*_current.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        _current.set(_current.get()[:-1])

    @staticmethod
    def current() -> IRBuilder:
        """The innermost open builder."""
        open_ones = _current.get()
        if not open_ones:
            raise NoBuilder
        return open_ones[-1]

    @staticmethod
    def is_in_scope() -> bool:
        """Whether a builder is open."""
        return bool(_current.get())

    @staticmethod
    def name(name: str, obj: T) -> T:
        """Give a variable or buffer its name; returns the object."""
        if isinstance(obj, (Var, Buffer)):
            if isinstance(obj, Buffer) and obj.data.name == obj.name:
                object.__setattr__(obj.data, "name", name)
            # Names are hints for printing: nothing that was built depends on them.
            object.__setattr__(obj, "name", name)
        return obj

    @staticmethod
    def name_many(names: Sequence[str], objs: Sequence[T]) -> list[T]:
        """Give each object its name."""
        if len(names) != len(objs):
            raise ValueError(f"name_many: {len(names)} names for {len(objs)} objects")
        return [IRBuilder.name(name, obj) for name, obj in zip(names, objs, strict=True)]

    def get(self) -> Any:
        """The function, module or statement that was built."""
        if len(self.statements) != 1:
            raise NothingBuilt("IRBuilder.get() was called while a frame is open")
        if self.results:
            return self.results[-1]
        if not self.statements[0]:
            raise NothingBuilt("nothing was built")
        return sequence(self.statements[0])

    def add(self, result: object) -> None:
        """Put what a frame or a word made into the frame around it."""
        if isinstance(result, Stmt):
            self.statements[-1].append(result)
        elif isinstance(result, PrimFunc) and self.module is not None:
            self.module[result.name] = result
        elif result is not None:
            self.results.append(result)


class BuilderFrame:
    """A construct that a `with` fills. `add_callback` adds what is called when it closes."""

    def __init__(self, *openings: Callable[[Engine], Opened]) -> None:
        self._openings = openings
        self._opened: list[Opened] = []
        self._callbacks: list[Callable[[], object]] = []

    def __enter__(self) -> Any:
        builder = IRBuilder.current()
        bound = []
        for opening in self._openings:
            opened = opening(builder.engine)
            self._opened.append(opened)
            if opened[0] is not None:
                builder.engine.frames.append(opened[0])
            builder.statements.append([])
            bound.append(opened[1])
        return bound[0] if len(bound) == 1 else tuple(bound)

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        builder = IRBuilder.current()
        for frame, _, close in reversed(self._opened):
            body = sequence(builder.statements.pop())
            if error is None:
                result = close(body)
            if frame is not None:
                builder.engine.frames.pop()
            if error is None:
                builder.add(result)
        self._opened = []
        for callback in self._callbacks:
            callback()

    def add_callback(self, callback: Callable[[], object]) -> None:
        """Have `callback` called when the frame has closed."""
        self._callbacks.append(callback)
