"""Models of classical machine learning: TreeEnsemble, Binarizer, ArrayFeatureExtractor.

All trees are walked at once: nodes and leaves are rows of one table, a leaf leads to itself, and after as many steps as
the deepest tree has every sample is at a leaf of every tree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from loopwright import relay
from loopwright.frontends.onnx.node import Node
from loopwright.frontends.onnx.registry import converter
from loopwright.relay.expr import Expr

_DOMAIN: Final = "ai.onnx.ml"
_COMPARISONS: Final = (relay.less_equal, relay.less, relay.greater_equal, relay.greater, relay.equal, relay.not_equal)
_MEMBER: Final = len(_COMPARISONS)


@converter("ArrayFeatureExtractor", domain=_DOMAIN)
def array_feature_extractor(node: Node, x: Expr, places: Expr) -> Expr:
    """Elements of the last axis; a vector is one row."""
    rank = node.rank(x)
    result = relay.take(x, relay.reshape(places, (-1,)), axis=rank - 1)
    return relay.expand_dims(result, axis=0) if rank == 1 else result


@converter("Binarizer", domain=_DOMAIN)
def binarizer(node: Node, x: Expr) -> Expr:
    return node.cast(relay.greater(x, node.const(node.attr("threshold", 0.0), x)), x)


@dataclass(frozen=True)
class _Table:
    """A row for each node, then one for each leaf."""

    feature: np.ndarray
    split: np.ndarray
    mode: np.ndarray
    members: np.ndarray  # rows, most members of a set; NaN where a set has fewer
    missing_is_true: np.ndarray
    where_true: np.ndarray
    where_false: np.ndarray


@converter("TreeEnsemble", domain=_DOMAIN, since=5)
def tree_ensemble(node: Node, x: Expr) -> Expr:
    weights = node.attr("leaf_weights").array()
    targets, count = np.array(node.attr("leaf_targetids")), int(node.attr("n_targets"))
    if weights.shape != targets.shape or not ((targets >= 0) & (targets < count)).all():
        raise node.bad("its leaves do not have a weight and a target each")
    roots = list(node.attr("tree_roots"))
    table = _table(node, len(weights), weights.dtype)
    nodes = len(table.feature) - len(weights)
    if not roots or not all(0 <= root < nodes for root in roots):
        raise node.bad(f"the roots {roots} are not among its {nodes} nodes")
    rows = relay.take(relay.shape_of(x, dtype="int64"), node.const(0), axis=0)
    at = relay.broadcast_to(node.const(roots), relay.stack([rows, node.const(len(roots))], axis=0))
    for _ in range(_depth(node, table, roots, nodes)):
        at = _step(node, x, table, at)
    votes = np.zeros((nodes + len(weights), count), weights.dtype)
    votes[nodes + np.arange(len(weights)), targets] = weights
    given = relay.take(node.const(votes, str(weights.dtype)), at, axis=0)  # samples, trees, targets
    return _transformed(node, _aggregated(node, given, len(roots)))


def _table(node: Node, leaves: int, kind: np.dtype) -> _Table:
    features = list(node.attr("nodes_featureids"))
    count = len(features)
    splits, modes = node.attr("nodes_splits").array(), node.attr("nodes_modes").array()
    lists = [node.attr(f"nodes_{side}{what}") for side in ("true", "false") for what in ("nodeids", "leafs")]
    if any(len(one) != count for one in (splits, modes, *lists)) or (modes > _MEMBER).any():
        raise node.bad("the attributes of its nodes do not fit together")
    ends = []
    for to, is_leaf in (lists[:2], lists[2:]):
        places = np.where(np.array(is_leaf, bool), np.array(to) + count, np.array(to))
        limits = np.where(np.array(is_leaf, bool), count + leaves, count)
        if ((np.array(to) < 0) | (places >= limits)).any():
            raise node.bad("a node leads to one that is not there")
        ends.append(np.concatenate([places, count + np.arange(leaves)]))
    stored = node.attr("membership_values", None)
    sets = _sets(np.zeros(0, kind) if stored is None else stored.array())
    holders = [k for k in range(count) if modes[k] == _MEMBER]
    if len(sets) < len(holders):
        raise node.bad(f"{len(holders)} nodes ask for members, and there are {len(sets)} sets")
    members = np.full((count + leaves, max([len(one) for one in sets] + [1])), np.nan, kind)
    for holder, one in zip(holders, sets):
        members[holder, : len(one)] = one
    return _Table(
        np.array(features + [0] * leaves),
        np.concatenate([splits, np.zeros(leaves, kind)]),
        np.concatenate([modes.astype("int64"), np.zeros(leaves, "int64")]),
        members,
        np.array([*node.attr("nodes_missing_value_tracks_true", [0] * count), *[0] * leaves], bool),
        ends[0],
        ends[1],
    )


def _sets(values: np.ndarray) -> list[np.ndarray]:
    """The sets of a list in which a NaN ends each."""
    if not values.size:
        return []
    parts = np.split(values, np.nonzero(np.isnan(values))[0] + 1)
    return [part[~np.isnan(part)] for part in parts if part.size]


def _depth(node: Node, table: _Table, roots: Sequence[int], nodes: int) -> int:
    """The steps after which every walk is at a leaf."""
    level, steps = set(roots), 0
    while any(place < nodes for place in level):
        if steps > nodes:
            raise node.bad("its nodes lead back to themselves")
        level = {int(to[place]) for place in level for to in (table.where_true, table.where_false)}
        steps += 1
    return steps


def _step(node: Node, x: Expr, table: _Table, at: Expr) -> Expr:
    """Where each sample is in each tree after one more question."""

    def here(column: np.ndarray, dtype: str) -> Expr:
        return relay.take(node.const(column, dtype), at, axis=0)

    value = relay.gather(x, 1, here(table.feature, "int64"))
    split, kind = here(table.split, str(node.dtype(x))), str(node.dtype(x))
    used = sorted(set(table.mode.tolist()))
    answers = []
    for mode in used:
        if mode == _MEMBER:
            same = relay.equal(relay.expand_dims(value, axis=2), here(table.members, kind))
            answers.append(relay.any(same, axis=[2]))
        else:
            answers.append(_COMPARISONS[mode](value, split))
    answer = answers[0]
    for mode, other in zip(used[1:], answers[1:]):
        answer = relay.where(relay.equal(here(table.mode, "int64"), node.const(mode)), other, answer)
    if table.missing_is_true.any():
        missing = relay.logical_and(relay.isnan(value), here(table.missing_is_true, "bool"))
        answer = relay.logical_or(answer, missing)
    return relay.where(answer, here(table.where_true, "int64"), here(table.where_false, "int64"))


def _aggregated(node: Node, given: Expr, trees: int) -> Expr:
    match node.attr("aggregate_function", 1):
        case 0:
            total = relay.sum(given, axis=[1])
            return relay.divide(total, node.const(trees, total))
        case 1:
            return relay.sum(given, axis=[1])
        case other:
            raise node.unsupported(f"aggregate_function {other} (the smallest or largest of the votes)")


def _transformed(node: Node, result: Expr) -> Expr:
    match node.attr("post_transform", 0):
        case 0:
            return result
        case 1:
            return relay.nn.softmax(result, axis=-1)
        case 2:
            return relay.sigmoid(result)
        case other:
            raise node.unsupported(f"post_transform {other}")
