"""use_warpgroups: nests that a schedule gave to tensor cores become `wgmma` of the warpgroups that run them."""

from __future__ import annotations

import re
from textwrap import indent
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright.ir import PrimFunc
from loopwright.runtime.dtype import DataType
from loopwright.script import from_source
from loopwright.transform.on_request.use_warpgroups import NotForTensorCores, use_warpgroups
from loopwright.transform.pipeline import lower
from tests.transform.before_after import unchanged
from tests.transform.every_order import EMULATED, calls

ROW, COLUMN = "h * 8 + tx // 32 * 16 + tx % 32 // 4", "j * 8 + tx % 4 * 2 + e"
LOAD = """
for r, c in T.grid(64, {depth}):
    AS[r, c] = A[r, k * {depth} + c]
for r, c in T.grid({n}, {depth}):
    BS[r, c] = B[r, k * {depth} + c]
"""
CORE = """
for s in range({depth} // {step}):
    for j in T.serial({n} // 8, annotations={"tensor_core": "{core}"}):
        for h, e, kk in T.grid(2, 2, {step}):
            acc[tx, {at}] = acc[tx, {at}] + {product}
"""
PRODUCT = 'T.Cast("{sum}", AS[{row}, s * {step} + kk]) * T.Cast("{sum}", BS[{column}, s * {step} + kk])'
DEFAULTS: dict[str, Any] = {
    "n": 16, "depth": 64, "step": 16, "slabs": 3, "stages": 2, "threads": 128, "a": "float16", "b": "float16",
    "sum": "float32", "core": "wgmma", "at": "j * 4 + h * 2 + e", "row": ROW, "column": COLUMN, "load": LOAD,
    "body": CORE, "product": PRODUCT, "loop": "T.serial({slabs}", "more": "", "room": 8, "first": "0",
}  # fmt: skip


