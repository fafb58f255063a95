"""What products of matrices and tensors mean, in numpy, and the samples they are tried on."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from loopwright.topi.registry import Bound, Sample
from loopwright.topi.types import Arguments, Ints


def matmul(a: np.ndarray, b: np.ndarray, transp_a: bool = False, transp_b: bool = False) -> np.ndarray:
    result: np.ndarray = (a.T if transp_a else a) @ (b.T if transp_b else b)
    return result


def tensordot(a: np.ndarray, b: np.ndarray, axes: int | tuple[Ints, Ints] = 2) -> np.ndarray:
    return np.tensordot(a, b, axes)


def einsum(subscripts: str, *operands: np.ndarray) -> np.ndarray:
    # numpy's own has no sums of bfloat16.
    wide = [operand.astype(np.float32) if operand.dtype.kind == "V" else operand for operand in operands]
    return np.asarray(np.einsum(subscripts, *wide))


def contracted(reference: Callable[..., np.ndarray], terms: int, dtype: str = "float32") -> Bound:
    """`terms` products are added up: (terms + factors)·eps of the sum of their magnitudes, whatever the order."""
    eps = float(np.finfo(dtype).eps)

    def bound(args: Arguments, exact: np.ndarray) -> np.ndarray | float:
        magnitudes = [np.abs(arg) if isinstance(arg, np.ndarray) else arg for arg in args]
        return (terms + len(args)) * eps * reference(*magnitudes)

    return bound


def values(*shape: int, dtype: str = "float32") -> np.ndarray:
    """Numbers that are neither whole nor alike."""
    random = np.random.default_rng(sum(shape) + len(shape))
    if dtype.startswith("float"):
        return random.uniform(-1, 1, shape).astype(dtype)
    return random.integers(-9, 9, shape).astype(dtype)


def matmul_samples() -> Iterable[Sample]:
    for transp_a in (False, True):
        for transp_b in (False, True):
            a, b = values(*((7, 5) if transp_a else (5, 7))), values(*((3, 7) if transp_b else (7, 3)))
            yield Sample((a, b, transp_a, transp_b), bound=contracted(matmul, 7))
    yield Sample((values(4, 3, dtype="float64"), values(3, 2, dtype="float64")), bound=contracted(matmul, 3, "float64"))
    yield Sample((values(4, 3, dtype="int32"), values(3, 2, dtype="int32")))
    yield Sample((values(1, 0), values(0, 2)))
    yield Sample((values(0, 3), values(3, 2)))
    yield Sample((values(4, 3, dtype="float16"), values(3, 2, dtype="float16")), bound=contracted(matmul, 3, "float16"))


def tensordot_samples() -> Iterable[Sample]:
    def sample(terms: int, a: np.ndarray, b: np.ndarray, axes: int | tuple[Ints, Ints]) -> Sample:
        return Sample((a, b, axes), bound=contracted(tensordot, terms))

    yield sample(20, values(3, 4, 5), values(4, 5, 2), 2)
    yield sample(5, values(3, 4, 5), values(5, 2), 1)
    yield sample(1, values(3), values(2), 0)
    yield sample(3, values(3, 4), values(4, 3), (0, 1))
    yield sample(12, values(3, 4, 5), values(4, 2, 3), ((1, 0), (0, -1)))
    yield sample(12, values(3, 4), values(3, 4), 2)
    yield Sample((values(3, 2, dtype="int64"), values(2, dtype="int64"), 1))


def einsum_samples() -> Iterable[Sample]:
    def sample(terms: int, subscripts: str, *operands: np.ndarray) -> Sample:
        return Sample((subscripts, *operands), bound=contracted(einsum, terms))

    yield sample(4, "ij,jk->ik", values(3, 4), values(4, 5))
    yield sample(4, " i j , k j ", values(3, 4), values(5, 4))
    yield sample(1, "ba", values(3, 4))
    yield sample(3, "ii", values(3, 3))
    yield sample(1, "ii->i", values(3, 3))
    yield sample(12, "ij->", values(3, 4))
    yield sample(4, "...ij,...jk->...ik", values(2, 3, 4), values(1, 4, 5))
    yield sample(4, "...ij,jk", values(2, 2, 3, 4), values(4, 5))
    yield sample(1, "...ij->ji...", values(2, 3, 4))
    yield sample(1, "i,j->ij", values(3), values(2))
    yield sample(4, "ij,ij->i", values(3, 4), values(3, 1))
    yield sample(60, "ij,jk,kl->il", values(2, 3), values(3, 4), values(4, 5))
    yield sample(24, "a,ab,abc->abc", values(2), values(2, 3), values(2, 3, 4))
    yield sample(2, "bqhd,bkhd->bhqk", values(1, 3, 2, 2), values(1, 5, 2, 2))
    yield Sample(("ij,jk", values(3, 2, dtype="int32"), values(2, 4, dtype="int32")))
