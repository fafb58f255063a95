"""How a pass is tested: the program before, the program after, and both run on the same numbers."""

from __future__ import annotations

import numpy as np

from loopwright.analysis.thread_axes import is_barrier, tag_of
from loopwright.build import build
from loopwright.evaluator import evaluate
from loopwright.ir import AttrStmt, Call, Evaluate, IntImm, Node, PrimFunc, Stmt, pre_order_visit
from loopwright.ir.structural import assert_structural_equal
from loopwright.ir.verifier import verify
from loopwright.target import Target
from loopwright.transform.pipeline import stages

# Without multiply-add and without native float16: every pass keeps every bit.
PLAIN = Target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64")
# With both.
ARM = Target("llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=neoverse-n1")


def same_program(got: PrimFunc, wanted: PrimFunc) -> None:
    assert_structural_equal(got.without_attr("global_symbol"), wanted.without_attr("global_symbol"), block_names=True)


def check(
    run,
    before: PrimFunc,
    after: PrimFunc,
    target: Target = PLAIN,
    exact: bool = True,
    values: bool = True,
    again: bool = True,
) -> None:
    """`run(before)` is `after`, well formed, and computes what `before` computes; running it again changes nothing."""
    with target:
        got = run(before)
        verify(got)
        same_program(got, after)
        assert not again or run(got) is got
    if values:
        same_results(before, got, exact)


def unchanged(run, func: PrimFunc, target: Target = PLAIN) -> None:
    """`run(func)` is `func` itself."""
    with target:
        assert run(func) is func


def arguments(func: PrimFunc, seed: int = 0) -> list[np.ndarray | int]:
    """Random arrays for the function's buffers; 5 for its scalars (and 5 for what its shapes leave open)."""
    random = np.random.default_rng(seed)
    made: list[np.ndarray | int] = []
    for param in func.params:
        buffer = func.buffer_map.get(param)
        if buffer is None:
            made.append(5)
            continue
        shape = [extent.value if isinstance(extent, IntImm) else 5 for extent in buffer.shape]
        dtype = buffer.dtype
        if dtype.is_float:
            array = random.standard_normal(shape).astype(dtype.numpy())
        elif dtype.is_bool:
            array = random.integers(0, 2, shape).astype(bool)
        else:
            array = random.integers(0, 3, shape).astype(dtype.numpy())
        made.append(array)
    return made


def results(func: PrimFunc, seed: int = 0) -> list[np.ndarray]:
    given = arguments(func, seed)
    evaluate(func, *given)
    return [value for value in given if isinstance(value, np.ndarray)]


def same_results(one: PrimFunc, other: PrimFunc, exact: bool = True) -> None:
    for a, b in zip(results(one), results(other), strict=True):
        if exact:
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a.astype("float64"), b.astype("float64"), rtol=1e-5, atol=1e-5)


def same_at_every_stage(func: PrimFunc, target: Target = PLAIN, exact: bool = True) -> PrimFunc:
    """Run the whole pipeline, verifying and evaluating after each pass; the lowered function."""
    expected = results(func)
    for name, stage in stages(func, target):
        verify(stage)
        for a, b in zip(results(stage), expected, strict=True):
            if exact:
                np.testing.assert_array_equal(a, b, err_msg=f"after {name}")
            else:
                np.testing.assert_allclose(
                    a.astype("float64"), b.astype("float64"), rtol=1e-5, atol=1e-5, err_msg=f"after {name}"
                )
    return stage


def same_native(one: PrimFunc, other: PrimFunc) -> None:
    """Both, compiled for this machine, give the same bits."""
    given = [arguments(one), arguments(other)]
    for func, values in zip((one, other), given, strict=True):
        build(func)(*values)
    for a, b in zip(*given, strict=True):
        np.testing.assert_array_equal(a, b)


def check_all(run, before: PrimFunc, after: PrimFunc, again: bool = True) -> None:
    """`check`, and both run natively as well."""
    check(run, before, after, again=again)
    same_native(before, run(before))


def lowered(func: PrimFunc, *last, target: Target = PLAIN) -> PrimFunc:
    """Up to blocks written as statements, then the given passes."""
    from loopwright.transform import (
        canonicalize_loops,
        lower_blocks,
        mark_pipelines,
        write_allocations,
        write_inits,
    )

    with target:
        for each in (mark_pipelines, write_inits, canonicalize_loops, write_allocations, lower_blocks, *last):
            func = each(func)
            verify(func)
    return func


def barriers(root: Stmt) -> list[Call]:
    """The barriers of a program, in the order of its text."""
    found: list[Call] = []

    def look(node: Node) -> None:
        if isinstance(node, Evaluate) and is_barrier(node):
            found.append(node.value)

    pre_order_visit(root, look)
    return found


def launches(root: Stmt) -> list[AttrStmt]:
    """The launches of threads in a program, outermost first."""
    found: list[AttrStmt] = []
    pre_order_visit(root, lambda node: found.append(node) if isinstance(node, AttrStmt) and tag_of(node) else None)
    return found
