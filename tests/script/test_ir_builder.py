from __future__ import annotations

import pytest

from loopwright import ir
from loopwright.script import from_source
from loopwright.script.ir_builder import IRBuilder
from loopwright.script.ir_builder import ir as I
from loopwright.script.ir_builder import tir as T
from loopwright.script.ir_builder.builder import NoBuilder, NothingBuilt
from loopwright.script.parser.errors import Misplaced


def test_a_function_with_blocks_branches_and_scopes():
    with IRBuilder() as builder:
        with T.prim_func():
            T.func_name("main")
            T.func_attr({"x": 1})
            A = T.arg("A", T.Buffer((8, 8)))
            b = T.arg("b", T.handle())
            n = T.arg("n", T.int32())
            B = IRBuilder.name("B", T.match_buffer(b, (8,)))
            with T.grid(8, 8) as (i, j):
                with T.block("sum"):
                    vi, vk = IRBuilder.name_many(["vi", "vk"], T.axis.remap("SR", [i, j]))
                    with T.init():
                        T.buffer_store(B, 0.0, [vi])
                    T.buffer_store(B, B[vi] + A[vi, vk], [vi])
            with T.If(n > 3):
                with T.Then(), T.attr(A.data, "k", 1):
                    T.evaluate(1)
                with T.Else(), T.LetStmt(n * 2) as twice:
                    IRBuilder.name("twice", twice)
                    T.evaluate(twice)
            with T.While(n < 0):
                T.evaluate(0)
            with T.allocate([4], "float32") as p:
                T.evaluate(p)
    text = """
@T.prim_func
def main(A: T.Buffer((8, 8), "float32"), b: T.handle, n: T.int32):
    T.func_attr({"x": 1})
    B = T.match_buffer(b, (8,))
    for i, j in T.grid(8, 8):
        with T.block("sum"):
            vi, vk = T.axis.remap("SR", [i, j])
            with T.init():
                B[vi] = T.float32(0)
            B[vi] = B[vi] + A[vi, vk]
    if n > 3:
        T.attr(A.data, "k", 1)
        T.evaluate(1)
    else:
        twice: T.int32 = n * 2
        T.evaluate(twice)
    while n < 0:
        T.evaluate(0)
    p = T.allocate([4], "float32", "global")
    T.evaluate(p)
"""
    ir.assert_structural_equal(builder.get(), from_source(text))


def test_modules():
    with IRBuilder() as builder, I.ir_module():
        I.module_attrs({"a": 2})
        for name in ("f", "g"):
            with T.prim_func(is_private=name == "g"):
                T.func_name(name)
                T.func_ret(T.int32)
                T.evaluate(T.ret(3))
    module = builder.get()
    # A private function has no symbol: the module keeps it under the name that PrimFunc falls back to.
    assert module.attrs == {"a": 2} and "f" in module and len(module) == 2


def test_statements_alone():
    with IRBuilder() as builder:
        with T.parallel(4) as i:
            T.evaluate(i)
        T.evaluate(2)
    assert builder.get().script() == "for i in T.parallel(4):\n    T.evaluate(i)\nT.evaluate(2)"


def test_callbacks_and_scope():
    closed = []
    assert not IRBuilder.is_in_scope()
    with IRBuilder() as builder:
        assert IRBuilder.is_in_scope() and IRBuilder.current() is builder
        frame = T.serial(3)
        frame.add_callback(lambda: closed.append(True))
        with frame:
            assert not closed
        assert closed
        with pytest.raises(ValueError, match="1 names for 2 objects"):
            IRBuilder.name_many(["a"], [1, 2])


def test_mistakes():
    with pytest.raises(NoBuilder, match="no IRBuilder is open"):
        T.evaluate(0)
    with pytest.raises(NothingBuilt, match="nothing was built"):
        IRBuilder().get()
    with IRBuilder() as builder, T.serial(2), pytest.raises(NothingBuilt, match="while a frame is open"):
        builder.get()
    with pytest.raises(Misplaced, match=r"T\.reads belongs directly inside a block, but stands directly inside"):
        with IRBuilder(), T.prim_func():
            T.reads()
    with IRBuilder(), pytest.raises(ValueError, match="Else: it belongs directly inside"), T.prim_func(), T.Else():
        pass
    with IRBuilder(), pytest.raises(ValueError, match="If: nothing stands in"), T.prim_func(), T.If(True):
        pass


def test_blocks_outside_a_function():
    i, k = ir.Var("i"), ir.Var("k")
    with IRBuilder() as builder:
        with T.block("sum"):
            vi, vk = IRBuilder.name_many(["vi", "vk"], [T.axis.spatial(8, i), T.axis.reduce(4, k)])
            T.where(i < 5)
            B = IRBuilder.name("B", T.alloc_buffer((4,)))
            T.buffer_store(B, 1.0, [vk])
    realize = builder.get()
    assert isinstance(realize, ir.BlockRealize) and list(realize.iter_values) == [i, k]
    assert realize.script().splitlines() == [
        "i = T.int32()",
        "k = T.int32()",
        'with T.block("sum"):',
        "    vi = T.axis.spatial(8, i)",
        "    vk = T.axis.reduce(4, k)",
        "    T.where(i < 5)",
        "    T.reads()",
        "    T.writes()",
        "    B = T.alloc_buffer((4,))",
        "    B[vk] = T.float32(1)",
    ]
    with IRBuilder() as builder, T.serial(3), T.block("x"):
        T.evaluate(0)
    assert isinstance(builder.get(), ir.For)


@pytest.mark.parametrize(
    ("word", "belongs"),
    [
        (lambda: T.func_attr({"a": 1}), r"T\.func_attr belongs inside a function"),
        (lambda: T.func_name("f"), r"T\.func_name belongs inside a function"),
        (lambda: T.func_ret(T.int32()), r"T\.func_ret belongs inside a function"),
        (lambda: T.arg("n", T.int32()), r"T\.arg belongs inside a function"),
        (lambda: T.alloc_buffer((4,)), r"T\.alloc_buffer belongs inside a function"),
        (lambda: T.match_buffer(ir.Var("a", "handle"), (4,)), r"T\.match_buffer of a parameter belongs inside"),
        (lambda: T.reads(), r"T\.reads belongs directly inside a block"),
        (lambda: T.where(True), r"T\.where belongs directly inside a block"),
        (lambda: T.axis.spatial(4, 0), r"T\.axis\.spatial belongs directly inside a block"),
        (lambda: T.block_attr({}), r"T\.block_attr belongs directly inside a block"),
        (lambda: T.init().__enter__(), r"T\.init belongs directly inside a block"),
    ],
)
def test_what_needs_a_function_or_a_block(word, belongs):
    with IRBuilder(), pytest.raises(Misplaced, match=f"{belongs}.*, but stands outside every function"):
        word()


def test_branches_need_an_if():
    with IRBuilder(), pytest.raises(ValueError, match="Then: it belongs directly inside"), T.Then():
        pass
