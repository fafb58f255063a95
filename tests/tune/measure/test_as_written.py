"""How long a program takes at least: sums of floats wait for each addition."""

from __future__ import annotations

import sys

import pytest

from loopwright import te
from loopwright.autosched.machine import Machine
from loopwright.ir import IRModule
from loopwright.script import tir as T
from loopwright.target import Target
from loopwright.tune import Task
from loopwright.tune.measure import Measurer
from loopwright.tune.measure.as_written import least_seconds

TARGET = Target("llvm -mtriple=x86_64-linux-gnu -mcpu=skylake-avx512 -num-cores=1")


def matmul(m, n, k, dtype="float32"):
    A, B, r = te.placeholder((m, k), dtype, "A"), te.placeholder((k, n), dtype, "B"), te.reduce_axis((0, k), "r")
    return te.create_prim_func([A, B, te.compute((m, n), lambda i, j: te.sum(A[i, r] * B[r, j], axis=r), name="C")])


@T.prim_func
def columns_inside(A: T.Buffer((200, 300), "float32"), B: T.Buffer(300, "float32")):
    for k, j in T.grid(200, 300):
        with T.block("B"):
            v_j, v_k = T.axis.remap("SR", [j, k])
            with T.init():
                B[v_j] = T.float32(0)
            B[v_j] = B[v_j] + A[v_k, v_j]


@T.prim_func
def sometimes(A: T.Buffer((200, 300), "float32"), B: T.Buffer(200, "float32")):
    for i, k in T.grid(200, 300):
        with T.block("B"):
            v_i, v_k = T.axis.remap("SR", [i, k])
            T.where(i + k < 100)
            with T.init():
                B[v_i] = T.float32(0)
            B[v_i] = B[v_i] + A[v_i, v_k]


@pytest.mark.parametrize(
    ("function", "iterations"),
    [
        (matmul(30, 20, 128), 30 * 20 * 128),
        (matmul(30, 20, 127), 0),  # a CPU looks ahead to the next sum
        (matmul(30, 20, 200, "int32"), 0),  # LLVM may add integers in any order
        (columns_inside, 0),  # each iteration has a sum of its own
        (sometimes, 0),
    ],
)
def test_what_waits_for_the_sum_before_it(function, iterations):
    assert least_seconds(function, Machine.of(TARGET)) == pytest.approx(iterations * 4 / 6e9)


def test_a_program_that_takes_too_long_is_not_started(monkeypatch):
    measurer = Measurer("llvm", threads=1, reference_timeout=1.0)
    monkeypatch.setattr(sys.modules[Measurer.__module__], "build_jobs", lambda *_: pytest.fail("it is built"))
    why = measurer._written(Task("f", IRModule({"main": matmul(1024, 1024, 2048)}), TARGET, 1.0))
    assert why == "the program as written would run for 1.4 s at least, and may for 1"

