"""Images of kernels: machine code and PTX, and the table of them that compiled code refers to.

    Image.of(cubin, "sm_90a"), Image.of(ptx, "compute_80")
    EmbeddedImages(images).address          for code that is linked into this process
    read_images(library, "lw_images_…")     those of a library that was loaded
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Final, NamedTuple

from loopwright.runtime.nvidia.driver import driver

_PTX, _EXACT = 1, 2  # of `flags`, as in native/cuda.h
TABLE_PREFIX: Final = "lw_images_"  # of the symbol of a table


class Image(NamedTuple):
    """What was compiled for one architecture."""

    content: bytes
    arch: int  # 90 for sm_90
    is_ptx: bool = False
    is_exact: bool = False  # sm_90a: for that device alone

    @staticmethod
    def of(content: bytes, arch: str, is_ptx: bool = False) -> Image:
        """An image for an architecture such as "sm_90a"; "compute_90" is PTX."""
        kind, _, number = arch.partition("_")
        return Image(content, int(number.rstrip("af")), is_ptx or kind == "compute", number.endswith("a"))

    @property
    def flags(self) -> int:
        """How it is marked in a table."""
        return self.is_ptx * _PTX | self.is_exact * _EXACT

    @property
    def architecture(self) -> str:
        """ "sm_90a", or "compute_90" for PTX."""
        return f"{'compute' if self.is_ptx else 'sm'}_{self.arch}{'a' * self.is_exact}"


class PackedImage(ctypes.Structure):
    """`Image` of native/cuda.h."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("bytes", ctypes.c_int64),
        ("arch", ctypes.c_int32),
        ("flags", ctypes.c_int32),
    ]


class _Table(ctypes.Structure):
    """`EmbeddedImages` of native/cuda.h."""

    _fields_ = [
        ("images", ctypes.c_void_p),
        ("count", ctypes.c_int64),
        ("module", ctypes.c_void_p),
        ("driver", ctypes.c_void_p),
    ]


def pack(images: Sequence[Image]) -> ctypes.Array[PackedImage]:
    """The images as C has them; `images` has to live as long."""
    packed = (PackedImage * len(images))()
    for to, image in zip(packed, images):
        data = ctypes.cast(ctypes.c_char_p(image.content), ctypes.c_void_p)
        to.data, to.bytes, to.arch, to.flags = data, len(image.content), image.arch, image.flags
    return packed


class EmbeddedImages:
    """A table of images for code of this process; what was loaded of them goes when this does."""

    def __init__(self, images: Sequence[Image]) -> None:
        self._images, self._packed = list(images), pack(images)
        self._table = _Table(ctypes.addressof(self._packed), len(images), None, None)
        self._driver = driver()

    @property
    def address(self) -> int:
        """Of the table."""
        return ctypes.addressof(self._table)

    def __del__(self) -> None:
        if hasattr(self, "_driver"):
            self._driver.release_images(self.address)


def read_images(library: ctypes.CDLL, symbol: str) -> list[Image]:
    """The images that a loaded library holds; an AttributeError where it has no such table."""
    table = _Table.in_dll(library, symbol)
    packed = (PackedImage * table.count).from_address(table.images)
    return [
        Image(ctypes.string_at(one.data, one.bytes), one.arch, bool(one.flags & _PTX), bool(one.flags & _EXACT))
        for one in packed
    ]
