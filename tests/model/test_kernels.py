from __future__ import annotations

import numpy as np
import pytest

from loopwright import ir, te, tir
from loopwright.model import Launch
from loopwright.model.kernels import Counts, compile_kernels, forget, overwrites
from loopwright.model.overwrite import may_overwrite
from loopwright.script import tir as T
from loopwright.target import Target
from tests.compile_caching import switch_on
from tests.model.steps import add, double, element_wise, float_value, relu


def launch(func, *shapes, may=()):
    return Launch(func, tuple(float_value(f"v{k}", *shape) for k, shape in enumerate(shapes)), may_overwrite=may)


def test_a_kernel_may_nest_deeply():
    """Statements one in another as far as Python recurses, as those of a sorting network are."""
    A, i = ir.decl_buffer((8, 4), "int32", "A"), ir.Var("i")
    body: ir.Stmt = ir.BufferStore(A, ir.const(1), [i, 0])
    for level in range(1200):
        body = ir.IfThenElse(ir.BufferLoad(A, [i, 1]) >= level - 1200, body)
    loop = ir.For(i, ir.const(0), ir.const(8), ir.ForKind.PARALLEL, body)
    func = ir.PrimFunc([A], loop)
    found = compile_kernels([launch(func, (8, 4))], Target("llvm"))
    assert len(found) == 1


def test_equal_kernels_under_other_names_are_one():
    x = te.placeholder((24,), name="somebody")
    y = te.compute((24,), lambda k: x[k] * tir.const(2, "float32"), name="Y")
    launches = [launch(double((24,)), (24,), (24,)), launch(te.create_prim_func([x, y]), (24,), (24,))]
    counts = Counts()
    found = compile_kernels(launches, Target("llvm"), counts=counts)
    assert counts.distinct == 1
    assert found[launches[0]] is found[launches[1]]
    assert str(counts).startswith("2 launches of 1 kernels")


def test_kernels_come_from_memory_and_from_disk(monkeypatch, tmp_path):
    switch_on(monkeypatch, tmp_path)
    launches = [launch(relu((29,)), (29,), (29,)), launch(add((29,)), (29,), (29,), (29,))]

    def compiled():
        counts = Counts()
        found = compile_kernels(launches, Target("llvm"), counts=counts)
        return [found[one] for one in launches], counts

    first, made = compiled()
    assert (made.compiled, made.from_cache) == (2, 0)
    again, made = compiled()
    assert (made.compiled, made.from_cache) == (0, 2)
    forget()
    from_disk, made = compiled()
    assert (made.compiled, made.from_cache) == (0, 2)
    for one, two, three in zip(first, again, from_disk):
        assert one == two
        assert one._replace(seconds={}) == three
        assert "@" + one.symbol in one.ll
    for file in (tmp_path / "compiled").iterdir():
        file.write_bytes(file.read_bytes()[:-3])  # damaged: made again
    forget()
    _, made = compiled()
    assert made.compiled == 2


def test_processes_make_no_difference():
    launches = [launch(double((k,)), (k,), (k,)) for k in (101, 102, 103)]
    forget()
    one = compile_kernels(launches[:], Target("llvm"), processes=1)
    two = compile_kernels([launch(double((k,)), (k,), (k,)) for k in (101, 102, 103)], Target("llvm"), processes=2)
    assert [kernel.symbol for kernel in one.values()] == [kernel.symbol for kernel in two.values()]
    assert [kernel.object_bytes for kernel in one.values()] == [kernel.object_bytes for kernel in two.values()]


def test_an_error_names_the_kernel():
    @T.prim_func
    def outside(A: T.Buffer((4,), "float32"), B: T.Buffer((4,), "float32")):
        for i in range(4):
            with T.block("B"):
                vi = T.axis.spatial(4, i)
                B[vi] = A[vi + 1]

    one = Launch(outside, (float_value("a", 4), float_value("b", 4)), name="shift")
    with pytest.raises(IndexError) as caught:
        compile_kernels([one], Target("llvm"))
    assert caught.value.__notes__ == ["while compiling the kernel 'shift' of a model"]


# --- writing over an input ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", [(), (1,), (7,), (64,), (100,), (3, 5, 7), (2000,), (40, 50), (1, 64, 8, 8), (0, 3)])
def test_element_wise_kernels_may_overwrite_as_scheduled(shape):
    one = launch(add(shape), shape, shape, shape, may=((0, 0), (1, 0)))
    kernel = compile_kernels([one], Target("llvm"))[one]
    expected = {(0, 0), (1, 0)} if np.prod(shape) else overwrites(one, kernel)  # of nothing, either answer will do
    assert overwrites(one, kernel) == expected


def test_a_convolution_may_overwrite_what_it_adds():
    x, w, r = (te.placeholder(s, name=n) for n, s in (("X", (16, 8)), ("W", (8, 16)), ("R", (16, 16))))
    k = te.reduce_axis((0, 8), name="k")
    c = te.compute((16, 16), lambda i, j: te.sum(x[i, k] * w[k, j], axis=k), name="C")
    y = te.compute((16, 16), lambda i, j: c[i, j] + r[i, j], name="Y")
    one = launch(te.create_prim_func([x, w, r, y]), (16, 8), (8, 16), (16, 16), (16, 16), may=((2, 0),))
    assert overwrites(one, compile_kernels([one], Target("llvm"))[one]) == {(2, 0)}


def test_what_reads_elsewhere_may_not():
    reversed_ = te.placeholder((8,), name="A")
    y = te.compute((8,), lambda i: reversed_[7 - i], name="Y")
    assert not may_overwrite(te.create_prim_func([reversed_, y]), 0, 1)
    a = te.placeholder((8,), name="A")
    rows = te.compute((8,), lambda i: a[i] + a[0], name="Y")
    assert not may_overwrite(te.create_prim_func([a, rows]), 0, 1)
    narrow = element_wise((8,), lambda v: v.astype("float16"))
    assert not may_overwrite(narrow, 0, 1)


def test_what_is_written_twice_or_gathered_in_the_output_may_not():
    @T.prim_func
    def twice(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i, _j in T.grid(8, 2):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = A[vi] * T.float32(2)

    @T.prim_func
    def gathered(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i, k in T.grid(8, 4):
            with T.block("B"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi]

    @T.prim_func
    def guarded(A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32")):
        for i, j in T.grid(3, 4):
            with T.block("B"):
                vi = T.axis.spatial(10, i * 4 + j)
                T.where(i * 4 + j < 10)
                B[vi] = A[vi] * T.float32(2)

    @T.prim_func
    def overlapping(A: T.Buffer((10,), "float32"), B: T.Buffer((10,), "float32")):
        for i, j in T.grid(3, 4):
            with T.block("B"):
                vi = T.axis.spatial(10, i * 3 + j)
                B[vi] = A[vi] * T.float32(2)

    @T.prim_func
    def staged(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        C = T.alloc_buffer((8,))
        for i in range(8):
            with T.block("C"):
                vi = T.axis.spatial(8, i)
                C[vi] = A[vi]
        for i in range(8):
            with T.block("B"):
                vi = T.axis.spatial(8, i)
                B[vi] = C[vi] + A[vi]

    assert not may_overwrite(twice, 0, 1)
    assert not may_overwrite(gathered, 0, 1)
    assert may_overwrite(guarded, 0, 1)
    assert not may_overwrite(overlapping, 0, 1)
    assert not may_overwrite(staged, 0, 1)