def program(**changes: Any) -> PrimFunc:
    """C = A · B.T of a warpgroup; tiles come by tensor copies, `slabs` of `depth`."""
    given = DEFAULTS | {"room": changes.get("n", 16) // 2} | changes

    def filled(text: str) -> str:
        while any(f"{{{key}}}" in text for key in given):
            for key, value in given.items():
                text = text.replace(f"{{{key}}}", str(value))
        return text

    return from_source(
        filled(f"""
@T.prim_func
def main(A: T.Buffer((64, {given["slabs"] * given["depth"]}), "{{a}}"),
         B: T.Buffer(({{n}}, {given["slabs"] * given["depth"]}), "{{b}}"), C: T.Buffer((64, {{n}}), "{{sum}}"){{more}}):
    for bx in T.thread_binding(1, thread="blockIdx.x"):
        acc = T.decl_buffer(({{threads}}, {{room}}), "{{sum}}", scope="local")
        with T.attr("mma", "warp_role", {{threads}}):
            for tx in T.thread_binding({{threads}}, thread="threadIdx.x"):
                for q in range({{room}}):
                    acc[tx, q] = T.Cast("{{sum}}", 0)
        for k in {{loop}}, annotations={{"warp_role_stages": {{stages}}}}):
            AS = T.decl_buffer((64, {{depth}}), "{{a}}", scope="shared")
            BS = T.decl_buffer(({{n}}, {{depth}}), "{{b}}", scope="shared")
            with T.attr("load", "warp_role", 32):
{indent(filled(given["load"]), " " * 16)}
            with T.attr("mma", "warp_role", {{threads}}):
                for tx in T.thread_binding({{threads}}, thread="threadIdx.x"):
{indent(filled(given["body"]), " " * 20)}
        with T.attr("mma", "warp_role", {{threads}}):
            for tx in T.thread_binding({{threads}}, thread="threadIdx.x"):
                for j, h, e in T.grid({{n}} // 8, 2, 2):
                    C[{{row}}, {{column}}] = acc[tx, j * 4 + h * 2 + e + {{first}}]
""")
    )


def check(wanted: Any = None, arguments: tuple[Any, ...] = (), **changes: Any) -> str:
    """The kernel computes a @ b.T, or what `wanted` makes of slabs; its text."""
    given = DEFAULTS | changes
    random = np.random.default_rng(0)
    k = given["slabs"] * given["depth"]
    low = 0 if "uint8" in (given["a"], given["b"]) else -3
    a, b = (
        random.integers(low, 4, (rows, k)).astype(DataType(kind).numpy())
        for rows, kind in ((64, given["a"]), (given["n"], given["b"]))
    )
    slabs = [a[:, i : i + given["depth"]].astype("float64") @ b[:, i : i + given["depth"]].astype("float64").T
             for i in range(0, k, given["depth"])]  # fmt: skip
    result = sum(slabs) if wanted is None else wanted(slabs)
    module = lw.build(program(**changes), target=EMULATED)
    for order in ("forwards", "backwards", "random"):
        module.set_thread_order(order)
        c = np.zeros((64, given["n"]), DataType(given["sum"]).numpy())
        module(a, b, c, *arguments)
        np.testing.assert_array_equal(c, result, err_msg=order)
    source: str = module.get_source("cuda")
    return source[source.index("__global__") :]


def with_warpgroups(function: PrimFunc) -> PrimFunc:
    result: PrimFunc = lower(function, EMULATED, stop_after="use_warpgroups")["main"]
    return result


def test_what_becomes_of_a_nest():
    result = with_warpgroups(program())
    assert len(calls(result, "wgmma")) == len(calls(result, "wgmma_fence")) == len(calls(result, "wgmma_commit")) == 1
    (call,) = calls(result, "wgmma")
    assert [argument.value for argument in call.args[1:3]] == [16, "float16"]
    assert [argument.value for argument in call.args[4:8]] == [128, 0, 1024, 0]
    # A slab's products are waited for when those of the next one are on their way.
    assert [call.args[0].value for call in calls(result, "wgmma_wait")] == [1, 0]
    unchanged(use_warpgroups, result)


@pytest.mark.parametrize("n", [8, 16, 24, 40, 72])
def test_columns(n):
    check(n=n, slabs=2)


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
@pytest.mark.parametrize("slabs", [1, 2, 4])
def test_stages(stages, slabs):
    check(stages=stages, slabs=slabs, depth=32)


@pytest.mark.parametrize("depth", [16, 32, 64])
def test_rows_of_32_64_and_128_bytes(depth):
    assert "^" not in check(depth=depth)


@pytest.mark.parametrize(
    ("a", "b", "sum", "step"),
    [
        ("bfloat16", "bfloat16", "float32", 16),
        ("float32", "float32", "float32", 8),
        ("int8", "int8", "int32", 32),
        ("uint8", "int8", "int32", 32),
        ("float8_e4m3", "float8_e5m2", "float32", 32),
    ],
)
def test_types(a, b, sum, step):
    check(a=a, b=b, sum=sum, step=step, depth=32, core="wgmma_tf32" if a == "float32" else "wgmma")


@pytest.mark.parametrize("order", ["{left} * {right}", "{right} * {left}"])
def test_operands_in_any_order(order):
    left, right = PRODUCT.split(" * T.Cast")
    check(product=order.replace("{left}", left).replace("{right}", f"T.Cast{right}"))


@pytest.mark.parametrize("n", [0, 1, 3])
def test_the_number_of_slabs_may_be_known_late(n):
    check(lambda slabs: sum(slabs[:n], np.zeros((64, 16))), (n,), loop="T.serial(n", more=", n: T.int32")


ADD_UP = CORE + "for q in range(8):\n    acc[tx, q] = acc[tx, q] * T.float32(2)\n"
SCALED_FIRST = "for q in range(8):\n    acc[tx, q] = acc[tx, q] * T.float32(2)\n" + CORE
ZEROED_FIRST = "for q in range(8):\n    acc[tx, q] = T.float32(0)\n" + CORE


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (SCALED_FIRST, lambda slabs: slabs[0] * 4 + slabs[1] * 2 + slabs[2]),
        (ADD_UP, lambda slabs: slabs[0] * 8 + slabs[1] * 4 + slabs[2] * 2),
        (ZEROED_FIRST, lambda slabs: slabs[2]),
        (CORE + CORE, lambda slabs: sum(slabs) * 2),
        ("if k != 1:\n" + indent(CORE, "    "), lambda slabs: slabs[0] + slabs[2]),
    ],
)
def test_what_touches_accumulators_between_slabs_waits_for_them(body, wanted):
    check(wanted, body=body)


@pytest.mark.parametrize("n", [0, 1, 2])
def test_how_often_a_slab_is_multiplied_may_be_known_late(n):
    body = "for q in range(n):\n" + indent(CORE, "    ")
    check(lambda slabs: sum(slabs) * n, (n,), body=body, more=", n: T.int32")


