"""Programs that are measured in these tests: one that is right, and candidates of it that are not."""

from __future__ import annotations

from loopwright.ir import IRModule, PrimFunc
from loopwright.schedule import Schedule
from loopwright.script import tir as T
from loopwright.target import Target
from loopwright.tune import Task
from loopwright.tune.measure import BuildJob


@T.prim_func
def add_one(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] + T.float32(1)


@T.prim_func
def garbage(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        B[i] = A[i] + T.float32(2)


@T.prim_func
def unwritten(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(63):
        B[i] = A[i] + T.float32(1)


@T.prim_func
def segfault(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    B[0] = A[0]
    T.evaluate(T.call_extern("int32", "raise", 11))


@T.prim_func
def hang(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    B[0] = A[0]
    T.evaluate(T.call_extern("int32", "pause"))


@T.prim_func
def leave(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    B[0] = A[0]
    T.evaluate(T.call_extern("int32", "_exit", 3))


@T.prim_func
def past_the_end(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        B[i] = A[i] + T.float32(1)
    T.evaluate(T.call_extern("handle", "memset", T.address_of(B[63]), 0, 16))


@T.prim_func
def writes_its_input(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        B[i] = A[i] + T.float32(1)
    T.evaluate(T.call_extern("handle", "memset", T.address_of(A[0]), 0, 16))


@T.prim_func
def changes(A: T.Buffer((64,), "float32"), B: T.Buffer((64,), "float32")):
    for i in range(64):
        # Each of them rounds to a dozen values: all are rarely the same twice.
        B[i] = A[i] + T.float32(1) + T.Cast("float32", T.call_extern("int32", "rand")) * T.float32(1e-15)


def task_of(function: PrimFunc, name: str = "a task") -> Task:
    return Task(name, IRModule({"main": function}), Target("llvm"))


def job(function: PrimFunc) -> BuildJob:
    return BuildJob(lambda: function)


def split_by(factor: int) -> BuildJob:
    """A schedule of `add_one`."""

    def make() -> Schedule:
        sch = Schedule(add_one)
        sch.split(sch.get_loops(sch.get_block("B"))[0], [None, factor])
        return sch

    return BuildJob(make)
