"""TfIdfVectorizer of numbers: how often short sequences of a pool occur in rows, skips allowed."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.relay.expr import Expr


@converter("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(node: Node, x: Expr) -> Expr:
    if "pool_strings" in node.attributes:
        raise node.unsupported("a pool of texts", hint="number the words before the model")
    mode = node.attr("mode")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise node.invalid("mode", mode, "TF, IDF or TFIDF")
    pool, locations = np.array(node.attr("pool_int64s"), np.int64), node.attr("ngram_indexes")
    rows = relay.expand_dims(x, axis=0) if node.rank(x) == 1 else x
    length = node.static_shape(rows)[1]
    counts = _counted(node, node.cast(rows, "int64"), length, _sequences(node, pool))
    width = max(locations, default=-1) + 1
    weights = node.attr("weights", None) or [1.0] * len(locations)
    if mode == "IDF":
        counts = relay.minimum(counts, node.const(1.0, "float32"))
    # Sequence k of the pool is column places[k] of the result; weights are those of columns.
    spread = np.zeros((width, len(locations)))
    spread[list(locations), np.arange(len(locations))] = 1 if mode == "TF" else np.array(weights)[list(locations)]
    result = relay.nn.dense(counts, node.const(spread, "float32"))
    return relay.squeeze(result, axis=[0]) if node.rank(x) == 1 else result


def _sequences(node: Node, pool: np.ndarray) -> list[np.ndarray]:
    """The sequences of the pool, in order: those of one number, of two …"""
    starts = [*node.attr("ngram_counts"), len(pool)]
    result: list[np.ndarray] = []
    for size, (first, last) in enumerate(pairwise(starts), 1):
        if first > last or (last - first) % size:
            raise node.bad(f"the numbers {first} to {last} of the pool are no sequences of {size}")
        result += list(pool[first:last].reshape(-1, size))
    return result


def _counted(node: Node, rows: Expr, length: int, sequences: list[np.ndarray]) -> Expr:
    """How often each sequence occurs in each row, at every distance of its numbers that is allowed."""
    least, most = node.attr("min_gram_length"), node.attr("max_gram_length")
    columns: dict[int, Expr] = {}
    for size in sorted({len(one) for one in sequences}):
        wanted = [k for k, one in enumerate(sequences) if len(one) == size]
        if not least <= size <= most:
            continue
        patterns = np.stack([sequences[k] for k in wanted])  # sequences, size
        total: Expr | None = None
        for skip in range(1 if size == 1 else node.attr("max_skip_count") + 1):
            reach = (size - 1) * (skip + 1)
            if reach >= length:
                break
            at = np.arange(length - reach)[:, None] + np.arange(size) * (skip + 1)
            windows = relay.expand_dims(relay.take(rows, node.const(at), axis=1), axis=1)  # rows, 1, places, size
            equal = relay.all(relay.equal(windows, node.const(patterns[None, :, None, :])), axis=[3])
            here = relay.sum(relay.cast(equal, "float32"), axis=[2])
            total = here if total is None else relay.add(total, here)
        for index, k in enumerate(wanted):
            if total is not None:
                columns[k] = relay.strided_slice(total, begin=[index], end=[index + 1], axes=[1])
    none = relay.zeros((node.shape(rows)[0], 1), "float32")
    return relay.concatenate([columns.get(k, none) for k in range(len(sequences))], axis=1)
