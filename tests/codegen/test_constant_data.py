"""Large constants are written into the object, not into LLVM text; small ones stay where the optimizer sees them."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright
from loopwright import ir
from loopwright.codegen.llvm.constant_data import SECTION, SMALLEST, append, is_elf, place, reserve
from loopwright.codegen.llvm.effort import Effort
from loopwright.codegen.llvm.emit_module import emit_module
from loopwright.codegen.llvm.engine import compile_text
from loopwright.evaluator import evaluate
from loopwright.runtime.elf import Elf
from loopwright.runtime.errors import InternalError
from loopwright.target import Target, describe
from loopwright.transform.pipeline import lower


def lookup(tables: list[np.ndarray]) -> ir.PrimFunc:
    """out[i] = the sum of all tables at i."""
    size, dtype = len(tables[0]), str(tables[0].dtype)
    out = ir.decl_buffer((size,), dtype, "out")
    i, param = ir.Var("i", "int32"), ir.Var("p", "handle")
    places = [ir.decl_buffer((size,), dtype, f"t{k}") for k in range(len(tables))]
    value = ir.BufferLoad(places[0], (i,))
    for place_ in places[1:]:
        value = value + ir.BufferLoad(place_, (i,))
    body: ir.Stmt = ir.For(i, ir.const(0), ir.const(size), ir.ForKind.SERIAL, ir.BufferStore(out, value, (i,)))
    for place_, table in zip(places, tables, strict=True):
        body = ir.AllocateConst(place_.data, place_.dtype, (ir.const(size),), table, ir.DeclBuffer(place_, body))
    return ir.PrimFunc([param], body, buffer_map={param: out})


def random_tables(count: int, size: int, dtype: str = "int32") -> list[np.ndarray]:
    random = np.random.default_rng(size)
    return [random.integers(-100, 100, size).astype(dtype) for _ in range(count)]


@pytest.mark.parametrize("size", [1, SMALLEST // 4 - 1, SMALLEST // 4, SMALLEST // 4 + 1, 100_003])
def test_constants_of_every_size_arrive(size):
    tables = random_tables(2, size)
    function = lookup(tables)
    got, want = np.zeros(size, "int32"), np.zeros(size, "int32")
    made = loopwright.build(function)
    made(got)
    np.testing.assert_array_equal(got, tables[0] + tables[1])
    if size < 10_000:
        evaluate(function, want)
        np.testing.assert_array_equal(got, want)
    assert len(made.get_source("llvm")) < 60_000 + 6 * SMALLEST
    assert ("externally_initialized" in made.get_source("llvm")) == (4 * size >= SMALLEST)


def test_equal_sized_constants_stay_apart():
    zeros, ones = np.zeros(SMALLEST, "float32"), np.ones(SMALLEST, "float32")
    got = np.zeros(SMALLEST, "float32")
    loopwright.build(lookup([zeros, ones, ones]))(got)
    assert (got == 2).all()


@pytest.mark.parametrize(
    "triple",
    ["x86_64-linux-gnu", "aarch64-linux-gnu", "riscv64-linux-gnu", "thumbv7em-none-eabi", "riscv32-unknown-elf"],
)
def test_the_bytes_are_in_objects_for_every_machine(triple):
    table = random_tables(1, SMALLEST)[0]
    target = f"llvm -mtriple={triple}"
    data: dict[str, bytes] = {}
    text = emit_module(lower(lookup([table]), target), describe(target), data=data)
    made = compile_text(text, describe(target), data=data).object_bytes
    assert table.tobytes() in made
    assert Elf(made).section(".rodata.loopwright") == table.tobytes()


def test_without_a_place_for_data_it_is_in_the_text():
    function = lookup(random_tables(1, SMALLEST))
    assert "externally_initialized" not in emit_module(lower(function, "llvm"), describe("llvm"))
    assert not is_elf("arm64-apple-darwin")
    text = emit_module(lower(function, "llvm"), describe("llvm -mtriple=arm64-apple-darwin"), data={})
    assert "externally_initialized" not in text


def test_nothing_to_place_changes_nothing():
    image = b"not even an object"
    assert place(image, {}) is image


@pytest.mark.parametrize("triple", ["x86_64-linux-gnu", "armv7-linux-gnueabihf", "powerpc64-linux-gnu"])
@pytest.mark.parametrize("size", [1, 63, 64, 65, 100_003])
def test_a_section_grows_to_what_is_appended(triple, size):
    content = np.arange(size, dtype="uint8")
    text = reserve("lw.constants", 64, 64) + "\ndefine ptr @where() {\n  ret ptr @lw.constants\n}\n"
    image = compile_text(text, Target(f"llvm -mtriple={triple}"), effort=Effort.TIDY).object_bytes
    elf = Elf(append(image, "lw.constants", content.data, 64))
    assert elf.is_complete()
    assert elf.section(SECTION) == content.tobytes()
    (symbol,) = [one for one in elf.symbols() if one.name == "lw.constants"]
    assert (symbol.value, symbol.size) == (0, size)
    (section,) = [one for one in elf.sections() if one.name == SECTION]
    assert section.offset % 64 == 0


def test_a_symbol_that_is_elsewhere_cannot_grow():
    image = compile_text("define i32 @f() {\n  ret i32 0\n}\n", Target("llvm")).object_bytes
    for name in ("f", "g"):
        with pytest.raises(InternalError, match=f"no section for the constant {name}"):
            append(image, name, memoryview(b"12"), 64)
