"""TensorIntrin: a computation that a machine has an instruction for, declared twice.

    desc    what it computes, as loops over one block: what programs are matched with, and what it means
    impl    how the machine does it, on the same parameters

    TensorIntrin.register("dot_16x4_vnni", desc, impl)
    sch.tensorize(loop, "dot_16x4_vnni")

That both compute the same is the word of whoever registers them; `check_intrinsic` tries it on numbers.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, overload

from loopwright.ir import BlockRealize, Buffer, PrimFunc, structural_equal
from loopwright.runtime.errors import LoopwrightError
from loopwright.transform.tensor_intrinsics.nest import Nest, NotANest, check_pattern, nest_of


class UnknownIntrinsic(LoopwrightError, ValueError):
    """No tensor intrinsic is registered under that name.

    Those of the machines we know are there from the start; your own have to be registered in this process with
    `tir.TensorIntrin.register(name, desc, impl)` before a schedule or a build uses them.

    For example:

        from loopwright import tir
        tir.TensorIntrin.get("no_such_instruction")
    """

    code = "LW0780"

    def __init__(self, name: str, known: list[str]) -> None:
        super().__init__(
            f"there is no tensor intrinsic {name!r}",
            hint=f"known are {', '.join(sorted(known))}",
            fields={"name": name, "known": sorted(known)},
        )


class IntrinsicExists(LoopwrightError, ValueError):
    """A tensor intrinsic of that name is registered already.

    Programs that are tensorized name it; another meaning under the same name would change them. Choose another name, or
    say `override=True`.

    For example:

        from loopwright import tir
        known = tir.TensorIntrin.get("dot_16x4_vnni")
        tir.TensorIntrin.register("dot_16x4_vnni", known.desc, known.impl)
    """

    code = "LW0781"

    def __init__(self, name: str) -> None:
        super().__init__(f"tensor intrinsic {name!r} exists already", hint="choose another name, or give override=True")


class BadIntrinsic(LoopwrightError, ValueError):
    """The two functions of a tensor intrinsic do not fit together, or the description has a shape that cannot be
    matched.

    Both take the same buffers, and the body of each is one block without axes. The description is a nest of loops with
    constant extents over one block of stores; every element of each parameter takes part, and what is stored is either
    a new value of its own for each iteration, or an update of the cell itself.

    For example:

        from loopwright import tir
        from loopwright.script import tir as T

        @T.prim_func
        def desc(A: T.Buffer(4), B: T.Buffer(4)):
            with T.block("root"):
                for i in range(4):
                    with T.block("B"):
                        vi = T.axis.spatial(4, i)
                        B[vi] = A[vi]

        @T.prim_func
        def impl(A: T.Buffer(8), B: T.Buffer(8)):
            with T.block("root"):
                for i in range(8):
                    B[i] = A[i]

        tir.TensorIntrin.register("lw0782_example", desc, impl)
    """

    code = "LW0782"

    def __init__(self, name: str, problem: str, at: object = None, hint: str | None = None) -> None:
        super().__init__(f"tensor intrinsic {name!r}: {problem}", at=at, hint=hint, fields={"name": name})


# Square tiles that fit in registers, of rows that lie in the last but one dimension of a buffer or further out:
# {name: (rows, dimensions between, type)}.
TRANSPOSES: Final = {
    f"transpose_{size}{'x1' * between}x{size}{'x1' * after}_{dtype}": (size, between, after, dtype)
    for sizes, dtypes in (
        ((8, 16), ("int8", "uint8", "int16", "uint16", "float16", "bfloat16")),
        ((4, 8, 16), ("int32", "uint32", "float32")),
        ((2, 4, 8), ("int64", "uint64", "float64")),
    )
    for between in range(3)
    for after in range(3)
    for size in sizes
    for dtype in dtypes
}

# Where the intrinsics of the machines we know are declared; read when one of them is first asked for.
_BUILT_IN: Final = {
    "dot_16x4_vnni": "x86_vnni",
    "dot_16x4_avx512": "x86_vnni",
    "amx_dot_16x16x64_u8s8s32": "x86_amx",
    "amx_dot_16x16x64_s8s8s32": "x86_amx",
    "amx_dot_16x16x32_bf16bf16f32": "x86_amx",
    "dot_4x4_i8i8s32_sdot": "neon",
    "dot_4x4_u8u8s32_udot": "neon",
    "dot_4x4_i8i8s32_neon": "neon",
    "dot_4x4_u8u8u32_udot": "neon",
    "dot_4x4_u8u8i32_hdot": "neon",
    "fma_8_f16_neon": "neon",
    "dp4a": "cuda_dp4a",
    "interleave_4x16_int8": "interleave",
    "interleave_4x4_int8": "interleave",
    "interleave_2x16_bfloat16": "interleave",
    **dict.fromkeys(TRANSPOSES, "transpose"),
}

# Families with a member for every size: how their names begin, and the file that declares the one a name means.
_FAMILIES: Final = {
    "amx_dot_": "x86_amx",
    "amx_window_": "x86_amx_window",
    "dot_block_": "dot_block",
    "interleave_": "interleave",
    "wmma_": "cuda_wmma",
    "mma_": "cuda_mma",
}


@dataclass(frozen=True, eq=False)
class TensorIntrin:
    """A computation (`desc`) and how a machine does it (`impl`), on the same parameters."""

    name: str
    desc: PrimFunc
    impl: PrimFunc
    pattern: Nest

    known: ClassVar[dict[str, TensorIntrin]] = {}

    @staticmethod
    def register(name: str, desc: PrimFunc, impl: PrimFunc, override: bool = False) -> TensorIntrin:
        """Declare an intrinsic under `name`."""
        if not isinstance(name, str) or not name:
            raise BadIntrinsic(str(name), "the name must be a text that is not empty")
        for what, function in (("desc", desc), ("impl", impl)):
            if not isinstance(function, PrimFunc):
                raise BadIntrinsic(name, f"{what} must be a PrimFunc, got {type(function).__name__}")
        used = name in TensorIntrin.known or (name in _BUILT_IN and not _is_loading(name))
        if used and not override:
            raise IntrinsicExists(name)
        parameters = _parameters(name, "desc", desc)
        _check_same(name, parameters, _parameters(name, "impl", impl))
        pattern = _pattern(name, desc, parameters)
        result = TensorIntrin.known[name] = TensorIntrin(name, desc, impl, pattern)
        return result

    @staticmethod
    def described(desc: PrimFunc) -> TensorIntrin:
        """What `desc` describes, under no name: to ask whether programs hold it."""
        pattern = _pattern("desc", desc, _parameters("desc", "desc", desc))
        return TensorIntrin("desc", desc, desc, pattern)

    @overload
    @staticmethod
    def get(name: str, allow_missing: Literal[False] = False) -> TensorIntrin: ...
    @overload
    @staticmethod
    def get(name: str, allow_missing: bool) -> TensorIntrin | None: ...
    @staticmethod
    def get(name: str, allow_missing: bool = False) -> TensorIntrin | None:
        """The intrinsic of that name; of an unknown one None with `allow_missing`, else an error."""
        if name not in TensorIntrin.known and name in _BUILT_IN and not _is_loading(name):
            load_built_in(_BUILT_IN[name], name)
        if name not in TensorIntrin.known:
            _load_member(name)
        result = TensorIntrin.known.get(name)
        if result is None and not allow_missing:
            raise UnknownIntrinsic(name, list({**TensorIntrin.known, **_BUILT_IN}))
        return result

    @property
    def parameters(self) -> list[Buffer]:
        """The buffers of the description, in order."""
        return [self.desc.buffer_map[param] for param in self.desc.params]


_loading: Final[set[str]] = set()


def _is_loading(name: str) -> bool:
    return _BUILT_IN[name] in _loading


def load_built_in(file: str, name: str = "") -> None:
    """Read the file that declares intrinsics of a machine; one that has very many declares the one asked for."""
    module = importlib.import_module(f"loopwright.transform.tensor_intrinsics.{file}")
    with declaring(file):
        if name in TRANSPOSES:
            module.register(name)
        else:
            module.register()


@contextmanager
def declaring(file: str) -> Iterator[None]:
    """While the intrinsics of `file` are declared, their names are not taken: they are what they are kept for."""
    outer = file in _loading
    _loading.add(file)
    try:
        yield
    finally:
        if not outer:
            _loading.discard(file)


def _load_member(name: str) -> None:
    """Declare the intrinsic of a family that `name` means, if it means one."""
    file = next((file for prefix, file in _FAMILIES.items() if name.startswith(prefix)), None)
    if file is not None:
        importlib.import_module(f"loopwright.transform.tensor_intrinsics.{file}").register_named(name)


def built_in_names() -> list[str]:
    """The intrinsics of the machines we know."""
    return list(_BUILT_IN)


def _parameters(name: str, what: str, function: PrimFunc) -> list[Buffer]:
    missing = [param.name for param in function.params if param not in function.buffer_map]
    if missing or not function.params:
        message = f"parameter {missing[0]} of {what} is no buffer" if missing else f"{what} has no parameters"
        raise BadIntrinsic(name, message)
    body = function.body
    if not isinstance(body, BlockRealize) or body.block.iter_vars:
        raise BadIntrinsic(name, f"the body of {what} is not one block without axes", body)
    return [function.buffer_map[param] for param in function.params]


def _pattern(name: str, desc: PrimFunc, parameters: list[Buffer]) -> Nest:
    """The description as a nest that programs can be matched with."""
    try:
        pattern = nest_of(desc.body)
        check_pattern(pattern, parameters)
    except NotANest as problem:
        raise BadIntrinsic(name, f"the description {problem}", problem.at or desc.body) from None
    return pattern


def _check_same(name: str, desc: list[Buffer], impl: list[Buffer]) -> None:
    if len(desc) != len(impl):
        raise BadIntrinsic(name, f"desc has {len(desc)} parameters, impl has {len(impl)}")
    for mine, other in zip(desc, impl, strict=True):
        if mine.dtype is not other.dtype:
            raise BadIntrinsic(name, f"{mine.name} is {mine.dtype} in desc, {other.name} is {other.dtype} in impl")
        if not structural_equal(mine.shape, other.shape):
            shapes = [f"({', '.join([str(size) for size in buffer.shape])})" for buffer in (mine, other)]
            problem = f"{mine.name} has shape {shapes[0]} in desc, {other.name} has shape {shapes[1]} in impl"
            raise BadIntrinsic(name, problem)
