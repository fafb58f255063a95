"""Synchronisation bugs, seeded: kernels with a barrier less, or in the wrong place, compute something else in some
order of their threads, or are stopped where not all threads reach a barrier."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from loopwright.analysis.thread_axes import barrier, is_barrier, tag_of
from loopwright.as_module import as_module
from loopwright.codegen.source.cuda import make_cuda_module
from loopwright.ir import AttrStmt, For, IfThenElse, IRModule, Stmt, any_statement, no_op, seq
from loopwright.runtime.call_errors import KernelStopped
from loopwright.target import Target, describe
from loopwright.transform import lower, split_host_device
from loopwright.transform.parts.statements import StmtRewriter
from tests.cuda_programs import PROGRAMS

# Programs and how many barriers the lowered ones have.
BARRIERS = {"gemm": 2, "convolution": 2, "transpose": 1, "dynamic_shared": 2}


class Mutate(StmtRewriter):
    """Replaces one barrier, by its number in the text."""

    def __init__(self, number: int, by: Callable[[Stmt, AttrStmt], Stmt]) -> None:
        self.left, self.by = number, by
        self.launch: AttrStmt | None = None  # the innermost: that of threadIdx.x

    def visit_AttrStmt(self, node: AttrStmt) -> Stmt:
        if tag_of(node) == "threadIdx.x":
            self.launch = node
        return self.rebuild(node)

    def visit_Evaluate(self, statement: Stmt) -> Stmt:
        if not is_barrier(statement):
            return statement
        self.left -= 1
        return self.by(statement, self.launch) if self.left == -1 else statement


class MoveOut(StmtRewriter):
    """Moves the barriers of the outermost loop around them to before it."""

    def visit_For(self, loop: For) -> Stmt:
        if not any_statement(loop, is_barrier):
            return loop
        bare = loop
        for _ in range(2):
            bare = Mutate(0, lambda *_: no_op()).visit(bare)
        return seq([barrier(), bare])


def run(name: str, change: Callable[[IRModule], IRModule]) -> bool:
    """Whether the changed program computes what it should, in every order of threads."""
    inputs, args, given, wanted = PROGRAMS[name]()
    lowered = change(lower(as_module(inputs, args, "main", None), "cuda"))
    target = Target("cuda -model=emulated")
    module = make_cuda_module(split_host_device(lowered), target, describe(target))
    for order in ("forwards", "backwards", "random"):
        module.set_thread_order(order, seed=1)
        outputs = [np.zeros_like(one) for one in wanted]
        module(*given, *outputs)
        if not all(np.allclose(output, one, rtol=1e-4, atol=1e-5) for output, one in zip(outputs, wanted)):
            return False
    return True


def mutated(module: IRModule, mutate: StmtRewriter) -> IRModule:
    result = IRModule()
    for name, function in module.functions_items():
        body = mutate.visit(function.body)
        assert body is not function.body
        result[module.get_global_var(name)] = function.with_(body=body)
    return result


SITES = [(name, number) for name, count in BARRIERS.items() for number in range(count)]


@pytest.mark.parametrize("name", BARRIERS)
def test_as_it_was_lowered_it_is_right(name):
    assert run(name, lambda module: module)


@pytest.mark.parametrize(("name", "number"), SITES)
def test_a_barrier_that_is_missing_shows(name, number):
    assert not run(name, lambda module: mutated(module, Mutate(number, lambda *_: no_op())))


@pytest.mark.parametrize("name", ["gemm", "convolution", "dynamic_shared"])
def test_one_barrier_before_the_loop_is_not_enough(name):
    assert not run(name, lambda module: mutated(module, MoveOut()))


@pytest.mark.parametrize(("name", "number"), SITES)
def test_a_barrier_that_some_threads_do_not_reach_is_found(name, number):
    def some(old: Stmt, launch: AttrStmt) -> Stmt:
        return IfThenElse(launch.node.var < 5, old)

    with pytest.raises(KernelStopped) as caught:
        run(name, lambda module: mutated(module, Mutate(number, some)))
    assert "not all threads reach a barrier" in str(caught.value)


def test_a_barrier_in_each_branch_is_not_one_barrier():
    def either(old: Stmt, launch: AttrStmt) -> Stmt:
        return IfThenElse(launch.node.var < 5, old, seq([old]))

    with pytest.raises(KernelStopped, match="failed") as caught:
        run("transpose", lambda module: mutated(module, Mutate(0, either)))
    assert "waits at the barrier of line" in str(caught.value)
