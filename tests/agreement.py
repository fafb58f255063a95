"""Do all ways of running a program agree? The evaluator at every stage of lowering, and the native code.

All comparisons are exact, bit for bit (any NaN equals any NaN): forming multiply-adds is the only pass that changes a
rounding, so stages are compared on a target without them, and native code is compared with the evaluator on the very
stage it is made from, with mathematical functions written out as the bodies that code generation uses.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loopwright import ir
from loopwright.codegen.llvm import make_module
from loopwright.codegen.math import expand, has_body
from loopwright.evaluator import evaluate
from loopwright.ir.verifier import verify
from loopwright.ir.visitor import Rewriter
from loopwright.target import Target, describe, host_description
from loopwright.transform.pipeline import stages

_WITHOUT_FMA = {"x86_64": "llvm -mcpu=x86-64", "aarch64": "llvm"}


class Disagreement(AssertionError):
    """Two ways of running one program gave different results."""


def assert_agreement(function: ir.PrimFunc, arguments: Sequence[np.ndarray], native: bool = True) -> None:
    """Run `function` on `arguments` in every way there is, and compare."""
    plain = Target(_WITHOUT_FMA.get(host_description().triple.split("-")[0], "llvm"))
    _compare_stages(function, arguments, plain)
    if native and not describe(plain).has_fma:
        _compare_native(function, arguments, plain)
    if native:
        _compare_native(function, arguments, Target("llvm"))


def _compare_stages(function: ir.PrimFunc, arguments: Sequence[np.ndarray], target: Target) -> None:
    expected = None
    previous = "start"
    for name, stage in stages(function, target):
        verify(stage)
        results = evaluated(stage, arguments)
        # Where every machine has multiply-adds, stages agree before forming them, and after; so with expanded powers.
        rounds_anew = name == "expand_powers" or (name == "form_fma" and describe(target).has_fma)
        if expected is not None and not rounds_anew:
            assert_same(function, results, expected, f"the evaluator after {name}", f"after {previous}")
        expected, previous = results, name


def _compare_native(function: ir.PrimFunc, arguments: Sequence[np.ndarray], target: Target) -> None:
    *_, (_, lowered) = stages(function, target)
    written_out = write_out_math(lowered)
    results = copies(arguments)
    make_module(ir.IRModule({lowered.name: lowered}), describe(target))(*results)
    expected = evaluated(written_out, arguments)
    assert_same(function, results, expected, f"native code for {target}", "the evaluator on the same stage")


def evaluated(function: ir.PrimFunc, arguments: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The arguments after the evaluator ran the function on copies of them."""
    given = copies(arguments)
    evaluate(function, *given)
    return given


def copies(arguments: Sequence[np.ndarray | int]) -> list[np.ndarray]:
    """New arrays of the same values; numbers, which follow the arrays, as they are."""
    return [np.array(item) if isinstance(item, np.ndarray) else item for item in arguments]  # type: ignore[misc]


def assert_same(
    function: ir.PrimFunc, got: Sequence[np.ndarray], wanted: Sequence[np.ndarray], who: str, than: str
) -> None:
    """Raise a Disagreement that shows the first cell that differs."""
    for buffer, a, b in zip(function.argument_buffers(), got, wanted, strict=False):  # numbers come last
        same = (bits(a) == bits(b)) | (is_nan(a) & is_nan(b))
        if not same.all():
            where = tuple(int(axis[0]) for axis in np.nonzero(~same)) if a.ndim else ()
            raise Disagreement(
                f"{who} differs from {than} in {buffer.name}[{', '.join(map(str, where))}]: "
                f"{a[where]!r} instead of {b[where]!r} ({(~same).sum()} of {a.size} cells)\n{function.script()}"
            )


def bits(array: np.ndarray) -> np.ndarray:
    """The memory of each element as an integer."""
    return np.ascontiguousarray(array).view(f"u{array.dtype.itemsize}").reshape(array.shape)


def is_nan(array: np.ndarray) -> np.ndarray:
    """Where an array holds NaN; nowhere for integers."""
    if array.dtype.kind in "iub":
        return np.zeros(array.shape, bool)
    return np.isnan(array.astype("float64"))


class _WriteOutMath(Rewriter):
    def visit_Call(self, call: ir.Call) -> ir.Expr:
        call = self.rebuild(call)
        name = call.op.name.removeprefix("tir.")
        if has_body(name, call.dtype):
            return expand(name, call.args, call.args[0].dtype, call.dtype)
        return call


def write_out_math(function: ir.PrimFunc) -> ir.PrimFunc:
    """The function with mathematical functions replaced by the bodies that code generation uses."""
    return function.with_(body=_WriteOutMath().visit(function.body))
