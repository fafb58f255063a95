"""threefry: random bits from a counter, by the cipher Threefry-4x64 with 20 rounds (Salmon and others, 2011).

    key = topi.random.threefry_key(42)                        a numpy array: the state to begin with
    state, bits = topi.random.threefry_generate(state, (4, 5))

A state is 10 words of 64 bits: the key (0 to 3) and the counter (4); the others are zero. Block number n of a stream is
the cipher of (n, 0, 0, 0), so that all blocks can be made at once, in any order. Splitting a state gives two with keys
of their own, the ciphers of (n, 1, 0, 0) and (n, 2, 0, 0). A state is used once: a call gives the one to go on with.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from loopwright import te
from loopwright.ir import Buffer, Expr, IRModule, Stmt, as_expr, cast, const
from loopwright.ir.ir_builder import IRBuilder, create
from loopwright.runtime.dtype import DataType
from loopwright.target import Target, describe
from loopwright.te.tags import default_tag
from loopwright.topi import tag
from loopwright.topi.errors import InvalidShapeError
from loopwright.topi.parts.choices import UnsuitableType
from loopwright.topi.parts.row_major import product, ravel
from loopwright.topi.parts.sizes import check_rank, check_same
from loopwright.topi.registry import operator
from loopwright.topi.testing import drawing as meaning
from loopwright.topi.types import Shape

STATE_SIZE: Final = 10
_WORD: Final = DataType("uint64")


def threefry_key(seed: int) -> np.ndarray:
    """The state that begins the stream of numbers of `seed`."""
    state = np.zeros(STATE_SIZE, "uint64")
    state[0] = seed % 2**64
    return state


@operator(
    reference=meaning.threefry_generate, samples=meaning.threefry_generate_samples, name="random.threefry_generate"
)
def threefry_generate(gen: te.Tensor, out_shape: Shape) -> list[te.Tensor]:
    """[state to go on with, uint64 tensor of `out_shape` whose bits are random]."""
    op = "threefry_generate"
    check_state(op, gen)
    if not isinstance(out_shape, Sequence):
        raise InvalidShapeError(op, f"out_shape is {out_shape!r}", "give a sequence of sizes")
    shape = [as_expr(size) for size in out_shape]
    count = product(shape)
    blocks = (count + 3) // 4

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        state, next_state, bits = [ib.buffer_ptr(buffer) for buffer in (*ins, *outs)]
        with ib.for_range(0, STATE_SIZE, "k") as k:
            next_state[k] = state[k]
        next_state[4] = state[4] + cast(blocks, _WORD)
        with ib.for_range(0, blocks, "block", kind="parallel") as block:
            counter = [state[4] + cast(block, _WORD), *[const(0, _WORD)] * 3]
            words = cipher(ib, [state[k] for k in range(4)], counter)
            for number, word in enumerate(words):
                location = block * 4 + number
                with ib.if_scope(location < count):
                    bits[location] = word
        return ib.get()

    state, line = te.extern([(STATE_SIZE,), (count,)], [gen], body, name=op, dtype=["uint64"] * 2, tag=default_tag(op))
    if len(shape) == 1:
        return [state, line]
    numbers = te.compute(shape, lambda *at: line(ravel(at, shape)), name="T_reshape", tag=default_tag(tag.INJECTIVE))
    return [state, numbers]


@operator(reference=meaning.threefry_split, samples=meaning.threefry_split_samples, name="random.threefry_split")
def threefry_split(gen: te.Tensor) -> list[te.Tensor]:
    """Two states whose streams have nothing to do with each other."""
    op = "threefry_split"
    check_state(op, gen)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        ib = create()
        state = ib.buffer_ptr(ins[0])
        for number, out in enumerate(outs, 1):
            half = ib.buffer_ptr(out)
            words = cipher(
                ib, [state[k] for k in range(4)], [state[4], *[const(word, _WORD) for word in (number, 0, 0)]]
            )
            for k in range(STATE_SIZE):
                half[k] = words[k] if k < 4 else const(0, _WORD)
        return ib.get()

    result: list[te.Tensor] = te.extern(
        [(STATE_SIZE,)] * 2, [gen], body, name=op, dtype=["uint64"] * 2, tag=default_tag(op)
    )
    return result


def threefry_test_wrapping(target: str | Target, device: object = None) -> bool:
    """Whether unsigned integers wrap around when compiled for `target`, as the cipher needs them to."""
    # By hand, as `loopwright.build` is a facade over all layers.
    from loopwright.codegen.llvm import make_module
    from loopwright.transform import lower

    chosen = Target(target)
    word = te.placeholder((1,), "uint64", name="word")
    more = te.compute((1,), lambda i: word[i] + const(1, _WORD), name="more")
    result = np.full(1, 7, "uint64")
    module = lower(IRModule({"main": te.create_prim_func([word, more])}), chosen)
    make_module(module, describe(chosen), "main")(np.full(1, 2**64 - 1, "uint64"), result)
    return bool(result[0] == 0)


def check_state(op: str, gen: te.Tensor) -> None:
    """Refuse what is no state of a generator."""
    check_rank(op, "gen", gen, "(10)", 1)
    check_same(op, "words of the state", ("gen", gen.shape[0]), ("a state", as_expr(STATE_SIZE)))
    if gen.dtype != "uint64":
        raise UnsuitableType(op, f"the state {gen.name} is made of {gen.dtype}", "it is uint64: see threefry_key")


def cipher(ib: IRBuilder, key: Sequence[Expr], counter: Sequence[Expr]) -> list[Expr]:
    """The four words that `counter` becomes under `key`."""
    last: Expr = const(meaning.PARITY, _WORD)
    for word in key:
        last = last ^ word
    keys = [*key, ib.let("last_key", last)]
    words = [ib.let("word", word + keys[k]) for k, word in enumerate(counter)]
    for turn in range(20):
        pairs = ((0, 1), (2, 3)) if turn % 2 == 0 else ((0, 3), (2, 1))
        for (left, right), bits in zip(pairs, meaning.ROTATIONS[turn % 8], strict=True):
            words[left] = ib.let("word", words[left] + words[right])
            transposed = (words[right] << const(bits, _WORD)) | (words[right] >> const(64 - bits, _WORD))
            words[right] = ib.let("word", transposed ^ words[left])
        if turn % 4 == 3:
            injected = turn // 4 + 1
            for k in range(4):
                added = keys[(injected + k) % 5] + const(injected if k == 3 else 0, _WORD)
                words[k] = ib.let("word", words[k] + added)
    return list(words)
