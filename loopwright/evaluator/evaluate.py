"""evaluate: run a program in plain Python, exactly as docs/semantics.md says.

    >>> import numpy as np
    >>> from loopwright.ir import BufferStore, For, ForKind, PrimFunc, Var, decl_buffer
    >>> A, B, i = decl_buffer((3,), name="A"), decl_buffer((3,), name="B"), Var("i")
    >>> double = PrimFunc([A, B], For(i, 0, 3, ForKind.SERIAL, BufferStore(B, A[i] + A[i], [i])))
    >>> b = np.zeros(3, "float32")
    >>> evaluate(double, np.array([1, 2, 4], "float32"), b)
    >>> b.tolist()
    [2.0, 4.0, 8.0]

Watch it run:

    >>> evaluate(double, np.array([1, 2, 4], "float32"), b, on_step=print)
    B[0] = 2.0 at i=0
    B[1] = 4.0 at i=1
    B[2] = 8.0 at i=2
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence

import numpy as np

from loopwright.analysis.reduction_init import write_inits
from loopwright.analysis.thread_extents import check_thread_extents
from loopwright.analysis.thread_owners import owner_tags
from loopwright.evaluator.arguments import Array, Parameters
from loopwright.evaluator.calls import Returned
from loopwright.evaluator.locations import Run
from loopwright.evaluator.statements import OnStep
from loopwright.evaluator.threads import ThreadCompiler
from loopwright.evaluator.values import Value
from loopwright.ir import GlobalVar, IRModule, PrimFunc, deep
from loopwright.runtime.call_errors import ArgumentCountMismatch
from loopwright.runtime.errors import LoopwrightError


class NotAProgram(LoopwrightError, TypeError):
    """`evaluate` was given something that is neither a function nor a module of the IR.

    For example:

        from loopwright import te
        from loopwright.evaluator import evaluate

        evaluate(te.placeholder((4,), name="A"))
    """

    code = "LW0811"

    def __init__(self, given: object) -> None:
        super().__init__(
            f"cannot evaluate {type(given).__name__} {given!r}",
            hint="give a PrimFunc or an IRModule; te.create_prim_func([inputs…, outputs…]) makes one from tensors",
        )


@deep
def evaluate(
    program: PrimFunc | IRModule,
    *arguments: object,
    on_step: OnStep | None = None,
    check: bool = True,
    function: str | None = None,
) -> Value:
    """Run a function, or a module's `function` (default "main", or its only one); what it returns, else None.

    Arguments are numpy arrays, which are written in place, and numbers. `on_step` is called with a `Step` before each
    store and each block. `check=False` leaves out the tests for bounds and uninitialised memory.
    """
    module, func = choose_function(program, function)
    with np.errstate(all="ignore"):
        return Program(module, lambda: ThreadCompiler(check, on_step)).function(func)(arguments)


def choose_function(program: PrimFunc | IRModule, name: str | None) -> tuple[IRModule | None, PrimFunc]:
    """The function to run, and the module it may call into."""
    if isinstance(program, PrimFunc):
        return None, program
    if not isinstance(program, IRModule):
        raise NotAProgram(program)
    names = [key for key, _ in program.functions_items()]
    if name is None and "main" not in names and len(names) != 1:
        raise LoopwrightError(
            f"the module has {len(names)} functions: {', '.join(names)}", hint='say which one: function="…"'
        )
    return program, program[name or ("main" if "main" in names else names[0])]


class Program:
    """The compiled functions of a module, each made when it is first needed."""

    def __init__(self, module: IRModule | None, compiler: Callable[[], ThreadCompiler]) -> None:
        self.module, self.compiler = module, compiler
        self.functions: dict[PrimFunc, Function] = {}

    def function(self, func: PrimFunc) -> Function:
        result = self.functions.get(func)
        if result is None:
            result = self.functions[func] = Function(self, func)
        return result

    def call(self, name: GlobalVar, arguments: list[Run]) -> Run:
        """A call from inside the program."""
        assert self.module is not None
        func = self.module[name]
        if len(func.params) != len(arguments):
            raise ArgumentCountMismatch(
                f"{name.name} takes {len(func.params)} arguments, but {len(arguments)} were given"
            )
        takes_array = [param in func.buffer_map for param in func.params]

        def run() -> Value:
            values = []
            for argument, array in zip(arguments, takes_array, strict=True):
                value = argument()
                if array and not isinstance(value, Array):
                    value = Array(value, None, None, None)
                elif not array and isinstance(value, Array):
                    value = value.pointer
                values.append(value)
            return self.function(func).run(values)

        return run


class Function:
    """One compiled function."""

    def __init__(self, program: Program, func: PrimFunc) -> None:
        self.compiler = program.compiler()
        if program.module is not None:
            self.compiler.call_function = program.call
        # Nothing made here is garbage, but Python would go through all of it again and again: five times the work.
        collects = gc.isenabled()
        gc.disable()
        try:
            check_thread_extents(func)
            functions = dict(program.module.functions_items()) if program.module is not None else {}
            self.parameters = Parameters(self.compiler, func, functions)
            body = write_inits(func.body)
            self.compiler.owners = owner_tags(body)
            self.body = self.compiler.visit(body)
        finally:
            if collects:
                gc.enable()
        self.running = False

    def __call__(self, arguments: Sequence[object]) -> Value:
        return self.run(self.parameters.convert(arguments))

    def run(self, values: Sequence[object]) -> Value:
        frame = self.compiler.frame
        saved = list(frame) if self.running else None  # a recursive call
        was, self.running = self.running, True
        try:
            self.parameters.set(values)
            self.body()
        except Returned as returned:
            return returned.value
        finally:
            self.running = was
            if saved is not None:
                frame[:] = saved
        return None
