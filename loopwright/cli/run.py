"""run: a Python file as a script, or the programs it defines on random inputs.

`loopwright run FILE args…` does what `python FILE args…` does, with our rendering of errors. When FILE only defines
programs (imports, functions, assignments), or one is named (`FILE:NAME`), each is compiled, called with random inputs
made from its parameters, timed, and its results are summed up: a first look at a program without writing a driver.
"""

from __future__ import annotations

import ast
import json
import math
import runpy
import sys
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from loopwright.cli.programs import NoSuchFile, Program, compiled
from loopwright.ir import (
    Buffer,
    BufferStore,
    Expr,
    For,
    IntImm,
    PrimFunc,
    SeqStmt,
    Stmt,
    Var,
    Visitor,
    const,
    substitute,
    variables_in,
)
from loopwright.runtime.errors import LoopwrightError

DEFAULT_SIZE: Final = 64  # of dimensions and numbers that only a call gives
_CHECKED_STORES: Final = 30_000  # programs that store no more than this also run in the evaluator
_DEFINITIONS: Final = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign, ast.AnnAssign)


class BadSize(LoopwrightError, ValueError):
    """`loopwright run FILE:NAME` was given an argument that is not `name=number` for a size or number of the program.

    For example:

        from loopwright.cli.run import read_sizes

        read_sizes(["n:128"])
    """

    code = "LW0025"

    def __init__(self, given: str, names: Sequence[str] = (), why: str | None = None) -> None:
        known = f"; the program takes {', '.join(names)}" if names else ""
        super().__init__(
            f"{given!r} is not the value of a size or number{known}" if why is None else f"{given}: {why}",
            hint="write n=128, where n is a symbolic size or a number among the parameters",
            fields={"given": given},
        )


class CannotInvent(LoopwrightError, ValueError):
    """`loopwright run` cannot make up an argument for a program: a raw pointer has no random value.

    For example:

        from loopwright.cli.run import make_arguments
        from loopwright.script import from_source

        func = from_source("@T.prim_func\\ndef f(p: T.handle):\\n    T.evaluate(0)")
        make_arguments(func, {}, 0)
    """

    code = "LW0026"

    def __init__(self, param: Var) -> None:
        super().__init__(
            f"parameter {param.name} is a {param.dtype}, for which no value can be made up",
            hint=f"match it to a buffer: T.match_buffer({param.name}, (16,)); or call the program from a script",
        )


class ScriptNotScheduled(LoopwrightError, ValueError):
    """`loopwright run --autosched` was given a script. A script builds its programs itself, scheduled or not.

    For example:

        from pathlib import Path
        from loopwright.cli.run import run_script

        Path("script.py").write_text("print('hello')")
        run_script("script.py", [], autosched=True)
    """

    code = "LW0029"

    def __init__(self, file: str) -> None:
        super().__init__(
            f"{file} is a script, and --autosched is for programs",
            hint=f"write loopwright.build(…, autosched=True) in it, or name a program of it: {file}:NAME",
            fields={"file": file},
        )


class Argument(NamedTuple):
    """One argument of the run."""

    name: str
    value: Any  # an array, or a number
    dtype: str
    shape: tuple[int, ...] | None  # None: a number


class Result(NamedTuple):
    """What a run found out."""

    program: str
    arguments: list[Argument]
    written: list[tuple[str, float, str]]  # name, sum of the elements, checksum of the bytes
    returned: object
    build_seconds: float
    median_seconds: float
    runs: int
    error: float | None  # largest difference from the evaluator; None: not compared
    is_too_large: bool = False  # for the evaluator, which is a thousand times slower


def only_defines(file: str) -> bool:
    """Whether the file, read as Python, does nothing but define names."""
    path = Path(file)
    if not path.is_file():
        raise NoSuchFile(path)
    try:
        body = ast.parse(path.read_bytes()).body
    except (SyntaxError, ValueError):
        return False  # Python says what is wrong when it runs
    return all(isinstance(one, _DEFINITIONS) or _is_text(one) for one in body)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def run_script(file: str, arguments: Sequence[str], autosched: bool = False) -> None:
    """What `python FILE arguments…` does; `autosched` is refused."""
    path = Path(file)
    if not path.is_file():
        raise NoSuchFile(path)
    if autosched:
        raise ScriptNotScheduled(file)
    before, folder = sys.argv, str(path.resolve().parent)
    sys.argv = [file, *arguments]
    sys.path.insert(0, folder)
    try:
        runpy.run_path(file, run_name="__main__")
    finally:
        sys.argv = before
        sys.path.remove(folder)


