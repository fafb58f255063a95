"""The key of a build: the same for the same program under other names, another for any change that matters."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir, te
from loopwright.codegen import build_key as keys
from loopwright.codegen.build_key import build_key, sources_digest
from loopwright.ir.expr.base import OperandMismatch
from loopwright.ir.instrument import PassTimingInstrument
from loopwright.ir.node import FieldKind
from loopwright.ir.op import Op
from loopwright.ir.pass_config import CONFIG_KEYS, ConfigKey
from loopwright.runtime.dtype import CUSTOM_CODES
from loopwright.script import from_source
from loopwright.target import Target
from loopwright.transform import prim_func_pass
from tests.compile_caching import run_with_cache, switch_on

LLVM = Target("llvm")

PROGRAM = """
# from loopwright.script import ir as I
# from loopwright.script import tir as T
@I.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, B: T.Buffer((64, 128), "float32"), s: T.float32):
        T.func_attr({"tir.noalias": True})
        n = T.int32()
        A = T.match_buffer(a, (n, 128), "float32", offset_factor=1, align=64)
        C = T.alloc_buffer((64, 128), "float32", scope="global")
        for p, q in T.grid(64, 128):
            with T.block("C"):
                vi, vj = T.axis.remap("SS", [p, q])
                T.reads(A[vi, vj])
                T.writes(C[vi, vj])
                C[vi, vj] = A[vi, vj] * T.float32(2.0) + s
        for i in T.parallel(64):
            for j in T.serial(128, annotations={"pragma": 1}):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    T.block_attr({"note": "text"})
                    B[vi, vj] = T.max(T.exp(C[vi, vj]), T.float32(0.0))

    @T.prim_func
    def other(D: T.Buffer((16,), "float32")):
        for k in range(16):
            x: T.float32 = D[k]
            D[k] = x + x
