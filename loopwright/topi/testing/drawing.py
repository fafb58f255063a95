"""What drawing random numbers means, in numpy, and the samples it is tried on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

import numpy as np

from loopwright.topi.registry import Bound, Sample

# Threefry-4x64: by how many bits the two pairs of a round are turned, and the word that closes the key.
ROTATIONS: Final = ((14, 16), (52, 57), (23, 40), (5, 37), (25, 33), (46, 12), (58, 22), (32, 32))
PARITY: Final = 0x1BD11BDAA9FC1A22
_MASK: Final = 2**64 - 1


def cipher(key: Sequence[int], counter: Sequence[int]) -> list[int]:
    """The four words that `counter` becomes under `key`."""
    keys = [*key, PARITY ^ key[0] ^ key[1] ^ key[2] ^ key[3]]
    x = [(word + keys[k]) & _MASK for k, word in enumerate(counter)]
    for turn in range(20):
        for number, (a, b) in enumerate(((0, 1), (2, 3)) if turn % 2 == 0 else ((0, 3), (2, 1))):
            bits = ROTATIONS[turn % 8][number]
            x[a] = (x[a] + x[b]) & _MASK
            x[b] = (((x[b] << bits) | (x[b] >> (64 - bits))) & _MASK) ^ x[a]
        if turn % 4 == 3:
            number = turn // 4 + 1
            x = [(x[k] + keys[(number + k) % 5] + (number if k == 3 else 0)) & _MASK for k in range(4)]
    return x


def threefry_generate(gen: np.ndarray, out_shape: Sequence[int]) -> list[np.ndarray]:
    state = [int(word) for word in gen]
    count = int(np.prod(out_shape, dtype=int))
    blocks = -(-count // 4)
    words = [word for n in range(blocks) for word in cipher(state[:4], [(state[4] + n) & _MASK, 0, 0, 0])]
    state[4] = (state[4] + blocks) & _MASK
    return [np.array(state, "uint64"), np.array(words[:count], "uint64").reshape(out_shape)]


def threefry_split(gen: np.ndarray) -> list[np.ndarray]:
    state = [int(word) for word in gen]
    return [np.array([*cipher(state[:4], [state[4], number, 0, 0]), *[0] * 6], "uint64") for number in (1, 2)]


def _unit(bits: np.ndarray, dtype: str) -> np.ndarray:
    digits = 24 if dtype == "float32" else 53
    result: np.ndarray = (bits >> np.uint64(64 - digits)).astype("float64") * 2.0**-digits
    return result


def _value(value: np.ndarray | float) -> float:
    return float(np.asarray(value).reshape(-1)[0])


def uniform(
    gen: np.ndarray, low: np.ndarray | float, high: np.ndarray | float, out_shape: Sequence[int], out_dtype: str
) -> list[np.ndarray]:
    state, bits = threefry_generate(gen, out_shape)
    return [state, _value(low) + _unit(bits, out_dtype) * (_value(high) - _value(low))]


def normal(
    gen: np.ndarray, mean: np.ndarray, scale: np.ndarray, out_shape: Sequence[int], out_dtype: str
) -> list[np.ndarray]:
    state, bits = threefry_generate(gen, [2, *out_shape])
    first, second = _unit(bits[0], out_dtype), _unit(bits[1], out_dtype)
    radius = np.sqrt(-2 * np.log1p(-first))
    return [state, radius * np.cos(2 * np.pi * second) * _value(scale) + _value(mean)]


def multinomial(gen: np.ndarray, probs: np.ndarray, num_samples: int) -> list[np.ndarray]:
    state, bits = threefry_generate(gen, [*probs.shape[:-1], num_samples])
    sums = np.cumsum(probs, -1)
    drawn = _unit(bits, "float32") * sums[..., -1:]
    return [state, (drawn[..., None] >= sums[..., None, :]).sum(-1)]


def _state(seed: int, counter: int = 0) -> np.ndarray:
    state = np.zeros(10, "uint64")
    state[0], state[4] = seed, counter
    return state


def threefry_generate_samples() -> Iterable[Sample]:
    yield Sample((_state(0), (4,)))
    yield Sample((_state(7, 2**64 - 1), (3, 5)))
    yield Sample((_state(2**63 + 1, 5), (2, 1, 3)))
    yield Sample((_state(1), (0, 3)))


def threefry_split_samples() -> Iterable[Sample]:
    yield Sample((_state(0),))
    yield Sample((_state(9, 77),))


def uniform_samples() -> Iterable[Sample]:
    # Numbers between the two ends, from a product and two sums.
    def bound(dtype: str) -> Bound:
        return lambda args, exact: 3 * float(np.finfo(dtype).eps) * (abs(_value(args[1])) + abs(_value(args[2])))

    yield Sample((_state(3), -2.0, 5.0, (3, 7), "float32"), bound=bound("float32"))
    low, high = np.array(1.0, "float64"), np.array([4.0], "float64")
    yield Sample((_state(4), low, high, (5,), "float64"), bound=bound("float64"))
    yield Sample((_state(4), 0.0, 1.0, (0,), "float32"))


def normal_samples() -> Iterable[Sample]:
    # The radius is below 8.6 (24 digits: 5.8, 53 digits: 8.6). An angle is off by 2π·eps, its cosine by as much and 2
    # eps, the root of a logarithm by 3 eps, two products by 2.
    def bound(dtype: str) -> Bound:
        eps = float(np.finfo(dtype).eps)
        return lambda args, exact: eps * (8.6 * (2 * np.pi + 2 + 3 + 2) * abs(_value(args[2])) + np.abs(exact))

    yield Sample((_state(5), 0.0, 1.0, (4, 9), "float32"), bound=bound("float32"))
    yield Sample((_state(6), 3.0, 0.5, (7,), "float64"), bound=bound("float64"))


def multinomial_samples() -> Iterable[Sample]:
    yield Sample((_state(8), np.array([0.5, 0.0, 1.5, 2.0], "float32"), 20))
    yield Sample((_state(8), np.array([[0.25, 0.75], [1.0, 0.0]], "float32"), 9))
