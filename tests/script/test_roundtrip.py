"""Text and program are the same thing: printing and reading back gives the same program and the same text."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest

from loopwright.evaluator import evaluate
from loopwright.ir import (
    Block,
    BlockRealize,
    Buffer,
    Call,
    For,
    IntImm,
    IRModule,
    Node,
    PrimFunc,
    assert_structural_equal,
    post_order_visit,
)
from loopwright.ir.verifier import verify
from loopwright.script import from_source
from loopwright.script import ir as I
from loopwright.script import tir as T
from tests.random_programs import DTYPES, random_arguments, random_function

CHUNK = 100


def assert_round_trip(program: PrimFunc | IRModule) -> None:
    """Reading `program.script()` gives an equal program that prints to equal text."""
    text = program.script()
    again = from_source(text)
    assert again.script() == text
    if isinstance(program, IRModule):
        assert sorted(var.name for var in program.get_global_vars()) == sorted(v.name for v in again.get_global_vars())
        for name, function in program.functions_items():
            assert_structural_equal(again[name], function, block_names=True)
    else:
        assert_structural_equal(again, program, block_names=True)


@pytest.mark.one_in(3)
@pytest.mark.parametrize("chunk", range(10))
def test_random_programs(chunk):
    for seed in range(chunk * CHUNK, (chunk + 1) * CHUNK):
        assert_round_trip(random_function(seed))


@pytest.mark.parametrize("seed", range(0, 60))
def test_random_programs_are_valid(seed):
    func = random_function(seed)
    verify(func)
    evaluate(func, *random_arguments(func, seed))


def test_random_programs_are_the_same_for_the_same_seed():
    assert random_function(7).script() == random_function(7).script()
    assert random_function(7).script() != random_function(8).script()


def test_random_programs_hold_every_construct():
    seen: set[str] = set()

    def look(node: Node) -> None:
        seen.add(type(node).__name__)
        if isinstance(node, For):
            seen.add(node.kind.name)
        elif isinstance(node, Block):
            seen.update(name for name in ("init", "alloc_buffers", "match_buffers") if getattr(node, name))
            seen.update({"pair"} if len(node.writes) > 1 and node.init is not None else ())
        elif isinstance(node, BlockRealize):
            seen.update({"where"} if not isinstance(node.predicate, IntImm) else ())
        elif isinstance(node, Call):
            seen.add(node.op.name)
        elif isinstance(node, Buffer):
            seen.add(node.dtype)
            seen.update({"empty"} if any(int(extent) == 0 for extent in node.shape) else ())

    for seed in range(400):
        post_order_visit(random_function(seed).body, look)
    wanted = (
        "SERIAL PARALLEL VECTORIZED UNROLLED init alloc_buffers match_buffers pair where empty LetStmt Let IfThenElse "
    )
    wanted += (
        "Select Cast Add Sub Mul Div Mod FloorDiv FloorMod Min Max EQ NE LT LE GT GE And Or Not Allocate DeclBuffer "
    )
    wanted += " ".join(
        f"tir.{name}" for name in "if_then_else exp log tanh sqrt shift_left shift_right abs erf".split()
    )
    assert set(wanted.split()) | set(DTYPES) <= seen


# --- programs written by hand ---


@T.prim_func
def matmul(a: T.handle, b: T.handle, c: T.handle):
    n, m, k = T.int32(), T.int32(), T.int32()
    A = T.match_buffer(a, (n, k))
    B = T.match_buffer(b, (k, m))
    C = T.match_buffer(c, (n, m))
    for i, j, r in T.grid(n, m, k):
        with T.block("C"):
            vi, vj, vr = T.axis.remap("SSR", [i, j, r])
            with T.init():
                C[vi, vj] = 0.0
            C[vi, vj] += A[vi, vr] * B[vr, vj]


@T.prim_func
def tiled(A: T.Buffer((100, 64)), B: T.Buffer((64, 100))):
    for io in T.parallel(13):
        for jo, ii in T.grid(4, 8):
            for ji in T.vectorized(16):
                with T.block("B"):
                    vi = T.axis.spatial(100, io * 8 + ii)
                    vj = T.axis.spatial(64, jo * 16 + ji)
                    T.where(io * 8 + ii < 100)
                    T.block_attr({"schedule.note": "tile", "sizes": [8, 16]})
                    B[vj, vi] = A[vi, vj]


@T.prim_func
def padding(A: T.Buffer((14, 14), "int8"), B: T.Buffer((16, 16), "int8")):
    for i, j in T.grid(16, 16):
        with T.block("pad"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = T.if_then_else(1 <= vi and vi < 15 and 1 <= vj and vj < 15, A[vi - 1, vj - 1], T.int8(0))


@T.prim_func
def softmax(A: T.Buffer((8, 32)), C: T.Buffer((8, 32))):
    top = T.alloc_buffer((8,))
    total = T.alloc_buffer((8,))
    for i, k in T.grid(8, 32):
        with T.block("top"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                top[vi] = T.min_value("float32")
            top[vi] = T.max(top[vi], A[vi, vk])
    for i, k in T.grid(8, 32):
        with T.block("total"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                total[vi] = T.float32(0)
            total[vi] = total[vi] + T.exp(A[vi, vk] - top[vi])
    for i, j in T.grid(8, 32):
        with T.block("C"):
            vi, vj = T.axis.remap("SS", [i, j])
            C[vi, vj] = T.exp(A[vi, vj] - top[vi]) / total[vi]


@T.prim_func
def lowered(a: T.handle, b: T.handle, n: T.int64):
    T.func_attr({"tir.noalias": True, "calling_conv": 1})
    A = T.match_buffer(a, (n,), "float16", strides=("s",), elem_offset=T.int64(8), align=16)
    B = T.match_buffer(b, (n,), "float16", offset_factor=1)
    tile = T.allocate([256], "float16", "local")
    local = T.decl_buffer((256,), "float16", data=tile, scope="local")
    for i in T.serial(T.int64(0), n // T.int64(4), annotations={"pragma_unroll": 1}):
        x: T.float16x4 = A[i * T.int64(4) : i * T.int64(4) + T.int64(4)]
        B[i * T.int64(4) : i * T.int64(4) + T.int64(4)] = x * T.Broadcast(T.float16(0.1), 4)
        while local[0] < T.float16(1):
            local[0] = local[0] + T.float16(0.5)
    T.call_extern("void", "done", B.data)


@T.prim_func
def kernel(A: T.Buffer((128,)), B: T.Buffer((128,))):
    bx = T.launch_thread("blockIdx.x", 4)
    shared = T.allocate([32], "float32", "shared")
    S = T.decl_buffer((32,), data=shared, scope="shared")
    tx = T.launch_thread("threadIdx.x", 32)
    S[tx] = A[bx * 32 + tx]
    T.call_intrin("int32", "tir.tvm_storage_sync", "shared")
    B[bx * 32 + tx] = S[31 - tx]


@T.prim_func
def bound(A: T.Buffer((4, 8))):
    for i in T.thread_binding(4, thread="blockIdx.x"):
        for j in T.thread_binding(8, thread="threadIdx.x", annotations={"note": "x"}):
            with T.block("b"):
                vi, vj = T.axis.remap("SS", [i, j])
                A[vi, vj] = A[vi, vj] * 2.0


@T.prim_func
def opaque_root(A: T.Buffer((8,), "uint8")):
    with T.block("root"):
        T.block_attr({"note": True})
        B = T.alloc_buffer((8,), "uint8", scope="shared")
        with T.block("whole"):
            T.reads(A[0:8])
            T.writes(B[0:8])
            T.evaluate(T.call_extern("int32", "copy", A.data, B.data))


@T.prim_func
def constants(A: T.Buffer((6,), "float64"), B: T.Buffer((), "bool")):
    A[0] = T.float64("nan")
    A[1] = T.float64(-0.0)
    A[2] = T.float64(1e300) + T.Cast("float64", T.float32(0.1)) + T.Cast("float64", T.bfloat16(0.1))
    A[3] = T.Cast("float64", T.Add(1, 2) + T.Div(7, 2))
    A[4] = T.Cast("float64", T.uint64(18446744073709551615))
    A[5] = T.Cast("float64", T.int64(-9223372036854775808))
    B[()] = T.bool(True) and A[0] < T.float64(0)


@I.ir_module
class Module:
    I.module_attrs({"version": 3})

    @T.prim_func
    def helper(x: T.int32, y: T.int32) -> T.int32:
        T.ret(T.max(x, y) - 1)

    @T.prim_func
    def main(A: T.Buffer((4,), "int32")):
        for i in range(4):
            A[i] = Module.helper(i, A[i])


PROGRAMS = [matmul, tiled, padding, softmax, lowered, kernel, bound, opaque_root, constants, Module]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name if isinstance(p, PrimFunc) else "Module")
def test_programs_written_by_hand(program):
    assert_round_trip(program)


@pytest.mark.parametrize("name", ["tests.script.test_parser"])
def test_programs_of_other_tests(name):
    """Every function that the parser's own tests define."""
    module = importlib.import_module(name)
    for function in _programs_of(module):
        assert_round_trip(function)


def _programs_of(module: ModuleType) -> list[PrimFunc | IRModule]:
    """Run the tests that need no arguments, and collect the programs they leave in their local variables."""
    import sys

    found: list[PrimFunc | IRModule] = []

    def watch(frame, event, argument):
        if event == "return" and frame.f_code.co_name.startswith("test_") and "size" not in frame.f_code.co_name:
            found.extend(v for v in frame.f_locals.values() if isinstance(v, (PrimFunc, IRModule)))
        return None

    for name, test in vars(module).items():
        if name.startswith("test_") and callable(test) and test.__code__.co_argcount == 0 and "long" not in name:
            sys.setprofile(watch)
            try:
                test()
            finally:
                sys.setprofile(None)
    assert len(found) > 30
    return found
