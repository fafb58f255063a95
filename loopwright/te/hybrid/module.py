"""HybridModule: hybrid script as text, to be saved, loaded, read and called; and `build`, which writes it."""

from __future__ import annotations

import ast
import itertools
import linecache
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from loopwright.ir import IRModule, PrimFunc
from loopwright.te.hybrid.dump import dump
from loopwright.te.hybrid.errors import HybridError
from loopwright.te.hybrid.function import HybridFunction, script
from loopwright.te.tensor import Tensor

_numbers: Final = itertools.count()


class HybridModule:
    """One hybrid function and its source. Called on te tensors it gives tensors; on arrays it runs as Python."""

    def __init__(self, src: str | None = None, name: str | None = None) -> None:
        self.src_ = ""
        self.name = name
        self.func_: HybridFunction | None = None
        if src is not None:
            self._take(src, name)

    def _take(self, src: str, name: str | None) -> None:
        try:
            tree = ast.parse(src)
        except SyntaxError as error:
            raise HybridError(f"the text is no Python: {error.msg}, in line {error.lineno}") from None
        defined = [node.name for node in tree.body if isinstance(node, ast.FunctionDef)]
        chosen = name or (defined[-1] if defined else None)
        if chosen not in defined:
            raise HybridError(
                f"the text defines no function {chosen}" if chosen else "the text defines no function",
                hint=f"it defines {', '.join(defined)}" if defined else "write a function: def f(a): …",
            )
        # Functions find their source through their file name: the text gets one of its own.
        file = f"<hybrid module {next(_numbers)}>"
        linecache.cache[file] = (len(src), None, src.splitlines(keepends=True), file)
        scope: dict[str, Any] = {}
        exec(compile(tree, file, "exec"), scope)
        result = scope[chosen]
        self.func_ = result if isinstance(result, HybridFunction) else script(result)
        self.src_, self.name = src, chosen

    def __call__(self, *args: object) -> Any:
        if self.func_ is None:
            raise HybridError("the module holds no function yet", hint="load one: module.load(path)")
        return self.func_(*args)

    def get_source(self) -> str:
        """The text of the function."""
        return self.src_

    def save(self, path: str) -> None:
        """Write the text to a file; `.py` is added where it is missing."""
        target = Path(path if str(path).endswith(".py") else f"{path}.py")
        target.write_text(self.src_, encoding="utf-8")

    def load(self, path: str) -> None:
        """Read the function from a file."""
        self._take(Path(path).read_text(encoding="utf-8"), None)


def build(sch: object, inputs: Sequence[Tensor], outputs: Sequence[Tensor], name: str = "hybrid_func") -> HybridModule:
    """What computes `outputs` from `inputs` (te tensors), written as one hybrid function.

    `sch` is None for the loops as they are, or a schedule: of te, or a `tir.Schedule` of the function that
    `te.create_prim_func` makes from the same tensors. The module then shows the loops as they were scheduled.
    """
    from loopwright.te.create_prim_func import create_prim_func
    from loopwright.te.schedule.schedule import Schedule

    if sch is None:
        function = create_prim_func([*inputs, *outputs])
    else:
        scheduled: IRModule | None
        if isinstance(sch, Schedule):
            from loopwright.te.schedule.to_module import schedule_to_module  # runs the schedule engine

            scheduled = schedule_to_module(sch, [*inputs, *outputs])
        else:
            scheduled = getattr(sch, "mod", None)
        if scheduled is None:
            raise HybridError(f"{type(sch).__name__} is no schedule", hint="give a schedule of te or tir, or None")
        function = next(iter(scheduled.functions.values()))
    assert isinstance(function, PrimFunc)
    buffers = function.argument_buffers()
    return HybridModule(dump(function, buffers[len(buffers) - len(outputs) :], name), name)
