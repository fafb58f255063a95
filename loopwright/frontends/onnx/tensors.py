"""Tensors stored in a model, as numpy arrays: inside the file, in a file beside it, or as a few elements of many.

Nothing is allocated before the shape, the element type and the number of bytes are found to agree: a file of a hundred
bytes may say that it holds a terabyte.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, SupportsInt

import numpy as np

from loopwright.frontends.onnx.element_types import ElementType, of_proto
from loopwright.frontends.onnx.errors import AbsurdSize, BadTensor, DataOutsideFolder

if TYPE_CHECKING:
    from onnx import SparseTensorProto, TensorProto

LARGEST: Final = 1 << 47  # bytes of one tensor: the address space of a process
LARGEST_DENSE: Final = 1 << 34  # bytes that a tensor stored by few elements may become


def element_count(name: str, dims: Iterable[SupportsInt], bits: int = 8) -> int:
    """The number of elements of a tensor of that shape, if there can be such a tensor."""
    sizes = [int(size) for size in dims]
    if any(size < 0 for size in sizes):
        raise AbsurdSize(f"tensor {name!r}", sizes, "a size is negative")
    count = math.prod(sizes)
    if count * bits // 8 > LARGEST:
        raise AbsurdSize(f"tensor {name!r}", sizes, f"it would take {count * bits // 8:,} bytes")
    return count


def to_array(proto: TensorProto, folder: Path | None) -> np.ndarray:
    """The elements of a stored tensor, in numpy's (or ml_dtypes') type for them."""
    kind = of_proto(proto.data_type, f"tensor {proto.name!r}")
    count = element_count(proto.name, proto.dims, kind.bits)
    shape = tuple(proto.dims)
    if proto.data_location == proto.EXTERNAL:
        return _from_bytes(proto.name, _read_external(proto, kind, count, folder), kind, shape)
    if proto.HasField("raw_data"):
        raw = proto.raw_data
        if len(raw) != _bytes(kind, count):
            raise BadTensor(
                proto.name, f"{len(raw)} bytes are stored, and shape {shape} of {kind.name} takes {_bytes(kind, count)}"
            )
        return _from_bytes(proto.name, raw, kind, shape)
    from onnx import numpy_helper

    try:
        array = np.asarray(numpy_helper.to_array(proto))
    except (TypeError, ValueError, OverflowError, IndexError, KeyError) as error:
        raise BadTensor(proto.name, f"its elements do not fill shape {shape} of {kind.name}: {error}") from error
    if array.shape != shape:
        raise BadTensor(proto.name, f"its elements have shape {array.shape}, and not {shape}")
    return array


def _bytes(kind: ElementType, count: int) -> int:
    return -(-count * _stored_bits(kind) // 8)


def _stored_bits(kind: ElementType) -> int:
    """6-bit floats take a byte each; those of 4 and 2 bits share one."""
    return 8 if kind.bits == 6 else kind.bits


def _from_bytes(name: str, raw: bytes, kind: ElementType, shape: tuple[int, ...]) -> np.ndarray:
    if _stored_bits(kind) < 8:
        return _unpacked(np.frombuffer(raw, np.uint8), kind, math.prod(shape)).reshape(shape)
    stored = kind.numpy()
    if stored.itemsize > 1 and np.little_endian is False:
        return np.frombuffer(raw, stored.newbyteorder("<")).astype(stored).reshape(shape)
    return np.frombuffer(raw, stored).reshape(shape)


def _unpacked(packed: np.ndarray, kind: ElementType, count: int) -> np.ndarray:
    """Elements of less than a byte, the first in the lowest bits."""
    shifts = np.arange(0, 8, kind.bits, dtype=np.uint8)
    codes = ((packed[:, None] >> shifts) & ((1 << kind.bits) - 1)).reshape(-1)[:count]
    if kind.coded:
        return codes.astype(np.uint8).view(kind.numpy())
    if kind.dtype == "int8":
        half = 1 << (kind.bits - 1)
        codes = (codes.astype(np.int8) ^ half) - np.int8(half)
    return codes.astype(kind.numpy())


def _read_external(proto: TensorProto, kind: ElementType, count: int, folder: Path | None) -> bytes:
    """The bytes of a tensor that are in a file beside the model."""
    entries = {entry.key: entry.value for entry in proto.external_data}
    location = entries.get("location", "")
    if not location:
        raise BadTensor(proto.name, "its data is in another file, and the model does not say which")
    if folder is None:
        raise BadTensor(
            proto.name,
            f"its data is in the file {location!r}, and the folder of the model is not known",
            hint="give the path of the model, not its bytes or the object",
        )
    path = inside(folder, location)
    if path is None:
        raise DataOutsideFolder(proto.name, location)
    try:
        offset = int(entries.get("offset", "0"))
        wanted = _bytes(kind, count)
        length = int(entries.get("length", str(wanted)))
    except ValueError as error:
        raise BadTensor(proto.name, f"the place of its data in {location!r} is not a number: {error}") from error
    if not path.is_file():
        raise BadTensor(proto.name, f"its data is in {location!r}, and there is no such file beside the model")
    size = path.stat().st_size
    if length != wanted or offset < 0 or offset + length > size:
        raise BadTensor(
            proto.name,
            f"{length} bytes from {offset} on are to be read from {location!r}, which has {size}; "
            f"shape {tuple(proto.dims)} of {kind.name} takes {wanted}",
        )
    with path.open("rb") as file:
        file.seek(offset)
        return file.read(length)


def inside(folder: Path, location: str) -> Path | None:
    """The file at `location` below `folder`, or None where it is elsewhere (`..`, absolute, through a link)."""
    if os.path.isabs(location) or "\0" in location:
        return None
    root = folder.resolve()
    path = (root / location).resolve()
    return path if path.is_relative_to(root) else None


def sparse_to_array(proto: SparseTensorProto, folder: Path | None) -> np.ndarray:
    """A tensor given by the places of those elements that are not zero."""
    name = proto.values.name
    kind = of_proto(proto.values.data_type, f"tensor {name!r}")
    count = element_count(name, proto.dims, kind.bits)
    if count * max(kind.bits // 8, 1) > LARGEST_DENSE:
        raise AbsurdSize(
            f"tensor {name!r}", proto.dims, f"it is stored by few elements, and would be {count:,} of them"
        )
    values, locations = to_array(proto.values, folder), to_array(proto.indices, folder)
    shape = tuple(proto.dims)
    if values.ndim != 1 or locations.ndim not in (1, 2) or locations.shape[0] != values.shape[0]:
        raise BadTensor(name, f"{values.shape} elements are at places of shape {locations.shape}")
    if locations.ndim == 2:
        if locations.shape[1] != len(shape) or (locations < 0).any() or (locations >= np.asarray(shape)).any():
            raise BadTensor(name, f"a place of an element is outside shape {shape}")
        locations = np.ravel_multi_index(tuple(locations.T), shape)
    if locations.size and (locations.min() < 0 or locations.max() >= count):
        raise BadTensor(name, f"a place of an element is outside shape {shape}")
    dense = np.zeros(count, values.dtype)
    dense[locations] = values
    return dense.reshape(shape)