"""


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    switch_on(monkeypatch, tmp_path)


def no_intrinsic(name):
    raise AssertionError(f"no block names {name}")


def key_of(program, target=LLVM, intrinsic=no_intrinsic) -> str | None:
    module = from_source(program) if isinstance(program, str) else program
    module = ir.IRModule.from_expr(module) if isinstance(module, ir.PrimFunc) else module
    return build_key(module, Target(target), intrinsic)


def changed(*pairs: tuple[str, str]) -> str:
    """The program with one place written otherwise."""
    text = PROGRAM
    for old, new in pairs:
        assert text.count(old) >= 1, old
        text = text.replace(old, new)
    return text


def test_a_key_has_160_bits_and_stays():
    key = key_of(PROGRAM)
    assert len(key) == 40 and int(key, 16)
    assert key_of(PROGRAM) == key


@pytest.mark.parametrize(
    "renamed",
    [
        changed(("for p, q in", "for row, column in"), ("[p, q]", "[row, column]")),
        changed(("for i in T.parallel", "for row in T.parallel"), ("[i, j]", "[row, j]")),
        changed(("vi", "first"), ("vj", "second")),
        changed(("for k in", "for z in"), ("D[k]", "D[z]")),
        changed(("x: T.float32", "y: T.float32"), ("x + x", "y + y")),
    ],
    ids=["loops", "parallel loop", "axes", "loop", "let"],
)
def test_names_of_variables_do_not_matter(renamed):
    assert renamed != PROGRAM
    assert key_of(renamed) == key_of(PROGRAM)


VARIANTS = {
    "dtype of a parameter": [('B: T.Buffer((64, 128), "float32")', 'B: T.Buffer((64, 128), "float16")')],
    "dtype of a scalar": [("s: T.float32", "s: T.float64")],
    "extent of a buffer": [("B: T.Buffer((64, 128)", "B: T.Buffer((65, 128)")],
    "rank of a buffer": [("D: T.Buffer((16,)", "D: T.Buffer((16, 1)"), ("D[k]", "D[k, 0]")],
    "extent of a loop": [("T.parallel(64)", "T.parallel(63)")],
    "start of a loop": [("in range(16)", "in range(1, 16)")],
    "kind of a loop": [("T.parallel(64)", "T.serial(64)")],
    "another kind": [("T.parallel(64)", "T.unroll(64)")],
    "vector loop": [("in range(16)", "in T.vectorized(16)")],
    "annotation of a loop": [('{"pragma": 1}', '{"pragma": 2}')],
    "type of an annotation": [('{"pragma": 1}', '{"pragma": 1.0}')],
    "another truth": [('{"pragma": 1}', '{"pragma": True}')],
    "key of an annotation": [('{"pragma": 1}', '{"pragmas": 1}')],
    "no annotation": [(', annotations={"pragma": 1}', "")],
    "annotation of a block": [('{"note": "text"}', '{"note": "texts"}')],
    "list for a text": [('{"note": "text"}', '{"note": ["text"]}')],
    "constant": [("T.float32(2.0)", "T.float32(2.5)")],
    "sign of zero": [("T.float32(0.0)", "T.float32(-0.0)")],
    "dtype of a constant": [("* T.float32(2.0)", "* T.Cast('float32', T.float64(2.0))")],
    "operator": [("* T.float32(2.0)", "+ T.float32(2.0)")],
    "order of operands": [("A[vi, vj] * T.float32(2.0)", "T.float32(2.0) * A[vi, vj]")],
    "function called": [("T.exp(", "T.tanh(")],
    "max to min": [("T.max(", "T.min(")],
    "scope": [('scope="global"', 'scope="local"')],
    "alignment": [("align=64", "align=16")],
    "offset factor": [("offset_factor=1", "offset_factor=8")],
    "strides": [("offset_factor=1", "offset_factor=1, strides=(256, 1)")],
    "attribute": [('"tir.noalias": True', '"tir.noalias": False')],
    "another attribute": [('"tir.noalias": True', '"tir.noalias": True, "extra": 0')],
    "axis kind": [('"SS", [i, j]', '"SR", [i, j]')],
    "regions": [("T.reads(A[vi, vj])", "T.reads(A[vi, 0:128])")],
    "name of a block": [('T.block("B")', 'T.block("Bs")')],
    "name of a parameter": [("B: T.Buffer", "Result: T.Buffer"), ("B[vi, vj] =", "Result[vi, vj] =")],
    "name of a scalar": [("s: T.float32", "scale: T.float32"), ("+ s", "+ scale")],
    "name of a size": [("n = T.int32()", "rows = T.int32()"), ("(n, 128)", "(rows, 128)")],
    "name of a matched parameter": [("A = T.match", "In = T.match"), ("A[vi, vj]", "In[vi, vj]")],
    "name of intermediate memory": [("C = T.alloc", "Temp = T.alloc"), ("C[vi, vj]", "Temp[vi, vj]")],
    "name of a function": [("def other", "def another")],
    "order of statements": [("D[k] = x + x", "D[k] = x + x\n            D[k] = x")],
    "parameters swapped": [
        ('a: T.handle, B: T.Buffer((64, 128), "float32")', 'B: T.Buffer((64, 128), "float32"), a: T.handle')
    ],
}


def test_any_change_that_matters_gives_another_key():
    found = {"as it is": key_of(PROGRAM)}
    for name, pairs in VARIANTS.items():
        found[name] = key_of(changed(*pairs))
    assert None not in found.values()
    by_key: dict[str | None, str] = {}
    for name, key in found.items():
        assert key not in by_key, f"{name} has the key of {by_key[key]}"
        by_key[key] = name


def nodes_of(module: ir.IRModule) -> list[tuple[str, ir.Node]]:
    found: dict[ir.Node, str] = {}
    for name, function in module.functions_items():
        ir.post_order_visit(function.body, lambda node, name=name: found.setdefault(node, name))
    return [(name, node) for node, name in found.items()]


def other_value(value: object) -> object | None:
    """Another value of the same kind; None where there is none to be had."""
    if isinstance(value, ir.ForKind):
        return ir.ForKind.UNROLLED if value is not ir.ForKind.UNROLLED else ir.ForKind.SERIAL
    if isinstance(value, lw.DataType):
        return lw.DataType("int16" if value != "int16" else "int8")
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, dict):
        return {**value, "added": 1}
    return None


def test_every_plain_field_of_every_node_takes_part():
    module = from_source(PROGRAM)
    before, tried = key_of(module), 0
    for name, node in nodes_of(module):
        if isinstance(node, (ir.Var, ir.Op, ir.Buffer)):
            continue  # bound variables have no names; operators are known by theirs
        for field in node.node_fields:
            new = other_value(getattr(node, field.name)) if field.kind is FieldKind.DATA else None
            if new is None:
                continue
            replacement = node.with_(**{field.name: new})
            function = module[name]

            def swapped(item: ir.Node, node=node, replacement=replacement) -> ir.Node:
                return replacement if item is node else item.rebuild(swapped)

            other = ir.IRModule(dict(module.functions_items()))
            try:
                other[name] = function.with_(body=swapped(function.body))
            except OperandMismatch:
                continue  # there is no such program
            assert key_of(other) != before, f"{type(node).__name__}.{field.name}"
            tried += 1
    assert tried > 30


def test_functions_keep_their_order():
    module = from_source(PROGRAM)
    turned = ir.IRModule(dict(reversed(list(module.functions_items()))))
    assert key_of(turned) != key_of(module)


def with_constant(data: np.ndarray) -> ir.PrimFunc:
    out = ir.decl_buffer((4,), "float32", "out")
    var = ir.Var("weights", ir.PointerType(ir.PrimType("float32"), "global"))
    weights = ir.decl_buffer((4,), "float32", "weights", data=var)
    body = ir.AllocateConst(var, "float32", (4,), data, ir.BufferStore(out, ir.BufferLoad(weights, [0]), [0]))
    return ir.PrimFunc([out], body)


def test_constants_enter_by_content():
    first = np.arange(4, dtype="float32")
    assert key_of(with_constant(first)) == key_of(with_constant(first.copy()))
    assert key_of(with_constant(first)) == key_of(with_constant(np.arange(8, dtype="float32")[:4]))
    assert key_of(with_constant(np.arange(8, dtype="float32")[::2])) != key_of(with_constant(first))
    assert key_of(with_constant(first.view("int32"))) != key_of(with_constant(first))
    assert key_of(with_constant(first.reshape(2, 2))) != key_of(with_constant(first))
    first_key = key_of(with_constant(first))
    first[3] = -1.0
    assert key_of(with_constant(first)) != first_key


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("llvm", "llvm -opt-level=1"),
        ("llvm", "llvm -num-cores=1"),
        ("llvm -mtriple=x86_64-linux-gnu -mcpu=haswell", "llvm -mtriple=x86_64-linux-gnu -mcpu=skylake"),
        ("llvm -mtriple=x86_64-linux-gnu", "llvm -mtriple=x86_64-linux-gnu -mattr=+avx2"),
        ("llvm -mtriple=x86_64-linux-gnu", "llvm -mtriple=aarch64-linux-gnu"),
        ("llvm -mtriple=x86_64-linux-gnu", "llvm -mtriple=x86_64-linux-gnu -mattr=+avx2 -vector-width=128"),
    ],
)
def test_targets_have_keys_of_their_own(first, second):
    assert key_of(PROGRAM, first) != key_of(PROGRAM, second)


def test_what_the_environment_says_of_a_target_takes_part(monkeypatch):
    keys = {key_of(PROGRAM, "llvm")}
    monkeypatch.setenv("LOOPWRIGHT_OPT_LEVEL", "1")
    assert keys.isdisjoint({key_of(PROGRAM, "llvm")})


def test_a_target_among_the_attributes_takes_part():
    module = from_source(PROGRAM)

    def aimed(target: str) -> ir.IRModule:
        other = ir.IRModule(dict(module.functions_items()))
        other["main"] = module["main"].with_attr("target", Target(target))
        return other

    assert key_of(aimed("llvm")) == key_of(aimed("llvm"))
    assert key_of(aimed("llvm")) != key_of(aimed("llvm -opt-level=0"))


@pytest.mark.parametrize(
    "context",
    [
        {"opt_level": 0},
        {"disabled_pass": ["partition_loops"]},
        {"required_pass": ["partition_loops"]},
        {"config": {"tir.disable_vectorize": True}},
        {"config": {"tir.noalias": False}},
        {"config": {"tir.UnrollLoop": {"auto_max_step": 16}}},
        {"config": {"tir.instrument_bound_checkers": True}},
    ],
    ids=str,
)
def test_settings_take_part(context):
    plain = key_of(PROGRAM)
    with lw.PassContext(**context):
        changed_key = key_of(PROGRAM)
        assert changed_key is not None and changed_key != plain
    with lw.PassContext(config={"tir.noalias": True}):  # what it is anyway
        assert key_of(PROGRAM) == plain


def test_a_default_registered_anew_takes_part(monkeypatch):
    plain = key_of(PROGRAM)
    monkeypatch.setitem(CONFIG_KEYS, "tir.disable_vectorize", ConfigKey(bool, True, ""))
    assert key_of(PROGRAM) != plain


def test_what_only_this_process_knows_has_no_key(monkeypatch):
    @prim_func_pass(opt_level=0)
    def mine(func, mod, ctx):
        return func

    with lw.PassContext(config={"tir.add_lower_pass": [(1, mine)]}):
        assert key_of(PROGRAM) is None
    with lw.PassContext(instruments=[PassTimingInstrument()]):
        assert key_of(PROGRAM) is None
    with monkeypatch.context() as patched:
        patched.setitem(Op.attribute_tables, "default.FLowerIntrinsic", {"tir.exp": (10, lambda call: None)})
        assert key_of(PROGRAM) is None
    with monkeypatch.context() as patched:
        patched.setitem(CUSTOM_CODES, "mine", 150)
        assert key_of(PROGRAM) is None
    function = from_source(PROGRAM)["other"]
    assert key_of(function.with_attr("hook", print)) is None
    assert key_of(function.with_attr("hook", [{"deep": object()}])) is None
    assert key_of(function) is not None


def test_a_tensor_intrinsic_takes_part_by_what_it_is():
    text = """
