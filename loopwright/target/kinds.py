"""The target kinds and the options each of them takes.

A kind that stands here can be written, compared and exported; whether this version can *build* for it is
`availability.py`'s question.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import ClassVar, Final

from loopwright.target.architectures import architecture_with_cpu, usual_triple
from loopwright.target.errors import UnknownTargetKind

BUILDABLE: Final = ("llvm", "c", "cuda")  # those that this version generates code for

# How a value is written: `str`, `int`, `bool`, or `list` (of texts, comma-separated in a target's text form).
ValueType = type[str] | type[int] | type[bool] | type[list]

_COMMON: Final[dict[str, ValueType]] = {
    "keys": list,
    "host": str,
    "device": str,
    "model": str,
    "libs": list,
    "tag": str,
}
_CPU: Final[dict[str, ValueType]] = {"mcpu": str, "mtriple": str, "num-cores": int, "mattr": list}
_LLVM: Final[dict[str, ValueType]] = {
    **_CPU,
    "mabi": str,
    "mfloat-abi": str,  # 32-bit Arm: soft, softfp or hard
    "vector-width": int,  # the widest vectors to use, in bits, when narrower than the machine's
    "opt-level": int,
}
_GPU: Final[dict[str, ValueType]] = {
    "max_num_threads": int,
    "max_block_size_x": int,
    "max_block_size_y": int,
    "max_function_args": int,
    "thread_warp_size": int,
    "max_shared_memory_per_block": int,
    "max_threads_per_block": int,
    "registers_per_block": int,
    "l2_cache_size_bytes": int,
    "from_device": int,  # the number of a device whose properties are meant
}
_VULKAN: Final[dict[str, ValueType]] = {
    **dict.fromkeys(
        [
            *(f"supports_{kind}" for kind in "float16 float32 float64 int8 int16 int32 int64".split()),
            *(f"supports_{size}bit_buffer" for size in (8, 16)),
            "supports_storage_buffer_storage_class",
            "supports_push_descriptor",
            "supports_dedicated_allocation",
            "supports_integer_dot_product",
            "supports_cooperative_matrix",
        ],
        bool,
    ),
    **dict.fromkeys(
        [
            *("supported_subgroup_operations", "max_block_size_z", "max_push_constants_size"),
            *("max_uniform_buffer_range", "max_storage_buffer_range", "max_per_stage_descriptor_storage_buffer"),
            *("driver_version", "vulkan_api_version", "max_spirv_version"),
        ],
        int,
    ),
    **dict.fromkeys(["device_type", "device_name", "driver_name"], str),
}


class TargetKind(str):
    """A kind *is* its name (`target.kind == "llvm"`), and knows its options and defaults."""

    _known: ClassVar[dict[str, TargetKind]] = {}

    default_keys: tuple[str, ...]
    device_type: int  # DLPack's code
    attributes: Mapping[str, ValueType]
    defaults: Mapping[str, object]

    def __new__(cls, name: str) -> TargetKind:
        result = cls._known.get(name)
        if result is None:
            raise unknown_kind(name)
        return result

    @property
    def name(self) -> str:
        """The kind's name as plain text."""
        return str(self)

    def __str__(self) -> str:
        return str.__str__(self)

    def __reduce__(self) -> tuple[type[TargetKind], tuple[str]]:
        return TargetKind, (str.__str__(self),)


def _define(
    name: str,
    keys: tuple[str, ...],
    device_type: int,
    attributes: Mapping[str, ValueType],
    defaults: Mapping[str, object] | None = None,
) -> None:
    kind = str.__new__(TargetKind, name)
    kind.default_keys, kind.device_type = keys, device_type
    kind.attributes = MappingProxyType({**_COMMON, **attributes})
    kind.defaults = MappingProxyType(dict(defaults or {}))
    TargetKind._known[name] = kind


_define("llvm", ("cpu",), 1, _LLVM)
_define("c", ("cpu",), 1, {**_CPU, "march": str, "constants-byte-alignment": int, "workspace-byte-alignment": int})
_define("cuda", ("cuda", "gpu"), 2, {**_GPU, "arch": str}, {"thread_warp_size": 32, "max_num_threads": 1024})
_define(
    "nvptx",
    ("cuda", "gpu"),
    2,
    {**_GPU, "mcpu": str, "mtriple": str},
    {"thread_warp_size": 32, "max_num_threads": 1024},
)
_define(
    "rocm",
    ("rocm", "gpu"),
    10,
    {**_GPU, "mcpu": str, "mtriple": str, "mattr": list},
    {"thread_warp_size": 64, "max_num_threads": 256},
)
_define(
    "opencl",
    ("opencl", "gpu"),
    4,
    {**_GPU, "texture_spatial_limit": int},
    {"thread_warp_size": 1, "max_num_threads": 256},
)
_define("metal", ("metal", "gpu"), 8, _GPU, {"thread_warp_size": 16, "max_num_threads": 256, "max_function_args": 31})
_define(
    "vulkan",
    ("vulkan", "gpu"),
    7,
    {**_GPU, **_VULKAN},
    {"thread_warp_size": 1, "max_num_threads": 256},
)
_define("webgpu", ("webgpu", "gpu"), 15, _GPU, {"max_num_threads": 256})
_define("hexagon", ("hexagon", "cpu"), 16, {**_LLVM, "vtcm-capacity": int})
_define("stackvm", ("cpu",), 1, {})
_define("ext_dev", (), 12, {})
_define("hybrid", ("cpu",), 1, {})
_define("composite", (), 1, {"devices": list})
_define("sdaccel", ("sdaccel", "hls"), 4, {})
_define("aocl", ("aocl", "hls"), 5, {})
_define("aocl_sw_emu", ("aocl", "hls"), 5, {})
_define("test", ("cpu",), 1, {"my_bool": bool, "your_names": list})


def unknown_kind(name: str, tags: Iterable[str] = ()) -> UnknownTargetKind:
    """The error for a word that is no kind, with what was probably meant: a kind, a machine's architecture, its CPU."""
    triple, cpu = usual_triple(name), architecture_with_cpu(name)
    if triple is not None:
        return UnknownTargetKind(name, (), f"llvm -mtriple={triple}")
    if cpu is not None:
        return UnknownTargetKind(name, (), f"llvm -mtriple={cpu[1]} -mcpu={name}")
    if name.lower() in ("cpu", "host", "native"):
        return UnknownTargetKind(name, (), "llvm")
    # A kind that cannot be built helps only those who clearly mean it.
    misspelt = difflib.get_close_matches(name, [*TargetKind._known, *tags], n=4, cutoff=0.75)
    return UnknownTargetKind(name, misspelt or BUILDABLE)


def list_kinds() -> list[str]:
    """The names of all target kinds."""
    return sorted(str(kind) for kind in TargetKind._known)
