"""Shapes of mma.sync: which types of elements it takes in which shapes, and since which architecture.

    shape_of("m16n8k16", "fp16", "fp16", "fp32")        the instruction, and what a lane has of each operand

Operands are those of PTX, section "Warp-level matrix instructions": a lane has 1/32 of each matrix.
"""

from __future__ import annotations

from typing import Final, NamedTuple

# Names of types of elements, as scripts have them, and as PTX has them.
_NAMES: Final = {
    "fp16": "f16",
    "float16": "f16",
    "bf16": "bf16",
    "bfloat16": "bf16",
    "tf32": "tf32",
    "fp32": "f32",
    "float32": "f32",
    "fp64": "f64",
    "float64": "f64",
    "int8": "s8",
    "uint8": "u8",
    "int32": "s32",
    "e4m3": "e4m3",
    "float8_e4m3": "e4m3",
    "e4m3_float8": "e4m3",
    "e5m2": "e5m2",
    "float8_e5m2": "e5m2",
    "e5m2_float8": "e5m2",
}
_BYTES: Final = {"f16": 2, "bf16": 2, "tf32": 4, "f32": 4, "f64": 8, "s8": 1, "u8": 1, "s32": 4, "e4m3": 1, "e5m2": 1}
_HALVES, _BYTES_OF_8, _FLOAT8 = ("f16",), ("s8", "u8"), ("e4m3", "e5m2")

# By shape: types of A and B, types of the accumulators, and the first architecture. Where several types of A and B are
# listed, integers and float8 may be mixed.
_SHAPES: Final[dict[str, list[tuple[tuple[str, ...], tuple[str, ...], int]]]] = {
    "m8n8k4": [(_HALVES, ("f16", "f32"), 70), (("f64",), ("f64",), 80)],
    "m8n8k16": [(_BYTES_OF_8, ("s32",), 75)],
    "m16n8k4": [(("tf32",), ("f32",), 80)],
    "m16n8k8": [(_HALVES, ("f16", "f32"), 75), (("bf16",), ("f32",), 80), (("tf32",), ("f32",), 80)],
    "m16n8k16": [(_HALVES, ("f16", "f32"), 80), (("bf16",), ("f32",), 80), (_BYTES_OF_8, ("s32",), 80)],
    "m16n8k32": [(_BYTES_OF_8, ("s32",), 80), (_FLOAT8, ("f32",), 89)],
}


class Shape(NamedTuple):
    """An instruction: its sizes, the types of A, B and the accumulators, and the first architecture that has it."""

    name: str
    m: int
    k: int
    a: str
    b: str
    c: str
    architecture: int

    @property
    def is_of_quads(self) -> bool:
        """Whether it is four products, of eight lanes each."""
        return self.name == "m8n8k4" and self.a == "f16"

    @property
    def elements(self) -> tuple[int, int, int]:
        """The elements of A, of B and of the accumulators that a lane has."""
        return (4, 4, 8) if self.is_of_quads else (self.m * self.k // 32, self.k * 8 // 32, self.m * 8 // 32)

    def words(self, operand: int) -> int:
        """The registers of an operand: 0 is A, 1 is B, 2 the accumulators."""
        size = _BYTES[(self.a, self.b, self.c)[operand]]
        return self.elements[operand] * size // max(size, 4)


class NoSuchShape(ValueError):
    """No GPU has the instruction; says what there is."""


def ptx_type(name: str) -> str:
    """The type of elements as PTX calls it."""
    result = _NAMES.get(name, name)
    if result not in _BYTES:
        raise NoSuchShape(f"{name} is no type of elements; there are {', '.join(sorted(set(_BYTES)))}")
    return result


def shape_of(name: str, a: str, b: str, c: str) -> Shape:
    """The instruction of that shape for these types; raises NoSuchShape."""
    if name not in _SHAPES:
        raise NoSuchShape(f"there is no shape {name}; there are {', '.join(_SHAPES)}")
    types = ptx_type(a), ptx_type(b), ptx_type(c)
    for operands, results, architecture in _SHAPES[name]:
        if types[0] in operands and types[1] in operands and types[2] in results:
            m, k = int(name[1 : name.index("n")]), int(name[name.index("k") + 1 :])
            return Shape(name, m, k, *types, architecture)
    known = [f"{'/'.join(operands)} with {'/'.join(results)}" for operands, results, _ in _SHAPES[name]]
    raise NoSuchShape(f"{name} takes {', '.join(known)}; got {types[0]}, {types[1]} with {types[2]}")


def bytes_of(ptx: str) -> int:
    """The size of an element of a type that PTX knows."""
    return _BYTES[ptx]