def test_accumulators_may_begin_further_on():
    check(at="3 + j * 4 + h * 2 + e", room=16, first="3")


GUARDED = CORE.replace("            acc[", "            if kk < 9:\n                acc[", 1)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"core": "amx"}, "there are none named amx"),
        ({"at": "j * 4 + e * 2 + h"}, "BS does not lie in shared memory as tensor cores read it"),
        ({"at": "4 - j * 4 + h * 2 + e"}, "accumulators do not lie in the order j * 4 + h * 2 + e"),
        ({"at": "tx % 2 * 8 + j * 4 + h * 2 + e", "room": 16}, "accumulators begin at another place in each thread"),
        ({"at": "tx // 64 * 8 + j * 4 + h * 2 + e", "room": 16}, "accumulators begin at another place in each thread"),
        ({"row": "h + tx // 32 * 16 + tx % 32 // 4 * 2"}, "AS does not lie in shared memory as tensor cores read it"),
        ({"row": "h * 8 + tx // 32 * 16 + tx % 8"}, "the index of AS is no sum of rows and columns"),
        ({"column": "j * 8 + tx % 4 + e * 4"}, "BS does not lie in shared memory as tensor cores read it"),
        ({"product": PRODUCT.replace("kk])", "15 - kk])")}, "AS does not lie in shared memory"),
        ({"body": CORE.replace("+ {product}", "- {product}")}, "it does not add a product of two loads"),
        ({"body": CORE.replace("acc[tx, {at}] + ", "")}, "it does not add a product of two loads"),
        ({"body": GUARDED}, "it is no nest of serial loops over one store"),
        ({"body": "if tx < 64:\n" + indent(CORE, "    ")}, "would skip it where threadIdx_x < 64 does not hold"),
        ({"body": "with T.LetStmt(tx // 64) as v:\n    if v == 0:\n" + indent(CORE, " " * 8)}, "skip it where v == 0"),
        ({"body": "for q in range(tx // 64):\n" + indent(CORE, "    ")}, "would skip it as loop q depends on"),
        ({"step": 8}, "it has 16 columns and 8 of K, not a multiple of 8 columns up to 256 and 16 of K"),
        ({"step": 32}, "it has 16 columns and 32 of K"),
        ({"b": "bfloat16"}, "tensor cores do not multiply float16 by bfloat16"),
        ({"b": "int8"}, "tensor cores do not multiply float16 by int8"),
        ({"a": "float64", "b": "float64", "sum": "float64", "depth": 16}, "tensor cores do not multiply float64"),
        ({"a": "float32", "b": "float32", "step": 8, "depth": 32}, "tensor cores round float32 to 10 bits"),
        ({"sum": "float16"}, "it adds up float16, and of float16 tensor cores add up float32"),
        ({"a": "int8", "b": "int8", "sum": "int32", "step": 32, "n": 40},
         "it has 40 columns and 32 of K, not 8, 16, 24 or a multiple of 16 columns"),
        ({"threads": 64}, "role mma has 64 threads, no whole warpgroups"),
        ({"depth": 128}, "AS does not lie in shared memory as tensor cores read it: in rows of 32, 64 or 128 bytes"),
        ({"depth": 48}, "AS does not lie in shared memory as tensor cores read it: in rows of 32, 64 or 128 bytes"),
    ],
)  # fmt: skip
def test_what_tensor_cores_do_not_compute(changes, message):
    with pytest.raises(NotForTensorCores, match=re.escape(message)):
        with_warpgroups(program(**changes))


def test_threads_may_fill_the_tiles():
    """What they store is there for tensor cores after a fence, and no bulk copy ignores the swizzle."""
    lanes = """
for tx in T.thread_binding(32, thread="threadIdx.x"):
    for q in range(128):
        AS[(q * 32 + tx) // 64, (q * 32 + tx) % 64] = A[(q * 32 + tx) // 64, k * 64 + (q * 32 + tx) % 64]
    for q in range(32):
        BS[(q * 32 + tx) // 64, (q * 32 + tx) % 64] = B[(q * 32 + tx) // 64, k * 64 + (q * 32 + tx) % 64]
"""
    source = check(load=lanes, slabs=1)
    assert "lw_bulk_copy" not in source and "^" in source
    assert source.count("lw_fence_proxy_async();") == 1
    check(load=lanes)
