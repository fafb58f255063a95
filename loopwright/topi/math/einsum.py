"""einsum: sums of products, written with one letter a dimension.

    topi.einsum("bij,bjk->bik", A, B)        products of matrices, one a batch
    topi.einsum("...ij->...ji", A)           the last two dimensions exchanged

Letters that the result lacks are summed over. Without `->` the result has, in alphabetical order, the letters that
stand there once. Three and more operands are multiplied two at a time, the cheapest pair first; each is a stage.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from operator import mul
from string import ascii_letters

from loopwright import te
from loopwright.ir import Expr, as_expr, is_one
from loopwright.runtime.errors import LoopwrightError
from loopwright.te.tags import default_tag
from loopwright.te.tensor import shape_text
from loopwright.topi.parts.sizes import known, one_size
from loopwright.topi.registry import operator
from loopwright.topi.testing import contraction as meaning


class BadSubscripts(LoopwrightError, ValueError, AssertionError):
    """The subscripts of `einsum` do not describe its operands, or name no result.

    There is one group of letters for each operand, separated by commas, with one letter for each of its dimensions;
    `...` stands for any number of them. A letter has one size everywhere, or 1.

    For example:

        from loopwright import te, topi

        A = te.placeholder((4, 5), name="A")
        topi.einsum("ijk->i", A)
    """

    code = "LW1132"

    def __init__(self, subscripts: str, problem: str, hint: str | None = None) -> None:
        super().__init__(f"einsum {subscripts!r}: {problem}", hint=hint, fields={"subscripts": subscripts})


@dataclass(frozen=True)
class _Term:
    """A tensor, and the label of each of its dimensions."""

    tensor: te.Tensor
    labels: str


@operator(reference=meaning.einsum, samples=meaning.einsum_samples)
def einsum(subscripts: str, *operand: te.Tensor) -> te.Tensor:
    """The sum of products that `subscripts` describe; a dimension of size 1 is repeated."""
    operands = list(operand[0]) if len(operand) == 1 and isinstance(operand[0], (list, tuple)) else list(operand)
    terms, result = _read(subscripts, operands)
    while len(terms) > 2:
        left, right = min(combinations(terms, 2), key=lambda pair: _cost(pair, terms))
        others = [term for term in terms if term is not left and term is not right]
        needed = set(result).union(*[other.labels for other in others])
        kept = "".join([label for label in dict.fromkeys(left.labels + right.labels) if label in needed])
        terms = [*others, _Term(_contracted(subscripts, [left, right], kept), kept)]
    return _contracted(subscripts, terms, result)


def _contracted(subscripts: str, terms: Sequence[_Term], result: str) -> te.Tensor:
    """One stage: the product of `terms`, summed over the labels that `result` lacks."""
    sizes = _sizes(subscripts, terms)
    reduced = {
        label: te.reduce_axis((0, size), name=f"k{number}")
        for number, (label, size) in enumerate((key, size) for key, size in sizes.items() if key not in result)
    }

    def body(*at: Expr) -> Expr:
        index: dict[str, Expr] = {label: axis.var for label, axis in reduced.items()}
        index.update(zip(result, at, strict=True))
        factors: list[Expr] = []
        for term in terms:
            indices = [
                as_expr(0) if is_one(size) and not is_one(sizes[label]) else index[label]
                for label, size in zip(term.labels, term.tensor.shape, strict=True)
            ]
            factors.append(term.tensor(*indices))
        product = reduce(mul, factors)
        return te.sum(product, axis=list(reduced.values())) if reduced else product

    built: te.Tensor = te.compute([sizes[label] for label in result], body, name="T_einsum", tag=default_tag("einsum"))
    return built


def _read(subscripts: str, operands: Sequence[te.Tensor]) -> tuple[list[_Term], str]:
    """The operands with a label for each dimension, and the labels of the result."""
    if not isinstance(subscripts, str):
        raise BadSubscripts(str(subscripts), "the subscripts are no text", 'write them as in "ij,jk->ik"')
    text = "".join(subscripts.split())
    inputs, arrow, output = text.partition("->")
    groups = inputs.split(",")
    if len(groups) != len(operands):
        raise BadSubscripts(subscripts, f"it describes {len(groups)} operands, and {len(operands)} are given")
    spare = [letter for letter in ascii_letters if letter not in text]
    deepest = 0
    for group, tensor in zip(groups, operands, strict=True):
        letters = _letters(subscripts, group)
        if not isinstance(tensor, te.Tensor):
            raise BadSubscripts(subscripts, f"operand {tensor!r} is no tensor")
        extra = tensor.ndim - len(letters)
        if extra < 0 or (extra and "..." not in group):
            raise BadSubscripts(
                subscripts,
                f"{group!r} names {len(letters)} dimensions, and {tensor.name} has shape {shape_text(tensor.shape)}",
                "name every dimension, or write ... for those that come along",
            )
        deepest = max(deepest, extra if "..." in group else 0)
    if deepest > len(spare):
        raise BadSubscripts(subscripts, f"there are no letters left for the {deepest} dimensions of ...")
    along = "".join(spare[:deepest])  # the dimensions of ..., matched from the right
    labelled = []
    for group, tensor in zip(groups, operands, strict=True):
        extra = tensor.ndim - len(_letters(subscripts, group))
        labelled.append(_Term(tensor, group.replace("...", along[deepest - extra :] if extra else "")))
    everywhere = "".join(term.labels for term in labelled)
    if arrow:
        letters = _letters(subscripts, output)
        missing = sorted(set(letters) - set(everywhere))
        if missing or len(set(letters)) != len(letters):
            raise BadSubscripts(subscripts, f"the result {output!r} has a letter twice, or one that no operand has")
        return labelled, output.replace("...", along)
    once = sorted(label for label in set(everywhere) - set(along) if everywhere.count(label) == 1)
    return labelled, along + "".join(once)


def _letters(subscripts: str, group: str) -> str:
    letters = group.replace("...", "", 1)
    if not all(letter in ascii_letters for letter in letters):
        raise BadSubscripts(subscripts, f"{group!r} is not made of letters and one ...")
    return letters


def _sizes(subscripts: str, terms: Sequence[_Term]) -> dict[str, Expr]:
    """The size of each label, in the order in which they appear."""
    sizes: dict[str, Expr] = {}
    for term in terms:
        for label, size in zip(term.labels, term.tensor.shape, strict=True):
            other = sizes.get(label)
            if other is None or is_one(other):
                sizes[label] = size
            elif not is_one(size) and not one_size(other, size):
                raise BadSubscripts(
                    subscripts, f"{label!r} has size {known(other)}, and {known(size)} in {term.tensor.name}"
                )
    return sizes


def _cost(pair: Sequence[_Term], terms: Sequence[_Term]) -> int:
    """How many products a pair takes, and would leave behind; an unknown size counts as 64."""
    cost = 1
    for label in set(pair[0].labels + pair[1].labels):
        result = [
            known(size)
            for term in terms
            for name, size in zip(term.labels, term.tensor.shape, strict=True)
            if name == label
        ]
        cost *= max(64 if size is None else size for size in result)
    return cost
