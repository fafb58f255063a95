"""Attention by tensor cores: every kind of it emulated in three orders of threads, within bounds of float64; what is
compiled, and what is left to other rules.
"""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw
from loopwright import autosched, te
from loopwright.autosched.attention import ATTENTION, declared_attention
from loopwright.autosched.gpu.attention import AttentionPlan, AttentionShape, attention_kernel, attention_plan
from loopwright.autosched.gpu.machine import GpuMachine
from loopwright.evaluator import evaluate
from loopwright.ir import Block, BlockRealize, PrimFunc, collect_statements, decl_buffer
from loopwright.runtime.nvidia.nvrtc import compile_cuda
from loopwright.topi.nn.attention import attention
from tests.codegen.source.cuda.disassembly import HAS_NVRTC, sass

EMULATED = "cuda -model=emulated -arch=sm_90a"
H200 = "nvidia/nvidia-h200"
ORDERS = ("forwards", "backwards", "random")
ROUNDING = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


class Case:
    """Tensors, and what attention is of them in float64."""

    def __init__(
        self,
        batch: int,
        heads: int,
        queries: int,
        keys: int,
        depth: int,
        own: int = 0,
        causal: bool = False,
        diagonal: int = 0,
        hidden_is_zero: bool = False,
        dtype: str = "float16",
        order: str = "BHSD",
        large: float = 1.0,
    ) -> None:
        self.batch, self.heads, self.queries, self.keys, self.depth = batch, heads, queries, keys, depth
        self.own, self.causal, self.diagonal, self.hidden_is_zero = own or heads, causal, diagonal, hidden_is_zero
        self.dtype, self.order = dtype, order
        rng = np.random.default_rng(keys)
        kind = np.float16 if dtype == "float16" else ml_dtypes.bfloat16
        sizes = ((heads, queries), (self.own, keys), (self.own, keys))
        plain = [(large * rng.standard_normal((batch, h, s, depth))).astype(kind) for h, s in sizes]
        self.given = [self.laid_out(one) for one in plain]
        q, k, v = [one.astype("float64") for one in plain]
        k, v = [np.repeat(one, heads // self.own, 1) for one in (k, v)]
        self.compute(q, k, v)

    def laid_out(self, array: np.ndarray) -> np.ndarray:
        return np.ascontiguousarray(array.transpose(["BHSD".index(letter) for letter in self.order]))

    def compute(self, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> None:
        """The result, and what it may be away from that: roundings of scores, weights and the result."""
        scale = self.depth**-0.5
        scores, magnitude = q @ k.swapaxes(-1, -2) * scale, np.abs(q) @ np.abs(k).swapaxes(-1, -2) * scale
        if self.causal:
            hidden = np.arange(self.keys)[None] > np.arange(self.queries)[:, None] + self.diagonal
            scores = np.where(hidden, -np.inf, scores)
        with np.errstate(invalid="ignore", divide="ignore"):
            powers = np.exp(scores - np.maximum(scores.max(-1, keepdims=True), -1e300))
            total = powers.sum(-1, keepdims=True)
            result = powers @ v / total
            weighted = powers @ np.abs(v) / total
        result = np.where(total == 0, 0.0, result) if self.hidden_is_zero else result
        weighted = np.where(total == 0, 0.0, weighted)
        of_score = (self.depth + 4) * 2.0**-23 * magnitude.max() + 2.0**-20
        bound = weighted * (2.1 * ROUNDING[self.dtype] + 2 * of_score) + self.keys * 2.0**-25 * np.abs(v).max()
        self.expected, self.bound = self.laid_out(result), self.laid_out(bound)

    def require(self, got: np.ndarray) -> None:
        found = got.astype("float64")
        assert np.array_equal(np.isnan(found), np.isnan(self.expected))
        there = ~np.isnan(found)
        assert (np.abs(found - self.expected)[there] <= self.bound[there]).all()

    @property
    def empty(self) -> np.ndarray:
        return np.full(self.expected.shape, 77, self.given[0].dtype)

    # --- as programs --------------------------------------------------------------------------------------------------

    def tensors(self) -> list[te.Tensor]:
        given = [te.placeholder(array.shape, self.dtype, f"t{k}") for k, array in enumerate(self.given)]
        options: dict[str, Any] = {"causal": self.causal, "diagonal": self.diagonal}
        options |= {"hidden_is_zero": self.hidden_is_zero, "layouts": " ".join([self.order] * 4)}
        return [*given, attention(*given, **options)]

    def kernel(self, plan: AttentionPlan) -> PrimFunc:
        shapes = [*[array.shape for array in self.given], self.expected.shape]
        buffers = [decl_buffer(shape, self.dtype, f"t{k}") for k, shape in enumerate(shapes)]
        orders = (self.order, self.order, self.order, self.order)
        sizes = (self.batch, self.heads, self.heads // self.own, self.queries, self.keys, self.depth)
        masked = (self.depth**-0.5, self.causal, self.diagonal, self.hidden_is_zero)
        body = attention_kernel(AttentionShape(*buffers, orders, *sizes, *masked), plan)
        return PrimFunc(buffers, body).with_attr("tir.noalias", True).with_attr("global_symbol", "main")


def require_in_every_order(program: Any, case: Case, orders: tuple[str, ...] = ORDERS) -> str:
    module = lw.build(program, target=EMULATED)
    for order in orders:
        module.set_thread_order(order)
        got = case.empty
        module(*case.given, got)
        case.require(got)
    return module.get_source("cuda")


@pytest.mark.parametrize(
    "case",
    [
        Case(1, 1, 64, 128, 64),
        Case(1, 2, 130, 200, 64),  # tails of queries and of keys
        Case(1, 1, 1, 1, 64),
        Case(2, 3, 70, 129, 128, order="BSHD"),
        Case(1, 4, 200, 200, 128, own=2, causal=True),
        Case(1, 2, 300, 333, 64, causal=True, diagonal=33),
        Case(1, 2, 130, 100, 64, causal=True, diagonal=-20, hidden_is_zero=True),
        Case(1, 2, 130, 100, 64, causal=True, diagonal=-70),  # queries that see no key are no numbers
        Case(1, 1, 70, 100, 256),
        Case(1, 2, 70, 140, 64, dtype="bfloat16", causal=True),
        Case(1, 1, 65, 300, 64, large=30),  # maxima that move far
        Case(1, 1, 64, 70, 64, large=0),
        Case(2, 8, 1, 700, 64, own=2),  # rows are heads, blocks share keys
        Case(1, 6, 1, 520, 128, own=1, causal=True, diagonal=300, order="BSHD"),
        Case(1, 2, 1, 300, 64, causal=True, diagonal=-1, hidden_is_zero=True),
        Case(1, 1, 66, 1500, 64, causal=True, diagonal=1400),  # few queries
    ],
    ids=lambda case: f"{case.batch}x{case.heads}:{case.own}x{case.queries}:{case.keys}x{case.depth}",
)
def test_the_rule_in_every_order_of_threads(case):
    plan = autosched.apply(case.tensors(), EMULATED)
    assert plan.explain().startswith("attention: attention\n  a kernel of its own: scores and weights stay in reg")
    sees_a_key = not case.causal or case.queries + case.diagonal > 0
    assert ("lw_wgmma_m64n" in require_in_every_order(plan.mod, case)) == sees_a_key


@pytest.mark.parametrize(
    "plan",
    [
        AttentionPlan(1, 64, 1, 1, 3, overlaps=False),
        AttentionPlan(1, 64, 2, 2, 3),
        AttentionPlan(2, 128, 2, 2, 2, registers=232),
        AttentionPlan(3, 64, 3, 1, 132, registers=160),
        AttentionPlan(2, 112, 3, 1, 2, overlaps=False, registers=216),
        AttentionPlan(1, 64, 2, 1, 4, splits=4),
        AttentionPlan(2, 64, 2, 2, 3, overlaps=False, splits=3),
    ],
    ids=lambda plan: "-".join(map(str, plan)),
)
@pytest.mark.parametrize("causal", [False, True])
def test_every_plan_in_every_order_of_threads(plan, causal):
    case = Case(1, 3, 150, 320, 64, own=1, causal=causal, diagonal=90)
    text = require_in_every_order(case.kernel(plan), case)
    assert ("lw_set_max_registers_inc" in text) == (plan.registers > 0)
    assert ("part_sums" in text) == (plan.splits > 1)


@pytest.mark.parametrize("overlaps", [False, True])
@pytest.mark.long
def test_the_program_in_the_order_of_its_text(overlaps):
    """What is specialised is a program of plain loops, which the evaluator runs."""
    case = Case(1, 1, 20, 90, 64, causal=True, diagonal=60)
    got = case.empty
    evaluate(case.kernel(AttentionPlan(1, 64, 2, 1, 1, overlaps=overlaps)), *case.given, got)
    case.require(got)


def test_few_queries_in_the_order_of_the_text():
    case = Case(1, 2, 1, 30, 64, own=1)
    got = case.empty
    plan = AttentionPlan(1, 16, 2, 1, 1, splits=2, rows_are_heads=True)
    evaluate(case.kernel(plan), *case.given, got)
    case.require(got)


# --- what is taken ----------------------------------------------------------------------------------------------------


def attention_block(function: PrimFunc) -> Block:
    blocks = [node.block for node in collect_statements(function.body, BlockRealize)]
    return next(block for block in blocks if ATTENTION in (block.annotations or {}))


def test_loops_that_do_not_compute_what_they_declare_are_not_believed():
    case, other = Case(1, 1, 64, 64, 64), Case(1, 1, 64, 64, 64, causal=True, diagonal=3)
    block, changed = (attention_block(te.create_prim_func(one.tensors())) for one in (case, other))
    assert declared_attention(block) is not None
    assert declared_attention(block.with_(annotations=changed.annotations)) is None
    assert declared_attention(block.with_(annotations={})) is None


@pytest.mark.parametrize(
    ("target", "options"),
    [
        ("cuda -model=emulated -arch=sm_90", {}),
        (EMULATED, {"depth": 32}),
    ],
)
def test_what_has_no_such_kernel_is_left_to_other_rules(target, options):
    case = Case(**{"batch": 1, "heads": 1, "queries": 5, "keys": 7, "depth": 64, **options})
    plan = autosched.apply(case.tensors(), target)
    assert "there is no kernel for such attention, or not on this GPU" in plan.explain()
    module, got = lw.build(plan.mod, target=target), case.empty
    module(*case.given, got)
    case.require(got)


def shape_of(batch: int, heads: int, own: int, queries: int, keys: int, depth: int) -> AttentionShape:
    sizes = ((heads, queries), (own, keys), (own, keys), (heads, queries))
    buffers = [decl_buffer((batch, h, s, depth), "float16", "t") for h, s in sizes]
    orders = ("BHSD", "BHSD", "BHSD", "BHSD")
    return AttentionShape(*buffers, orders, batch, heads, heads // own, queries, keys, depth, 0.1, False, 0, False)


@pytest.mark.parametrize(
    ("shape", "groups", "keys", "splits", "rows_are_heads"),
    [
        (shape_of(4, 32, 32, 4096, 4096, 128), 2, 128, 1, False),
        (shape_of(4, 32, 32, 4096, 4096, 64), 2, 128, 1, False),
        (shape_of(4, 32, 32, 4096, 4096, 256), 2, 80, 1, False),
        (shape_of(1, 32, 4, 1, 65536, 128), 1, 128, 32, True),  # 128 blocks of 16 tiles of keys each
        (shape_of(8, 32, 32, 1, 8192, 128), 1, 128, 1, True),
        (shape_of(1, 8, 8, 64, 65536, 128), 1, 128, 16, False),
    ],
)
def test_what_is_planned(shape, groups, keys, splits, rows_are_heads):
    machine = GpuMachine.of(H200)
    plan = attention_plan(shape, machine)
    assert plan is not None
    assert (plan.groups, plan.keys, plan.splits, plan.rows_are_heads) == (groups, keys, splits, rows_are_heads)
    assert plan.blocks == 132
    assert plan.shared_bytes(shape.depth) <= machine.shared_memory


# --- what is compiled -------------------------------------------------------------------------------------------------


def planned(shape: AttentionShape) -> PrimFunc:
    plan = attention_plan(shape, GpuMachine.of(H200))
    assert plan is not None
    body = attention_kernel(shape, plan)
    function = PrimFunc([shape.query, shape.key, shape.value, shape.out], body)
    return function.with_attr("tir.noalias", True).with_attr("global_symbol", "main")


@pytest.mark.skipif(not HAS_NVRTC, reason="NVRTC is not installed")
@pytest.mark.parametrize(
    "shape",
    [
        shape_of(4, 32, 32, 4096, 4096, 64),
        shape_of(4, 32, 32, 4096, 4096, 128),
        shape_of(4, 32, 32, 4096, 4096, 256),
        shape_of(1, 32, 4, 1, 65536, 128),
    ],
)
def test_registers_suffice(shape):
    """Of warps that multiply; those that load have few, and are not in a hurry."""
    program = planned(shape)
    log = compile_cuda(lw.build(program, target=H200).get_source("cuda"), "sm_90a", ["--ptxas-options=-v"]).log
    assert "bytes spill stores" in log
    assert "serialized" not in log
    if " 0 bytes spill stores" not in log:
        kernels = sass(program, "sm_90a").split("USETMAXREG.TRY_ALLOC")[1:]
        assert len(kernels) == 2
        for kernel in kernels:
            multiplies = kernel.split("USETMAXREG.DEALLOC")[0]
            assert "HGMMA" in multiplies
            assert not re.findall(r"\b(STL|LDL)\b", multiplies)


@pytest.mark.skipif(not HAS_NVRTC, reason="NVRTC is not installed")
def test_powers_are_computed_while_values_are_weighed():
    """In the main loop: both products begin, the scores are waited for, then powers, then the values are."""
    depth = 64
    code = sass(planned(shape_of(4, 32, 32, 4096, 4096, depth)), "sm_90a")
    order = re.findall(r"HGMMA|WARPGROUP\.DEPBAR\.LE gsb0, 0x[01]|MUFU\.EX2", code)
    text = "".join([{"HGMMA": "*", "MUFU.EX2": "e"}.get(word, word[-1]) for word in order])
    assert re.search(rf"\*{{{depth // 16 + 8}}}1e{{66}}0", text)