def read_sizes(arguments: Sequence[str]) -> dict[str, int]:
    """`n=128 m=64` as numbers."""
    sizes: dict[str, int] = {}
    for text in arguments:
        name, equals, number = text.partition("=")
        if not equals or not number.lstrip("-").isdigit() or not name.isidentifier():
            raise BadSize(text)
        if name in sizes:
            raise BadSize(text, why=f"{name} is given twice, {sizes[name]} before")
        sizes[name] = int(number)
    return sizes


def run_program(
    program: Program, target: str, sizes: Mapping[str, int], seed: int, repeat: int, autosched: bool = False
) -> Result:
    """Compile the program, call it on random inputs, time it; compare with the evaluator when that is quick."""
    from loopwright import runtime

    name, func = _entry(program)
    arguments = make_arguments(func, sizes, seed)
    built = compiled(program.module, target, autosched)
    first = [one.value.copy() if one.shape is not None else one.value for one in arguments]
    tensors = [runtime.array(value) if isinstance(value, np.ndarray) else value for value in first]
    native = built[func.name if "global_symbol" in func.attrs else name]
    returned = native(*tensors)
    results = [tensor.numpy() if hasattr(tensor, "numpy") else tensor for tensor in tensors]
    written = [
        (one.name, float(np.sum(result.astype("float64"))), f"{zlib.crc32(np.ascontiguousarray(result).tobytes()):08x}")
        for one, result in zip(arguments, results, strict=True)
        if one.shape is not None and result.tobytes() != one.value.tobytes()
    ]
    is_too_large = _store_count(func, sizes) > _CHECKED_STORES
    error = None if is_too_large else _difference(program, name, arguments, results)
    timer = built.time_evaluator(
        func.name if "global_symbol" in func.attrs else name, runtime.cpu(0), number=1, repeat=repeat, min_repeat_ms=1
    )
    timed = timer(*tensors)
    seconds = sum(built.timings.values())
    return Result(program.name, arguments, written, returned, seconds, timed.median, repeat, error, is_too_large)


def _entry(program: Program) -> tuple[str, PrimFunc]:
    """The function of the program to call: `main`, else the first public one."""
    functions = dict(program.module.functions_items())
    public = [name for name, func in functions.items() if "global_symbol" in func.attrs] or list(functions)
    name = "main" if "main" in functions else public[0]
    return name, functions[name]


def make_arguments(func: PrimFunc, sizes: Mapping[str, int], seed: int) -> list[Argument]:
    """Random arguments: arrays from the shapes of the parameters, numbers from `sizes` or the usual size."""
    random = np.random.default_rng(seed)
    symbols = _symbols(func)
    for name in sizes:
        if name not in {var.name for var in symbols}:
            raise BadSize(f"{name}={sizes[name]}", [var.name for var in symbols])
    offsets = {buffer.elem_offset for buffer in func.argument_buffers()}
    values: dict[Var, Expr] = {
        var: const(sizes.get(var.name, 0 if var in offsets else DEFAULT_SIZE), var.dtype)
        for var in symbols
        if var.dtype.is_int
    }
    result = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is not None:
            result.append(_array(buffer, values, random))
        elif param.dtype.is_int or param.dtype.is_bool:
            number = sizes.get(param.name, DEFAULT_SIZE)
            result.append(Argument(param.name, bool(number) if param.dtype.is_bool else number, str(param.dtype), None))
        elif param.dtype.is_float:
            result.append(Argument(param.name, float(sizes.get(param.name, 1)), str(param.dtype), None))
        else:
            raise CannotInvent(param)
    return result


def _symbols(func: PrimFunc) -> list[Var]:
    """The sizes that only a call gives, and the numbers among the parameters."""
    result: dict[Var, None] = {param: None for param in func.params if param.dtype.kind != "handle"}
    for buffer in func.argument_buffers():
        for expr in (*buffer.shape, *buffer.strides, buffer.elem_offset):
            result.update(dict.fromkeys(variables_in(expr)))
    return list(result)


