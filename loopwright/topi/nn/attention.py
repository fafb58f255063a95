"""attention: softmax(query · keyᵀ · scale + mask) · value, as one kernel.

    topi.nn.attention(query, key, value)                      (batch, heads, queries, depth) each
    topi.nn.attention(q, k, v, layouts="BSHD BSHD BSHD BSHD") heads side by side, as a projection leaves them
    topi.nn.attention(q, k, v, causal=True)                   no query sees a key after its own place

`layouts` says how query, key, value and the result lie: B the batch, H the head, S the place in the sequence, D the
number in a head, which comes last. Keys and values may have fewer heads, each for several of the query's. The mask is
added to the scores; it has four dimensions, each of the full size or 1, in the order of `mask_layout` (of "BHKQ" it is
read fastest). The loops are in `autosched/attention`.

What is hidden still counts where it is no number: its weight is 0, and 0 times NaN or an infinite value is NaN. Its
score counts where -inf is added to it (NaN stays NaN), and not where -inf is chosen in its place: `causal_by` and
`mask_selects` say which of the two is meant.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt

import numpy as np

from loopwright import te
from loopwright.ir import Buffer, Expr, Stmt, const
from loopwright.runtime.dtype import DataType
from loopwright.target import Target
from loopwright.te.tags import default_tag
from loopwright.topi.errors import InvalidShapeError, UnsupportedLayout
from loopwright.topi.parts.sizes import check_rank, check_same, known
from loopwright.topi.registry import Sample, operator
from loopwright.topi.rounding import rounded_sample
from loopwright.topi.samples import real_numbers

PLAIN = "BHSD BHSD BHSD BHSD"
_OP = "attention"
_MASKS = ("BHQK", "BHKQ")
_WAYS = ("add", "select", "select_first")


def _attention(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    mask: np.ndarray | None = None,
    scale: float | None = None,
    causal: bool = False,
    diagonal: int = 0,
    layouts: str = PLAIN,
    mask_layout: str = "BHQK",
    hidden_is_zero: bool = False,
    causal_by: str = "add",
    mask_selects: bool = False,
) -> np.ndarray:
    """What it means. Written with operations that `Rounded` knows, so that samples have derived bounds."""
    orders = layouts.split()
    q, k, v = (x.transpose([order.index(one) for one in "BHSD"]) for x, order in zip((query, key, value), orders))
    scale = 1 / sqrt(q.shape[-1]) if scale is None else scale
    repeated = np.arange(q.shape[1]) // max(1, q.shape[1] // max(1, k.shape[1]))
    k, v = k[:, repeated], v[:, repeated]
    empty = k.shape[2] == 0
    if empty:
        return np.zeros([(q.shape[:3] + v.shape[3:])["BHSD".index(one)] for one in orders[3]])
    scores = (q * scale) @ k.transpose([0, 1, 3, 2])
    hidden = np.arange(k.shape[2])[None, :] > np.arange(q.shape[2])[:, None] + diagonal
    if causal and causal_by == "select_first":
        scores = np.where(hidden, -np.inf, scores)
    dead: np.ndarray | np.bool | bool = False
    if mask is not None:
        mask = mask.transpose([mask_layout.index(one) for one in "BHQK"])
        scores = scores + mask
        if mask_selects:
            scores = np.where(np.isneginf(mask), -np.inf, scores)
        dead = hidden_is_zero and np.isneginf(mask).all(axis=-1, keepdims=True)
    if causal and causal_by != "select_first":
        scores = np.where(hidden, scores - np.inf if causal_by == "add" else -np.inf, scores)
    with np.errstate(invalid="ignore"):
        largest = scores.max(axis=-1, keepdims=True)
        powers = np.exp(scores - largest)
        if hidden_is_zero:
            powers = np.where(dead | np.isneginf(largest), 0.0, powers)
            mixed = (powers @ v) * (1 / np.where(dead | np.isneginf(largest), 1.0, powers.sum(axis=-1, keepdims=True)))
        else:
            mixed = (powers @ v) * (1 / powers.sum(axis=-1, keepdims=True))
    return mixed.transpose(["BHSD".index(one) for one in orders[3]])


def _samples() -> Iterator[Sample]:
    def heads(*shape: int, dtype: str = "float32") -> np.ndarray:
        return real_numbers(shape, dtype)

    side_by_side = "BSHD BSHD BSHD BSHD"
    yield rounded_sample(_attention, heads(1, 5, 1, 17), *[heads(1, 150, 1, 17)] * 2, layouts=side_by_side)
    yield rounded_sample(_attention, heads(2, 4, 9, 8), *[heads(2, 2, 7, 8)] * 2, heads(2, 1, 7, 9), mask_layout="BHKQ")
    yield Sample((heads(1, 2, 0, 4), heads(1, 2, 3, 4), heads(1, 2, 3, 4)))
    yield Sample((heads(1, 2, 3, 4), heads(1, 2, 0, 4), heads(1, 2, 0, 4)))


@operator(reference=_attention, samples=_samples, name="nn.attention")
def attention(
    query: te.Tensor,
    key: te.Tensor,
    value: te.Tensor,
    mask: te.Tensor | None = None,
    scale: float | None = None,
    causal: bool = False,
    diagonal: int = 0,
    layouts: str = PLAIN,
    mask_layout: str = "BHQK",
    hidden_is_zero: bool = False,
    causal_by: str = "add",
    mask_selects: bool = False,
) -> te.Tensor:
    """softmax(query · keyᵀ · scale + mask) · value; the scale is 1 / √depth unless given.

    With `causal`, query q sees keys up to q + diagonal: -inf is added to the scores of later ones, or chosen in their
    place after the mask is added (`causal_by` "select") or before ("select_first"). With `mask_selects`, -inf is chosen
    wherever the mask is that. A query that sees no key has a result that is not a number, as a softmax of nothing has,
    or 0 with `hidden_is_zero`. float16 and bfloat16 are computed in float32.
    """
    orders = _orders(layouts)
    sizes = []
    for name, tensor, order in zip(("query", "key", "value"), (query, key, value), orders):
        check_rank(_OP, name, tensor, order, 4)
        sizes.append(dict(zip(order, tensor.shape)))
    q, k, v = sizes
    for letter, what in (("B", "batches"), ("D", "numbers of a head")):
        check_same(_OP, what, ("the query", q[letter]), ("the key", k[letter]))
    for letter, what in (("B", "batches"), ("H", "heads"), ("S", "keys")):
        check_same(_OP, what, ("the key", k[letter]), ("the value", v[letter]))
    depth, width = known(q["D"]), known(v["D"])
    if depth is None or width is None:
        raise InvalidShapeError(_OP, "the size of a head is no number", "give heads of a known size")
    if not _is_float(query) or str(key.dtype) != str(query.dtype) or str(value.dtype) != str(query.dtype):
        kinds = ", ".join(str(tensor.dtype) for tensor in (query, key, value))
        raise InvalidShapeError(_OP, f"query, key and value are of types {kinds}", "give one floating type for all")
    if causal_by not in _WAYS:
        raise UnsupportedLayout(_OP, f"causal_by is {causal_by!r}", f"it is one of {', '.join(_WAYS)}")
    _check_heads(q["H"], k["H"])
    result = {"B": q["B"], "H": q["H"], "S": q["S"], "D": v["D"]}
    if mask is not None:
        _check_mask(mask, mask_layout, {"B": q["B"], "H": q["H"], "Q": q["S"], "K": k["S"]})
    shape = [result[letter] for letter in orders[3]]
    if known(k["S"]) == 0 or width == 0 or any(known(size) == 0 for size in shape):
        zero = const(0, query.dtype)
        built: te.Tensor = te.compute(shape, lambda *_: zero, name=_OP)
        return built
    total = "float64" if str(query.dtype) == "float64" else "float32"
    from loopwright.autosched.attention import ATTENTION, attention_body, attention_of, declaration, tiles
    from loopwright.autosched.machine import Machine  # the machinery of schedules comes along

    options = {
        "mask_order": mask_layout,
        "scale": 1 / sqrt(max(depth, 1)) if scale is None else float(scale),
        "causal": causal,
        "diagonal": diagonal,
        "hidden_is_zero": hidden_is_zero,
        "causal_by": causal_by,
        "mask_selects": mask_selects,
    }
    wanted = attention_of([query.shape, key.shape, value.shape], orders, options, DataType(total))
    machine = Machine.of(Target.current(allow_none=True) or Target("llvm"))
    all_heads = known(q["B"] * q["H"])
    chosen = tiles.choose_tiles(machine, total, all_heads, known(q["S"]), known(k["S"]), depth, width)

    def body(ins: list[Buffer], outs: list[Buffer]) -> Stmt:
        return attention_body(wanted, chosen, ins, outs)

    inputs = [query, key, value] + ([] if mask is None else [mask])
    result_tensor: te.Tensor = te.extern(
        [shape],
        inputs,
        body,
        name=_OP,
        dtype=[str(query.dtype)],
        tag=default_tag(_OP),
        attrs={ATTENTION: declaration(wanted, chosen)},
    )
    return result_tensor


def _orders(layouts: str) -> tuple[str, str, str, str]:
    orders = tuple(layouts.split())
    if len(orders) != 4 or any(sorted(order) != sorted("BHSD") or order[-1] != "D" for order in orders):
        raise UnsupportedLayout(
            _OP, f"layouts {layouts!r} are not those of query, key, value and result", f"write them as {PLAIN!r}"
        )
    return orders


def _check_mask(mask: te.Tensor, layout: str, sizes: dict[str, Expr]) -> None:
    if layout not in _MASKS:
        raise UnsupportedLayout(_OP, f"mask_layout is {layout!r}", f"it is one of {', '.join(_MASKS)}")
    check_rank(_OP, "mask", mask, layout, 4)
    if not _is_float(mask):
        raise InvalidShapeError(_OP, f"the mask is of type {mask.dtype}", "give numbers that are added to scores")
    for letter, own in zip(layout, mask.shape):
        if known(own) != 1:
            check_same(_OP, f"dimension {letter}", ("the mask", own), ("the scores", sizes[letter]), "or 1 in the mask")


def _check_heads(heads: Expr, own: Expr) -> None:
    """Heads of queries share heads of keys, as many each."""
    some, all_ = known(own), known(heads)
    if some is None or all_ is None:
        check_same(_OP, "heads", ("the query", heads), ("the key", own))
    elif all_ and (some == 0 or all_ % some):
        raise InvalidShapeError(
            _OP, f"{all_} heads of the query cannot share {some} of the key", "make one a multiple of the other"
        )


def _is_float(tensor: te.Tensor) -> bool:
    return str(tensor.dtype) in ("float16", "bfloat16", "float32", "float64")