# from loopwright.script import tir as T
@T.prim_func
def main(A: T.Buffer(4), B: T.Buffer(4)):
    with T.block("B"):
        T.block_attr({"tensor_intrin": "copy_4"})
        for i in range(4):
            B[i] = A[i]
"""
    one, two = from_source(text), from_source(text.replace("A[i]", "A[i] + T.float32(0)"))
    asked: list[str] = []

    def known(*functions: ir.PrimFunc) -> Callable[[str], tuple[ir.PrimFunc, ...]]:
        return lambda name: asked.append(name) or functions

    first = key_of(text, intrinsic=known(one, one))
    assert asked == ["copy_4"]
    assert first is not None
    assert key_of(text, intrinsic=known(one, one)) == first
    assert key_of(text, intrinsic=known(one, two)) != first
    assert key_of(text, intrinsic=known(two, one)) != first
    assert key_of(text, intrinsic=lambda name: None) is None


def test_tensors_and_schedules_have_keys():
    A = te.placeholder((16, 16), name="A")
    B = te.compute((16, 16), lambda i, j: A[j, i] + 1.0, name="B")
    function = te.create_prim_func([A, B])
    plain = key_of(function)
    schedule = lw.tir.Schedule(function)
    i, j = schedule.get_loops(schedule.get_block("B"))
    assert key_of(schedule.mod) is not None
    schedule.reorder(j, i)
    assert key_of(schedule.mod) not in (None, plain)
    old = te.create_schedule(B.op)
    assert key_of(lw.lower(old, [A, B], simple_mode=True)) is not None


def test_deep_programs_have_keys():
    x = ir.Var("x", "int32")
    expr: ir.Expr = x
    for k in range(20_000):
        expr = expr + ir.Var("y", "int32") if k == 0 else ir.Add(expr, x)
    out = ir.decl_buffer((1,), "int32", "out")
    function = ir.PrimFunc([out, x], ir.BufferStore(out, expr, [0]))
    assert key_of(function) is not None


def test_the_compiler_itself_takes_part(monkeypatch):
    before = key_of(PROGRAM)
    try:
        keys.compiler_digest.cache_clear()
        with monkeypatch.context() as patched:
            patched.setattr(sys.modules["loopwright"], "__version__", "999.0")
            assert key_of(PROGRAM) != before
        keys.compiler_digest.cache_clear()
        with monkeypatch.context() as patched:
            patched.setattr("llvmlite.binding.llvm_version_info", (99, 0, 0))
            assert key_of(PROGRAM) != before
        keys.compiler_digest.cache_clear()
        with monkeypatch.context() as patched:
            patched.setattr(keys, "sources_digest", lambda files: "other sources")
            assert key_of(PROGRAM) != before
        keys.compiler_digest.cache_clear()
        with monkeypatch.context() as patched:
            patched.setattr(keys, "_PACKAGE", keys._PACKAGE / "nowhere")  # in an archive, say
            assert key_of(PROGRAM) is None
    finally:
        keys.compiler_digest.cache_clear()


def test_sources_are_read_again_when_they_change(tmp_path, monkeypatch):
    monkeypatch.setattr(keys, "_PACKAGE", tmp_path)
    file = tmp_path / "a.py"
    file.write_text("x = 1\n")
    first = sources_digest([file])
    with monkeypatch.context() as patched:
        patched.setattr(type(file), "read_bytes", lambda self: pytest.fail("read again") if self == file else b"")
        assert sources_digest([file]) == first
    status = file.stat()
    file.write_text("x = 2\n")  # the same size
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))  # and the same time
    assert sources_digest([file]) != first
    file.write_text("x = 1\n")
    assert sources_digest([file]) == first  # by content, not by when it was written
    renamed = tmp_path / "b.py"
    file.rename(renamed)
    assert sources_digest([renamed]) != first


def test_the_key_is_the_same_in_every_process(tmp_path, monkeypatch):
    code = (
        "from loopwright.codegen.build_key import build_key\n"
        "from loopwright.script import from_source\n"
        "from loopwright.target import Target\n"
        "from loopwright.codegen import build_key as keys\n"
        "keys.compiler_digest = lambda: 'one compiler'\n"  # someone may edit a source of ours meanwhile
        f"print(build_key(from_source({PROGRAM!r}), Target('llvm'), None))\n"
    )
    monkeypatch.setattr(keys, "compiler_digest", lambda: "one compiler")
    for seed in ("1", "2"):
        assert run_with_cache(tmp_path, code, PYTHONHASHSEED=seed) == key_of(PROGRAM)
