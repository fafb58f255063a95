"""lower and build: what they take, what they give, which target they use."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir, te, tir
from loopwright.as_module import NameForSeveral, NotBuildable, as_module
from loopwright.script import ir as I
from loopwright.script import tir as T


def doubled(name: str = "B") -> list[te.Tensor]:
    A = te.placeholder((8,), name="A")
    return [A, te.compute((8,), lambda i: A[i] * 2.0, name=name)]


@T.prim_func
def tripled(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i] * T.float32(3)


@T.prim_func(private=True)
def nameless(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
    for i in range(8):
        B[i] = A[i] * T.float32(5)


@I.ir_module
class Both:
    @T.prim_func
    def main(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i] * T.float32(2)

    @T.prim_func
    def more(A: T.Buffer((8,), "float32"), B: T.Buffer((8,), "float32")):
        for i in range(8):
            B[i] = A[i] * T.float32(3)


def ran(module, name: str | None = None) -> float:
    """What factor the function multiplies by."""
    a, b = np.ones(8, "float32"), np.zeros(8, "float32")
    (module if name is None else module[name])(a, b)
    assert (b == b[0]).all()
    return float(b[0])


@pytest.mark.parametrize(
    ("program", "name", "factor"),
    [
        (doubled(), "main", 2),
        (tuple(doubled()), "main", 2),
        (te.create_prim_func(doubled()), "main", 2),
        (tripled, "tripled", 3),
        (nameless, "main", 5),
        (ir.IRModule({"f": nameless}), "f", 5),
        (ir.IRModule({"f": tripled}), "tripled", 3),
        (Both, "main", 2),
    ],
    ids=["tensors", "tuple", "function from te", "script", "private", "module", "module and symbol", "two functions"],
)
def test_every_kind_of_program_is_built(program, name, factor):
    module = lw.build(program)
    assert ran(module) == factor
    assert ran(module, name) == factor


def test_the_name_is_given_to_tensors_and_nameless_functions():
    assert ran(lw.build(doubled(), name="twice"), "twice") == 2
    assert ran(lw.build(nameless, name="five"), "five") == 5
    assert ran(lw.build(tripled), "tripled") == 3
    assert ran(lw.build(tripled, name="renamed"), "renamed") == 3


def test_the_one_function_of_a_module_gets_the_name():
    program = te.create_prim_func(doubled())
    for given in (tir.Schedule(program), tir.Schedule(program).mod, [program]):
        module = lw.build(given, name="twice")
        assert (module.entry_name, ran(module, "twice")) == ("twice", 2)
    assert ran(lw.build(te.create_prim_func(doubled(), name="twice")), "twice") == 2
    with pytest.raises(TypeError, match="create_prim_func: the name 5 names no function"):
        te.create_prim_func(doubled(), name=5)
    with pytest.raises(NameForSeveral, match="name='sum' cannot name 2 functions: main, more"):
        lw.build(Both, name="sum")


def test_several_functions_become_one_module():
    module = lw.build(Both)
    assert (ran(module, "main"), ran(module, "more")) == (2, 3)
    module = lw.build([tripled, te.create_prim_func(doubled()).with_attr("global_symbol", "twice")])
    assert (ran(module, "tripled"), ran(module, "twice")) == (3, 2)


def test_build_and_lower_are_functions_whichever_comes_first():
    """`loopwright.build` is also the name of the module that holds both."""
    code = "import loopwright as lw; lw.lower; assert all(map(callable, (lw.build, lw.lower)))"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_lower_gives_a_module_of_flat_functions():
    lowered = lw.lower(doubled(), target="llvm")
    assert isinstance(lowered, ir.IRModule)
    met: list[ir.Node] = []
    ir.post_order_visit(lowered["main"].body, met.append)
    assert not any(isinstance(node, (ir.Block, ir.BlockRealize)) for node in met)
    loads = [node for node in met if isinstance(node, (ir.BufferLoad, ir.BufferStore))]
    assert loads and all(len(node.indices) == 1 and node.indices[0].dtype == "int64" for node in loads)


def test_lower_without_a_target_keeps_threads_types_and_intrinsics():
    A = te.placeholder((8, 4), name="A")
    B = te.compute((8, 4), lambda i, j: te.exp(A[i, j]), name="B")
    s = te.create_schedule(B.op)
    s[B].bind(B.op.axis[0], te.thread_axis("blockIdx.x"))
    s[B].vectorize(B.op.axis[1])
    text = lw.lower(s, [A, B]).script()
    assert 'blockIdx_x = T.launch_thread("blockIdx.x", 8)' in text
    assert "B_1[blockIdx_x * 4:blockIdx_x * 4 + 4] = T.exp(A_1[blockIdx_x * 4:blockIdx_x * 4 + 4])" in text
    assert not text.count("decl_buffer")
    with pytest.raises(lw.transform.errors.ThreadLoopOnCpu), lw.target.Target("llvm"):
        lw.lower(s, [A, B])


def test_a_function_returns_a_value_with_return():
    @T.prim_func
    def clipped(x: T.int32) -> T.int32:
        if x > 9:
            return 9
        else:
            return x

    assert "T.ret(9)" in clipped.script() and [lw.build(clipped)(n) for n in (4, 12)] == [4, 9]


def test_simple_mode_keeps_loops_whole():
    A = te.placeholder((10,), name="A")
    B = te.compute((10,), lambda i: te.if_then_else(i < 7, A[i], 0.0), name="B")
    whole, cut = lw.lower([A, B], simple_mode=True)["main"], lw.lower([A, B])["main"]
    loops = [str(function.script()).count("for ") for function in (whole, cut)]
    assert loops[0] == 1 and loops[1] >= loops[0]


def test_the_programs_given_are_not_changed():
    text = Both.script()
    lw.build(Both)
    lw.lower(Both)
    assert Both.script() == text


def test_the_current_target_is_used():
    with lw.Target("llvm -mtriple=x86_64-unknown-linux-gnu -mcpu=x86-64"):
        text = lw.build(doubled()).get_source("ll")
    assert "x86_64-unknown-linux-gnu" in text
    other = lw.build(doubled(), target="llvm -mtriple=aarch64-unknown-linux-gnu -mcpu=generic").get_source("ll")
    assert "aarch64-unknown-linux-gnu" in other


def test_a_target_may_be_a_dictionary():
    assert ran(lw.build(doubled(), target={"kind": "llvm"})) == 2


def test_a_target_host_is_deprecated():
    with pytest.warns(DeprecationWarning, match=r"target_host is deprecated: use Target\(target, host=...\)"):
        lw.build(doubled(), target="llvm", target_host="llvm")


def test_timings_of_every_stage_are_kept():
    timings = lw.build(doubled()).timings
    assert list(timings)[:3] == ["check", "lower", "emit text"]
    assert {"llvm parse", "llvm optimize", "llvm emit", "link"} <= set(timings)
    assert all(seconds >= 0 for seconds in timings.values())


def test_instruments_and_disabled_passes_reach_the_build():
    from loopwright.transform import PassTimingInstrument

    timing = PassTimingInstrument()
    with lw.PassContext(instruments=[timing], disabled_pass=["partition_loops"]):
        lw.build(doubled())
        shown = timing.render()
    assert "flatten_buffers" in shown and "partition_loops" not in shown


def test_sources():
    module = lw.build(doubled())
    assert "define" in module.get_source("ll") and "__tvm_ffi_main" in module.get_source("ll")
    assert "__tvm_ffi_main" in module.get_source("asm")


@pytest.mark.parametrize("given", [3, None, "text", [], [3], {}])
def test_what_is_no_program(given):
    with pytest.raises(NotBuildable, match=r"cannot build .* \[LW0790\]|\[LW0790\]"):
        as_module(given)


def test_a_build_that_fails_leaves_nothing_behind():
    @T.prim_func
    def broken(A: T.Buffer((8,), "float32")):
        for i in range(9):
            A[i] = T.float32(0)

    for _ in range(2):
        with pytest.raises(IndexError):
            lw.build(broken)
    assert ran(lw.build(doubled())) == 2


def test_a_program_for_each_target():
    both = lw.build({"llvm": tripled, lw.Target("llvm -num-cores=1"): nameless})
    assert ran(both, "tripled") == 3
    assert [module.function_names for module in both.imported_modules] == [["main"]]
    with pytest.raises(NotBuildable, match="cannot build a dict"):
        lw.build({"llvm": 3})
    with pytest.raises(NotBuildable, match="cannot build a dict"):
        lw.build({})


def test_lower_for_another_target():
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: te.exp(A[i]), name="B")
    narrow = "llvm -mtriple=thumbv7em-none-eabihf -mcpu=cortex-m7"
    with lw.target.Target(narrow):
        expected = lw.lower([A, B])
    ir.assert_structural_equal(lw.lower([A, B], target=narrow), expected)