def _array(buffer: Buffer, values: Mapping[Var, Expr], random: np.random.Generator) -> Argument:
    from loopwright.arith import Analyzer

    shape = []
    for extent in buffer.shape:
        known = Analyzer().simplify(substitute(extent, values))
        shape.append(known.value if isinstance(known, IntImm) else DEFAULT_SIZE)
        if shape[-1] < 0:
            sizes = [f"{var.name}={values[var]}" for var in variables_in(extent) if var in values]
            raise BadSize(" ".join(sizes), why=f"dimension {len(shape) - 1} of {buffer.name} would be {shape[-1]}")
    dtype = buffer.dtype
    if dtype.is_bool:
        data = random.integers(0, 2, shape).astype(bool)
    elif dtype.is_float:
        data = random.uniform(-1, 1, shape).astype(dtype.numpy())
    else:
        data = random.integers(0, min(127, int(dtype.max_value())) + 1, shape).astype(dtype.numpy())
    return Argument(buffer.name, data, str(dtype), tuple(shape))


class _CountStores(Visitor):
    """How many stores a run makes; loops of unknown length count as the usual size."""

    def __init__(self) -> None:
        self.around, self.stores = 1, 0

    def visit_For(self, loop: For) -> None:
        before = self.around
        self.around *= loop.extent.value if isinstance(loop.extent, IntImm) else DEFAULT_SIZE
        self.visit(loop.body)
        self.around = before

    def visit_BufferStore(self, store: BufferStore) -> None:
        self.stores += self.around

    def visit_SeqStmt(self, seq: SeqStmt) -> None:
        for part in seq.seq:
            self.visit(part)

    def visit_While(self, loop: Stmt) -> None:
        self.stores += _CHECKED_STORES + 1  # who knows


def _store_count(func: PrimFunc, sizes: Mapping[str, int]) -> int:
    counter = _CountStores()
    counter.visit(func.body)
    largest = max([1, *sizes.values()])
    return counter.stores * max(1, largest // DEFAULT_SIZE)


def _difference(program: Program, name: str, arguments: Sequence[Argument], results: Sequence[object]) -> float | None:
    """The largest difference between an element of the native results and the evaluator's."""
    from loopwright.evaluator import evaluate
    from loopwright.runtime.errors import NotBuilt

    exact = [one.value.copy() if one.shape is not None else one.value for one in arguments]
    try:
        evaluate(program.module, *exact, function=name)
    except NotBuilt:  # calls of functions outside the program
        return None
    worst = 0.0
    for one, expected, result in zip(arguments, exact, results, strict=True):
        if one.shape is not None and expected.size:
            a, b = expected.astype("float64"), np.asarray(result).astype("float64")
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            worst = max(worst, float(np.max(np.where(same, 0.0, np.abs(a - b)))))
    return worst


def as_text(result: Result) -> str:
    """The result for the terminal."""
    lines = [result.program]
    for one in result.arguments:
        what = f"{one.dtype} = {one.value}" if one.shape is None else f"{one.dtype}{list(one.shape)}"
        lines.append(f"  argument {one.name}: {what}")
    for name, total, checksum in result.written:
        lines.append(f"  wrote {name}: sum {total:.9g}, crc32 {checksum}")
    if result.returned is not None:
        lines.append(f"  returned {result.returned}")
    if result.error is not None:
        lines.append(f"  against the evaluator: largest difference {result.error:.3g}")
    elif result.is_too_large:
        lines.append("  not checked against the evaluator: too large; try smaller sizes")
    lines.append(
        f"  built in {_time(result.build_seconds)}, runs in {_time(result.median_seconds)} (median of {result.runs})"
    )
    return "\n".join(lines)


def _time(seconds: float) -> str:
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= unit:
            return f"{seconds / unit:.3g} {name}"
    return f"{seconds / 1e-9:.3g} ns"


def as_json(results: Sequence[Result]) -> str:
    """The results for programs."""
    return json.dumps(
        [
            {
                "program": result.program,
                "arguments": [
                    {
                        "name": one.name,
                        "dtype": one.dtype,
                        **({"value": one.value} if one.shape is None else {"shape": list(one.shape)}),
                    }
                    for one in result.arguments
                ],
                "written": [
                    {"name": name, "sum": _finite(total), "crc32": checksum} for name, total, checksum in result.written
                ],
                "returned": _finite(result.returned),
                "build_seconds": result.build_seconds,
                "median_seconds": result.median_seconds,
                "runs": result.runs,
                "difference_from_evaluator": _finite(result.error),
            }
            for result in results
        ],
        indent=2,
    )


def _finite(value: object) -> object:
    """JSON has no infinity, and nothing that is not a number."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
