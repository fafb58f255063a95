"""Programs for GPUs as tutorials write them, each with its arguments and what it computes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from loopwright import te, tir
from loopwright.script import tir as T


class Program(NamedTuple):
    """A schedule (or a function), the tensors of its signature, and the outputs for some inputs."""

    inputs: Any
    args: list[Any] | None
    given: list[Any]  # arrays and scalars, without the outputs
    wanted: list[np.ndarray]


PROGRAMS: dict[str, Callable[[], Program]] = {}


def program(make: Callable[[], Program]) -> Callable[[], Program]:
    PROGRAMS[make.__name__] = make
    return make


def values(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + sum(shape)).uniform(-1, 1, shape).astype("float32")


def threads(*names: str) -> list[te.IterVar]:
    return [te.thread_axis(name) for name in names]


def vector_add() -> tuple[te.Schedule, list[te.Tensor]]:
    n = te.var("n")
    A = te.placeholder((n,), name="A")
    B = te.placeholder((n,), name="B")
    C = te.compute((n,), lambda i: A[i] + B[i], name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], factor=256)
    s[C].bind(outer, te.thread_axis("blockIdx.x"))
    s[C].bind(inner, te.thread_axis("threadIdx.x"))
    return s, [A, B, C]


@program
def transpose() -> Program:
    """32 × 32 tiles through shared memory, by 32 × 8 threads."""
    n, m = 70, 45
    A = te.placeholder((n, m), name="A")
    B = te.compute((m, n), lambda i, j: A[j, i], name="B")
    s = te.create_schedule(B.op)
    S = s.cache_read(A, "shared", [B])
    i, j = s[B].op.axis
    io, jo, ii, ji = s[B].tile(i, j, 32, 32)
    iio, iii = s[B].split(ii, nparts=8)
    by, bx, ty, tx = threads("blockIdx.y", "blockIdx.x", "threadIdx.y", "threadIdx.x")
    s[B].reorder(io, jo, iio, ji, iii)
    for axis, thread in ((io, by), (jo, bx), (iio, ty), (ji, tx)):
        s[B].bind(axis, thread)
    s[S].compute_at(s[B], jo)
    a, b = s[S].op.axis
    ao, ai = s[S].split(a, nparts=8)
    bo, bi = s[S].split(b, nparts=32)
    s[S].reorder(ao, bo, ai, bi)
    s[S].bind(ao, ty)
    s[S].bind(bo, tx)
    a_values = values(n, m)
    return Program(s, [A, B], [a_values], [a_values.T.copy()])


@program
def gemm() -> Program:
    """Cooperative fetch, virtual threads, shared and local memory."""
    n, tile = 64, 32
    A = te.placeholder((n, n), name="A")
    B = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), "k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C.op)
    AS, BS = s.cache_read(A, "shared", [C]), s.cache_read(B, "shared", [C])
    AL, BL = s.cache_read(AS, "local", [C]), s.cache_read(BS, "local", [C])
    CL = s.cache_write(C, "local")
    by, bx = threads("blockIdx.y", "blockIdx.x")
    ty, tx = te.thread_axis((0, 8), "threadIdx.y"), te.thread_axis((0, 8), "threadIdx.x")
    vy, vx = te.thread_axis((0, 2), "vthread", name="vy"), te.thread_axis((0, 2), "vthread", name="vx")
    i, j = s[C].op.axis
    io, ii = s[C].split(i, factor=tile)
    jo, ji = s[C].split(j, factor=tile)
    iv, ii = s[C].split(ii, nparts=2)
    it, ii = s[C].split(ii, nparts=8)
    jv, ji = s[C].split(ji, nparts=2)
    jt, ji = s[C].split(ji, nparts=8)
    s[C].reorder(io, jo, iv, jv, it, jt, ii, ji)
    for axis, thread in ((io, by), (jo, bx), (iv, vy), (jv, vx), (it, ty), (jt, tx)):
        s[C].bind(axis, thread)
    s[CL].compute_at(s[C], jt)
    ci, cj = s[CL].op.axis
    ko, ki = s[CL].split(s[CL].op.reduce_axis[0], factor=8)
    s[CL].reorder(ko, ki, ci, cj)
    for stage, where in ((AS, ko), (BS, ko), (AL, ki), (BL, ki)):
        s[stage].compute_at(s[CL], where)
    for stage in (AS, BS):
        fused = s[stage].fuse(*s[stage].op.axis)
        t0, fused = s[stage].split(fused, nparts=8)
        t1, fused = s[stage].split(fused, nparts=8)
        s[stage].bind(t0, ty)
        s[stage].bind(t1, tx)
    a, b = values(n, n), values(n, n, seed=1)
    return Program(s, [A, B, C], [a, b], [a @ b])


@program
def rfactor_sum() -> Program:
    """Sums of rows: a thread for each part, joined across the threads."""
    n, m = 6, 100
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    BF = s.rfactor(B, ki)
    s[B].bind(s[B].op.axis[0], te.thread_axis("blockIdx.x"))
    tx = te.thread_axis("threadIdx.x")
    s[B].bind(s[B].op.reduce_axis[0], tx)
    s[BF].compute_at(s[B], s[B].op.reduce_axis[0])
    s[B].set_store_predicate(tx.var.equal(0))
    a = values(n, m)
    return Program(s, [A, B], [a], [a.sum(1)])


@T.prim_func
def row_maxima(A: T.Buffer((5, 64)), B: T.Buffer(5)):
    for i, k in T.grid(5, 64):
        with T.block("B"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                B[vi] = T.min_value("float32")
            B[vi] = T.max(B[vi], A[vi, vk])


@program
def cross_thread_maximum() -> Program:
    sch = tir.Schedule(row_maxima)
    i, k = sch.get_loops("B")
    _, inner = sch.split(k, [None, 32])
    sch.bind(i, "blockIdx.x")
    sch.bind(inner, "threadIdx.x")
    a = values(5, 64)
    return Program(sch.mod, None, [a], [a.max(1)])


@program
def convolution() -> Program:
    """2-D convolution: the rows of an image and the weights in shared memory."""
    c, h, w, o = 3, 12, 14, 8
    X = te.placeholder((c, h, w), name="X")
    W = te.placeholder((o, c, 3, 3), name="W")
    P = te.compute(
        (c, h + 2, w + 2),
        lambda k, y, x: tir.if_then_else(
            tir.all(y >= 1, y < h + 1, x >= 1, x < w + 1), X[k, y - 1, x - 1], tir.const(0.0, "float32")
        ),
        name="P",
    )
    rc, ry, rx = te.reduce_axis((0, c), "rc"), te.reduce_axis((0, 3), "ry"), te.reduce_axis((0, 3), "rx")
    Y = te.compute(
        (o, h, w),
        lambda f, y, x: te.sum(P[rc, y + ry, x + rx] * W[f, rc, ry, rx], axis=[rc, ry, rx]),
        name="Y",
    )
    s = te.create_schedule(Y.op)
    s[P].compute_inline()
    PS, WS = s.cache_read(P, "shared", [Y]), s.cache_read(W, "shared", [Y])
    YL = s.cache_write(Y, "local")
    f, y, x = s[Y].op.axis
    yo, yi = s[Y].split(y, factor=4)
    s[Y].reorder(yo, f, x, yi)
    tx, ty = te.thread_axis((0, w), "threadIdx.x"), te.thread_axis((0, o), "threadIdx.y")
    s[Y].bind(yo, te.thread_axis("blockIdx.x"))
    s[Y].bind(f, ty)
    s[Y].bind(x, tx)
    s[YL].compute_at(s[Y], x)
    rc_, ry_, rx_ = s[YL].op.reduce_axis
    s[YL].reorder(rc_, ry_, rx_, *s[YL].op.axis)
    for stage in (PS, WS):
        s[stage].compute_at(s[YL], rc_)
        fused = s[stage].fuse(*s[stage].op.axis)
        t0, fused = s[stage].split(fused, nparts=o)
        t1, fused = s[stage].split(fused, nparts=w)
        s[stage].bind(t0, ty)
        s[stage].bind(t1, tx)
    a, b = values(c, h, w), values(o, c, 3, 3)
    padded = np.pad(a, ((0, 0), (1, 1), (1, 1)))
    wanted = sum(
        np.einsum("chw,oc->ohw", padded[:, dy : dy + h, dx : dx + w], b[:, :, dy, dx])
        for dy in range(3)
        for dx in range(3)
    )
    return Program(s, [X, W, Y], [a, b], [wanted])


@program
def two_kernels() -> Program:
    """Rows are summed into a temporary, which the second kernel divides by."""
    n, m = 10, 33
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), "k")
    S = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="S")
    B = te.compute((n, m), lambda i, j: A[i, j] / S[i], name="B")
    s = te.create_schedule(B.op)
    s[S].bind(s[S].op.axis[0], te.thread_axis("threadIdx.x"))
    s[B].bind(s[B].op.axis[0], te.thread_axis("blockIdx.x"))
    s[B].bind(s[B].op.axis[1], te.thread_axis("threadIdx.x"))
    a = values(n, m) + 2
    return Program(s, [A, B], [a], [a / a.sum(1, keepdims=True)])


@T.prim_func
def axpy(a: T.float32, shift: T.int64, x: T.handle, y: T.handle):
    n = T.int64()
    X = T.match_buffer(x, (n,))
    Y = T.match_buffer(y, (n,))
    for i in T.thread_binding((n + 63) // 64, thread="blockIdx.x"):
        for j in T.thread_binding(64, thread="threadIdx.x"):
            with T.block("Y"):
                v = T.axis.spatial(n, i * 64 + j)
                T.where(i * 64 + j < n)
                Y[v] = a * X[v] + T.Cast("float32", shift)


@program
def scalars() -> Program:
    x = values(1000)
    return Program(axpy, None, [2.5, 3, x], [np.float32(2.5) * x + np.float32(3)])


@T.prim_func
def numbers(A: T.Buffer(64, "int32"), B: T.Buffer(64, "int32"), C: T.Buffer((6, 64), "int32")):
    for i in T.thread_binding(64, thread="threadIdx.x"):
        with T.block("C"):
            v = T.axis.spatial(64, i)
            C[0, v] = A[v] // B[v]
            C[1, v] = A[v] % B[v]
            C[2, v] = T.truncdiv(A[v], B[v])
            C[3, v] = T.shift_right(A[v], B[v])
            C[4, v] = A[v] * T.int32(1000003)
            C[5, v] = T.min(A[v], B[v])


@program
def integers() -> Program:
    rng = np.random.default_rng(3)
    a = rng.integers(-(1 << 31), (1 << 31) - 1, 64, "int32")
    b = rng.integers(1, 31, 64, "int32") * rng.choice([-1, 1], 64).astype("int32")
    quotient = np.trunc(a.astype("float64") / b).astype("int32")
    wanted = [a // b, a % b, quotient, a >> (b & 31), (a.astype("int64") * 1000003).astype("int32"), np.minimum(a, b)]
    return Program(numbers, None, [a, b], [np.stack(wanted)])


@T.prim_func
def scaled_halves(A: T.Buffer(96, "float16"), B: T.Buffer(96, "float16"), K: T.Buffer(96, "bool")):
    for i in T.thread_binding(3, thread="blockIdx.x"):
        for j in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("B"):
                v = T.axis.spatial(96, i * 32 + j)
                B[v] = T.exp(A[v]) * T.float16(0.5)
                K[v] = A[v] > T.float16(0)


@program
def halves() -> Program:
    a = values(96).astype("float16")
    exact = np.exp(a.astype("float32")).astype("float16") * np.float16(0.5)
    return Program(scaled_halves, None, [a], [exact, a > 0])


@T.prim_func
def reversed_dynamic(A: T.Buffer((8, 128)), B: T.Buffer((8, 128))):
    S = T.alloc_buffer((128,), scope="shared.dyn")
    R = T.alloc_buffer((128,), scope="shared.dyn")
    for i in T.thread_binding(2, thread="blockIdx.x"):
        for k in range(4):
            for j in T.thread_binding(128, thread="threadIdx.x"):
                with T.block("S"):
                    S[j] = A[i * 4 + k, j]
                    R[j] = A[i * 4 + k, j] + T.float32(1)
            for j in T.thread_binding(128, thread="threadIdx.x"):
                with T.block("B"):
                    B[i * 4 + k, j] = S[127 - j] + R[j]


@program
def dynamic_shared() -> Program:
    a = values(8, 128)
    return Program(reversed_dynamic, None, [a], [a[:, ::-1] + (a + np.float32(1))])


@program
def scan() -> Program:
    """Running sums down the columns: the host launches a kernel for each row."""
    m, n = te.var("m"), te.var("n")
    X = te.placeholder((m, n), name="X")
    state = te.placeholder((m, n))
    init = te.compute((1, n), lambda _, i: X[0, i], name="init")
    update = te.compute((m, n), lambda t, i: state[t - 1, i] + X[t, i], name="update")
    result = te.scan(init, update, state, inputs=[X])
    s = te.create_schedule(result.op)
    for stage in (init, update):
        outer, inner = s[stage].split(stage.op.axis[1], factor=64)
        s[stage].bind(outer, te.thread_axis("blockIdx.x"))
        s[stage].bind(inner, te.thread_axis("threadIdx.x"))
    x = values(7, 150)
    return Program(s, [X, result], [x], [np.cumsum(x, axis=0)])


@program
def sums_of_rows_of_any_size() -> Program:
    """A block of 8 rows by 16 threads each; sizes that no tile divides."""
    n, m = te.var("n"), te.var("m")
    A = te.placeholder((n, m), name="A")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k], axis=k), name="B")
    s = te.create_schedule(B.op)
    _, ki = s[B].split(B.op.reduce_axis[0], factor=16)
    BF = s.rfactor(B, ki)
    outer, row = s[B].split(s[B].op.axis[0], factor=8)
    s[B].bind(outer, te.thread_axis("blockIdx.x"))
    s[B].bind(row, te.thread_axis("threadIdx.y"))
    tx = te.thread_axis("threadIdx.x")
    s[B].bind(s[B].op.reduce_axis[0], tx)
    s[BF].compute_at(s[B], s[B].op.reduce_axis[0])
    s[B].set_store_predicate(tx.var.equal(0))
    a = values(21, 77)
    return Program(s, [A, B], [a], [a.sum(1)])
