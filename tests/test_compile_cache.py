"""build and the compile cache: what comes from it is what a build would make, and trouble with it stops nothing."""

from __future__ import annotations

import ctypes
import importlib
import os
import re
import threading
import warnings

import numpy as np
import pytest

import loopwright as lw
from loopwright import ir, te
from loopwright.codegen import compile_cache
from loopwright.codegen.llvm.load_object import CodeNotForHost, MissingSymbols
from loopwright.ir.instrument import PassTimingInstrument
from loopwright.ir.pass_context import UnknownPassWarning
from loopwright.runtime import Module, artifact_store, register_extern
from loopwright.runtime.artifact_store import CacheWarning
from loopwright.runtime.call_errors import ShapeMismatch
from loopwright.script import ir as I
from loopwright.script import tir as T
from tests.compile_caching import run_with_cache, switch_on

BUILD = importlib.import_module("loopwright.build")  # the file; the package's attribute is the function


@T.prim_func
def scaled(A: T.Buffer((10, 8), "float32"), B: T.Buffer((10, 8), "float32"), s: T.float32):
    for i in T.parallel(10):
        for j in T.vectorized(8):
            with T.block("B"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj] * s


@I.ir_module
class Both:
    @T.prim_func
    def second(A: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = A[i] + T.float32(1)

    @T.prim_func
    def first(a: T.handle):
        n = T.int32()
        A = T.match_buffer(a, (n,), "float32")
        for i in range(n):
            A[i] = T.exp(A[i])


@pytest.fixture
def store(tmp_path, monkeypatch):
    return switch_on(monkeypatch, tmp_path / "cache")


def modules_in(store) -> list[str]:
    return [entry.key for entry in store.entries() if store.look(entry).header["kind"] == "module"]


def is_compiled(module: Module) -> bool:
    """Whether it was lowered and compiled just now."""
    return "lower" in module.timings


def plain(source: str) -> str:
    """Without the lines that name sections: what LLVM writes there depends on what the process compiled before."""
    return re.sub(r"\t\.section\t.*\n", "", source)


def from_disk(program, **options) -> Module:
    """The module that a build finds on disk."""
    compile_cache.forget()
    before = compile_cache.counts()
    made = lw.build(program, **options)
    assert compile_cache.counts().disk_hits == before.disk_hits + 1
    assert not is_compiled(made)
    return made


def check_scaled(module) -> None:
    a = np.arange(80, dtype="float32").reshape(10, 8)
    b = np.zeros_like(a)
    module(a, b, 3.0)
    np.testing.assert_array_equal(b, a * np.float32(3))


def test_the_suite_runs_without_the_cache():
    assert os.environ["LOOPWRIGHT_CACHE"] == "0"
    assert is_compiled(lw.build(scaled)) and is_compiled(lw.build(scaled))


def test_a_second_build_comes_from_memory_a_later_one_from_disk(store):
    before = compile_cache.counts()
    check_scaled(lw.build(scaled))
    check_scaled(lw.build(scaled))
    compile_cache.forget()
    check_scaled(lw.build(scaled))
    after = compile_cache.counts()
    assert [now - then for now, then in zip(after, before)] == [1, 1, 1]
    assert len(modules_in(store)) == 1


def test_a_hit_neither_checks_nor_lowers_nor_compiles(store, monkeypatch):
    lw.build(scaled)
    monkeypatch.setattr(BUILD, "_compiled", lambda *args: pytest.fail("compiled again"))
    check_scaled(lw.build(scaled))
    compile_cache.forget()
    module = lw.build(scaled)
    check_scaled(module)
    assert set(module.timings) == {"key", "find", "link"}


def test_a_hit_in_another_process_loads_no_pass(store, tmp_path):
    code = (
        "import sys, numpy as np, loopwright as lw\n"
        "from loopwright.script import tir as T\n"
        "@T.prim_func\n"
        "def add(A: T.Buffer(8), B: T.Buffer(8)):\n"
        "    for i in range(8):\n"
        "        B[i] = A[i] + T.float32(1)\n"
        "module = lw.build(add)\n"
        "a, b = np.ones(8, 'float32'), np.zeros(8, 'float32')\n"
        "module(a, b)\n"
        "assert (b == 2).all()\n"
        "loaded = [name in sys.modules for name in ('loopwright.transform', 'loopwright.analysis')]\n"
        "print(*loaded, 'lower' in module.timings)\n"
    )
    assert run_with_cache(tmp_path / "cache", code) == "True True True"
    # Once more if someone edits a source of the compiler just now.
    assert "False False False" in (run_with_cache(tmp_path / "cache", code) for _ in range(2))


def test_a_hit_is_what_a_build_makes(store, tmp_path):
    for program in (scaled, Both):
        built, hit = lw.build(program), from_disk(program)
        for form in (*built.source_forms, ""):
            assert plain(hit.get_source(form)) == plain(built.get_source(form)), form
        assert hit.source_forms == built.source_forms and hit.format == built.format
        assert hit.metadata == built.metadata
        assert hit.description == built.description
        assert hit.function_names == built.function_names and hit.entry_name == built.entry_name
        assert hit.object_code() == built.object_code()
        assert hit.is_proved == built.is_proved and hit.type_key == built.type_key
        assert repr(hit) == repr(built)
        assert hit.get_property_mask() == built.get_property_mask()


def test_a_hit_can_be_exported_and_timed(store, tmp_path):
    lw.build(scaled)
    hit = from_disk(scaled)
    check_scaled(lw.runtime.load_module(hit.export_library(tmp_path / "scaled.so")))
    assert (tmp_path / "scaled.so").exists()
    hit.save(tmp_path / "scaled.ll")
    assert "define" in (tmp_path / "scaled.ll").read_text()
    a, b = lw.nd.empty((10, 8)), lw.nd.empty((10, 8))
    assert hit.time_evaluator("scaled", lw.cpu(), number=2)(a, b, 1.0).mean > 0


def test_errors_name_the_arguments_of_the_program_at_hand(store):
    other = scaled_with_other_names()
    for program, name in ((scaled, "A"), (other, "Input"), (scaled, "A"), (other, "Input")):
        module = lw.build(program)
        with pytest.raises(ShapeMismatch, match=rf"scaled: argument {name} has shape \(9, 8\), expected \(10, 8\)"):
            module(np.zeros((9, 8), "float32"), np.zeros((10, 8), "float32"), 1.0)
    assert len(modules_in(store)) == 2


def scaled_with_other_names():
    @T.prim_func
    def scaled(Input: T.Buffer((10, 8), "float32"), B: T.Buffer((10, 8), "float32"), s: T.float32):
        for i in T.parallel(10):
            for j in T.vectorized(8):
                with T.block("B"):
                    vi, vj = T.axis.remap("SS", [i, j])
                    B[vi, vj] = Input[vi, vj] * s

    return scaled


def test_functions_of_a_module_keep_names_order_and_sizes(store):
    lw.build(Both)
    module = from_disk(Both)
    assert module.function_names == ["second", "first"]
    a = np.zeros(5, "float32")
    module["first"](a)
    assert (a == 1).all()


def test_modules_do_not_share_what_can_change(store):
    first, second = lw.build(scaled), lw.build(scaled)
    second.import_module(lw.build(Both))
    second.timings["mine"] = 1.0
    assert first.imported_modules == [] and "mine" not in lw.build(scaled).timings


def test_large_constants_are_kept(store):
    def table(start: int) -> ir.PrimFunc:
        data = np.arange(start, start + 5000, dtype="float32")
        out = ir.decl_buffer((5000,), "float32", "out")
        var = ir.Var("data", ir.PointerType(ir.PrimType("float32"), "global"))
        held, i = ir.decl_buffer((5000,), "float32", "data", data=var), ir.Var("i", "int32")
        copy = ir.For(i, 0, 5000, ir.ForKind.SERIAL, ir.BufferStore(out, ir.BufferLoad(held, [i]), [i]))
        return ir.PrimFunc([out], ir.AllocateConst(var, "float32", (5000,), data, copy))

    for start in (0, 7):
        lw.build(table(start))
    for start in (0, 7):
        out = np.empty(5000, "float32")
        from_disk(table(start))(out)
        np.testing.assert_array_equal(out, np.arange(start, start + 5000, dtype="float32"))


def test_other_targets_are_kept_and_refuse_to_run(store):
    target = "llvm -mtriple=riscv64-unknown-linux-gnu"
    built = lw.build(scaled, target=target)
    hit = from_disk(scaled, target=target)
    assert plain(hit.get_source("asm")) == plain(built.get_source("asm"))
    with pytest.raises(CodeNotForHost, match="cannot run here"):
        hit(lw.nd.empty((10, 8)), lw.nd.empty((10, 8)), 1.0)


def test_functions_that_code_calls_are_those_of_now(store):
    @T.prim_func
    def calls(A: T.Buffer((1,), "float32")):
        A[0] = T.call_extern("float32", "lw_cache_test_function")

    a = np.zeros(1, "float32")
    with pytest.raises(MissingSymbols, match="lw_cache_test_function"):
        lw.build(calls)(a)
    with pytest.raises(MissingSymbols, match="lw_cache_test_function"):
        from_disk(calls)(a)
    for value in (1.0, 2.0):
        callback = ctypes.CFUNCTYPE(ctypes.c_float)(lambda value=value: value)
        register_extern("lw_cache_test_function", callback)
        lw.build(calls)(a)
        assert a[0] == value


def test_registered_functions_are_looked_up_anew(store):
    @T.prim_func
    def calls(A: T.Buffer((1,), "int32")):
        A[0] = T.call_packed("lw_cache_test.packed", dtype="int32")

    a = np.zeros(1, "int32")
    for value in (1, 2):
        lw.register_func("lw_cache_test.packed", lambda value=value: value, override=True)
        lw.build(calls)(a)
        assert a[0] == value


def test_settings_and_targets_are_kept_apart(store):
    plain = lw.build(scaled)
    with lw.PassContext(config={"tir.disable_vectorize": True}):
        scalar = lw.build(scaled)
    weak = lw.build(scaled, target="llvm -opt-level=0")
    assert is_compiled(scalar) and is_compiled(weak)
    compile_cache.forget()
    with lw.PassContext(config={"tir.disable_vectorize": True}):
        assert lw.build(scaled).get_source("llvm") == scalar.get_source("llvm") != plain.get_source("llvm")
    assert lw.build(scaled, target="llvm -opt-level=0").get_source("ll") == weak.get_source("ll")
    assert len(modules_in(store)) == 3


def test_whoever_watches_passes_sees_them_run(store):
    lw.build(scaled)
    timing = PassTimingInstrument()
    with lw.PassContext(instruments=[timing]):
        assert is_compiled(lw.build(scaled))
        assert "vectorize_loops" in timing.render()


def test_a_misspelt_pass_is_warned_of_by_a_hit_too(store):
    for _ in range(2):
        with lw.PassContext(disabled_pass=["vectorise_loop"]):
            with pytest.warns(UnknownPassWarning, match="vectorise_loop"):
                lw.build(scaled)


def test_c_is_built_every_time(store):
    for _ in range(2):
        assert is_compiled(lw.build(scaled, target="c"))
    assert modules_in(store) == []


def test_a_program_that_is_refused_is_refused_again(store):
    @T.prim_func
    def outside(A: T.Buffer((4,), "float32")):
        for i in range(5):
            A[i] = T.float32(0)

    messages = []
    for _ in range(2):
        with pytest.raises(lw.LoopwrightError) as raised:
            lw.build(outside)
        messages.append(str(raised.value))
    assert messages[0] == messages[1]
    assert modules_in(store) == []


def test_switched_off_nothing_is_kept(store, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_CACHE", "0")
    assert is_compiled(lw.build(scaled)) and is_compiled(lw.build(scaled))
    assert not store.folder.exists()


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "foreign", "folder", "swapped"])
def test_a_damaged_entry_is_compiled_again(store, damage):
    lw.build(scaled)
    (key,) = modules_in(store)
    path = store.folder / f"{key}.lwc"
    whole = path.read_bytes()
    path.unlink()
    if damage == "folder":
        path.mkdir()
    elif damage == "swapped":
        lw.build(Both)
        (other,) = modules_in(store)
        path.write_bytes((store.folder / f"{other}.lwc").read_bytes())
    else:
        flipped = whole[:-9] + bytes([whole[-9] ^ 64]) + whole[-8:]
        content = {"empty": b"", "cut": whole[: len(whole) // 3], "flipped": flipped, "foreign": b"#!/bin/sh\n" * 99}
        path.write_bytes(content[damage])
    compile_cache.forget()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        module = lw.build(scaled)
    assert is_compiled(module)
    check_scaled(module)
    check_scaled(from_disk(scaled))  # it was mended


def test_an_entry_of_another_kind_is_compiled_again(store):
    lw.build(scaled)
    (key,) = modules_in(store)
    for header in ({"kind": "sources"}, {"kind": "module", "description": "{}", "opt_level": 3}):
        store.save(key, header, {"object": b"", "ll": b""})
        compile_cache.forget()
        module = lw.build(scaled)
        assert is_compiled(module)
        check_scaled(module)


def test_a_folder_that_cannot_be_written_is_noted_once(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("in the way")
    switch_on(monkeypatch, tmp_path / "file")
    with pytest.warns(CacheWarning, match="Not a directory") as caught:
        check_scaled(lw.build(scaled))
        compile_cache.forget()
        check_scaled(lw.build(scaled))
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_a_full_disk_is_noted_once(store, monkeypatch):
    def full(*args, **options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(artifact_store.tempfile, "mkstemp", full)
    with pytest.warns(CacheWarning, match="No space left on device") as caught:
        check_scaled(lw.build(scaled))
        check_scaled(lw.build(scaled))
    assert len(caught) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder_is_read(store):
    lw.build(scaled)
    store.folder.chmod(0o500)
    try:
        check_scaled(from_disk(scaled))
        with pytest.warns(CacheWarning, match="Permission denied"):
            lw.build(Both)
    finally:
        store.folder.chmod(0o700)


def test_memory_is_bounded(store, monkeypatch):
    monkeypatch.setattr(compile_cache, "_MOST_MODULES", 2)
    programs = [te_add(n) for n in (3, 4, 5)]
    for program in programs:
        lw.build(program)
    before = compile_cache.counts()
    lw.build(programs[2])
    lw.build(programs[1])
    assert compile_cache.counts().memory_hits == before.memory_hits + 2
    lw.build(programs[0])
    assert compile_cache.counts().disk_hits == before.disk_hits + 1
    monkeypatch.setattr(compile_cache, "_MOST_BYTES", 10)
    lw.build(te_add(6))
    lw.build(te_add(6))
    assert compile_cache.counts().disk_hits == before.disk_hits + 2


def te_add(n: int) -> ir.PrimFunc:
    A = te.placeholder((n,), name="A")
    return te.create_prim_func([A, te.compute((n,), lambda i: A[i] + 1.0, name="B")])


def check_add(module, n: int) -> None:
    a, b = np.arange(n, dtype="float32"), np.zeros(n, "float32")
    module(a, b)
    np.testing.assert_array_equal(b, a + 1)


@pytest.mark.parametrize("n", [0, 1, 7, 16, 17])
def test_boundary_shapes(store, n):
    check_add(lw.build(te_add(n)), n)
    check_add(from_disk(te_add(n)), n)


def test_threads_build_at_once(store):
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for n in (3, 4, 5, 3, 4, 5):
                check_add(lw.build(te_add(n)), n)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(modules_in(store)) == 3


def test_forked_processes_build_at_once(store, monkeypatch):
    monkeypatch.setenv("LOOPWRIGHT_CACHE_SIZE", "80kB")  # so that they prune as well
    kept = lw.build(te_add(2))
    children = []
    for child_number in range(3):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                for n in (3, 4, 5, 6, 2):
                    check_add(lw.build(te_add(n + child_number % 2)), n + child_number % 2)
                check_add(kept, 2)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children] == [0, 0, 0]
    for entry in store.entries():
        store.look(entry)
    # Processes look at what others wrote now and then only, so together they may go over the limit. The next one to
    # start brings it back with its first entry.
    artifact_store._opened.clear()
    check_add(lw.build(te_add(9)), 9)
    assert sum(entry.size for entry in store.entries()) <= 80_000
    check_add(lw.build(te_add(3)), 3)


def test_a_fork_while_the_memory_is_in_use_does_not_hang(store):
    lw.build(te_add(3))
    with compile_cache._memory._lock:  # as another thread may hold it at that moment
        child = os.fork()
        if child == 0:
            status = 1
            try:
                check_add(lw.build(te_add(3)), 3)
                status = 0
            finally:
                os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_another_version_compiles_again(store, monkeypatch):
    from loopwright.codegen import build_key

    lw.build(scaled)
    compile_cache.forget()
    monkeypatch.setattr(build_key, "compiler_digest", lambda: "another compiler")
    assert is_compiled(lw.build(scaled))
    assert len(modules_in(store)) == 2


def test_a_hit_does_not_schedule(store, monkeypatch):
    check_scaled(lw.build(scaled, autosched=True))
    with monkeypatch.context() as patch:
        patch.setattr("loopwright.autosched.apply", lambda *args: pytest.fail("scheduled again"))
        check_scaled(lw.build(scaled, autosched=True))
    assert is_compiled(lw.build(scaled))  # as written: another program, and another key


def test_rules_of_ones_own_are_not_kept(store):
    from loopwright import autosched
    from loopwright.autosched.rules.plain import Plain

    class Own(Plain):
        """A user's rule."""

    autosched.RULES.insert(0, Own())
    try:
        assert is_compiled(lw.build(scaled, autosched=True)) and is_compiled(lw.build(scaled, autosched=True))
    finally:
        del autosched.RULES[0]
