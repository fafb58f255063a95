"""Blocks of dot products and of AMX tiles: LLVM knows the instructions, and they compute what they say, at any size."""

from __future__ import annotations

import pytest

from loopwright.codegen.llvm.emit_module import emit_module
from loopwright.codegen.llvm.engine import compile_text
from loopwright.ir import IRModule
from loopwright.runtime import amx
from loopwright.target import describe
from loopwright.transform.pipeline import lower
from loopwright.transform.tensor_intrinsics import TensorIntrin, UnknownIntrinsic
from loopwright.transform.tensor_intrinsics.check import check_intrinsic
from loopwright.transform.tensor_intrinsics.dot_block import KINDS, dot_block
from loopwright.transform.tensor_intrinsics.x86_amx import _strips, amx_dot

FEATURES = describe("llvm").features
has_amx = pytest.mark.skipif("amx-int8" not in FEATURES or bool(amx.ask()), reason="this machine has no AMX")

# What each instruction is called in assembly.
WORDS = {
    "u8s8_vnni512": "vpdpbusd",
    "s8u8_vnni512": "vpdpbusd",
    "u8s8_vnni256": "vpdpbusd",
    "s8u8_vnni256": "vpdpbusd",
    "s8s8_vnni256": "vpdpbssd",
    "u8u8_vnni256": "vpdpbuud",
    "s16s16_madd512": "vpmaddwd",
    "s16s16_madd256": "vpmaddwd",
    "s16s16_madd128": "pmaddwd",
    "bf16bf16_512": "vdpbf16ps",
    "f16f16_512": "vfmadd",
    "s8s8_sdot": "sdot",
    "u8u8_udot": "udot",
    "u8s8_usdot": "usdot",
    "s8u8_usdot": "usdot",
    "bf16bf16_neon": "bfdot",
    "f16f16_neon": "fmla",
}


def assembly(name: str, target: str) -> str:
    function = TensorIntrin.get(name).impl.with_attr("global_symbol", "main")
    cpu = describe(target)
    return compile_text(emit_module(lower(IRModule({"main": function}), target), cpu), cpu).asm()


@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", list(KINDS))
def test_each_kind_becomes_its_instruction(kind):
    row = KINDS[kind]
    is_arm = row.instruction.startswith("llvm.aarch64") or "fullfp16" in row.features
    base = "llvm -mtriple=aarch64-linux-gnu" if is_arm else "llvm -mtriple=x86_64-linux-gnu"
    target = f"{base} -mattr={','.join('+' + feature for feature in row.features)}"
    text = assembly(dot_block(3, 2 * row.lanes, 2 * row.group, kind), target)
    assert text.count(WORDS[kind]) >= 6  # three rows of two vectors; the loop may be written out


@pytest.mark.parametrize("from_zero", [False, True])
@pytest.mark.parametrize("kind", [kind for kind, row in KINDS.items() if FEATURES.issuperset(row.features)])
def test_what_each_kind_computes(kind, from_zero):
    row = KINDS[kind]
    check_intrinsic(dot_block(2, 2 * row.lanes, 2 * row.group, kind, from_zero), cases=2)


@has_amx
@pytest.mark.parametrize("types", ["s8s8s32", "u8s8s32", "s8u8s32", "u8u8s32", "bf16bf16f32"])
def test_amx_types(types):
    check_intrinsic(amx_dot(17, 16, 64, types, from_zero=types == "u8u8s32"), cases=1)


@has_amx
@pytest.mark.parametrize(
    ("size", "from_zero"), [((1, 16, 64), True), ((3, 48, 128), False), ((33, 32, 64), True), ((17, 48, 64), False)]
)
def test_amx_sizes(size, from_zero):
    check_intrinsic(amx_dot(*size, "u8s8s32", from_zero), cases=1)


def test_strips_are_whole_pairs_and_the_rest():
    for rows in range(1, 100):
        covered = []
        for begin, count, heights in _strips(rows):
            assert 1 <= max(heights) <= 16
            covered += range(begin, begin + count * 32) if heights == (16, 16) else range(begin, begin + sum(heights))
        assert covered == list(range(rows))


def test_a_name_is_enough():
    for name in ("dot_block_5x32x12_u8s8_vnni512_from_zero", "amx_dot_3x48x192_s8u8s32", "interleave_4x48_uint8"):
        TensorIntrin.known.pop(name, None)
        assert TensorIntrin.get(name).name == name


@pytest.mark.parametrize(
    "name",
    ["dot_block_5x30x12_u8s8_vnni512", "dot_block_5x32x12_u9", "amx_dot_3x48x100_s8u8s32", "interleave_3x8_int8"],
)
def test_names_that_mean_nothing(name):
    with pytest.raises(UnknownIntrinsic, match=f"there is no tensor intrinsic {name!r}"):
        TensorIntrin.get(name)


def test_sizes_that_do_not_fit():
    with pytest.raises(ValueError, match="n a multiple of 16 and k of 4; got 2, 8, 4"):
        dot_block(2, 8, 4, "u8s8_vnni512")
    with pytest.raises(ValueError, match="kind 'vpmaddubsw' is not one of"):
        dot_block(2, 16, 4, "vpmaddubsw")
