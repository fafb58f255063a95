"""Parameters of a model as bytes: names and tensors, in the layout that model files of this kind share.

    u64 magic, u64 0, the names (u64 count; each u64 length, bytes), u64 count, then for each tensor
    u64 magic, u64 0, i32 device type, i32 device id, i32 rank, u8 code, u8 bits, u16 lanes, i64 shape…, i64 size, bytes

All numbers are little-endian. Reading trusts nothing: every length is checked against what is left.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import Final

import numpy as np

from loopwright.runtime.devices import CPU
from loopwright.runtime.dlpack import dlpack_type
from loopwright.runtime.dtype import TYPE_CODES, DataType, UnknownDataType
from loopwright.runtime.errors import LoopwrightError
from loopwright.runtime.tensor import NDArray, array, empty

_LIST_MAGIC: Final = 0xF7E58D4F05049CB7
_TENSOR_MAGIC: Final = 0xDD5E40F096B4A13F


class BadParameters(LoopwrightError, ValueError):
    """Bytes that are no saved parameters, or only part of them; or a value that cannot be saved as one.

    For example:

        from loopwright.runtime import load_param_dict
        load_param_dict(b"not parameters")
    """

    code = "LW0143"


class ParametersFile(LoopwrightError, OSError):
    """A file of parameters cannot be read or written: it does not exist, or may not be opened.

    For example:

        from loopwright.runtime import load_param_dict_from_file
        load_param_dict_from_file("no_such_file.params")
    """

    code = "LW0154"

    def __init__(self, deed: str, path: object, error: Exception) -> None:
        why = str(getattr(error, "strerror", None) or error)
        super().__init__(f"the parameters cannot be {deed}: {path!r}", why=why, fields={"path": str(path)})


def save_param_dict(params: Mapping[str, object]) -> bytearray:
    """The tensors (or arrays) in `params` as bytes, each under its name."""
    if not isinstance(params, Mapping):
        raise BadParameters(f"save_param_dict: parameters are a dict by name, not {type(params).__name__}")
    tensors: dict[str, NDArray] = {}
    for name, value in params.items():
        if not isinstance(name, str):
            raise BadParameters(f"save_param_dict: {name!r} is no name", hint="names are texts")
        tensors[name] = value if type(value) is NDArray else array(value)
    out = bytearray(struct.pack("<QQQ", _LIST_MAGIC, 0, len(tensors)))
    for name in tensors:
        data = name.encode()
        out += struct.pack("<Q", len(data)) + data
    out += struct.pack("<Q", len(tensors))
    for tensor in tensors.values():
        content = np.ascontiguousarray(np.asarray(tensor)).tobytes()
        code, bits, lanes = dlpack_type(tensor.dtype)
        shape = tuple(tensor.shape)
        out += struct.pack("<QQiiiBBH", _TENSOR_MAGIC, 0, CPU, 0, len(shape), code, bits, lanes)
        out += struct.pack(f"<{len(shape)}qq", *shape, len(content)) + content
    return out


def load_param_dict(param_bytes: bytes | bytearray | str) -> dict[str, NDArray]:
    """The tensors that `save_param_dict` wrote, by name."""
    if isinstance(param_bytes, str):
        try:
            data = param_bytes.encode("latin-1")
        except UnicodeEncodeError:
            raise BadParameters("load_param_dict: a text is no saved parameters") from None
    elif isinstance(param_bytes, (bytes, bytearray, memoryview)):
        data = bytes(param_bytes)
    else:
        raise BadParameters(f"load_param_dict: parameters are bytes, not {type(param_bytes).__name__}")
    reader = _Reader(data)
    magic, _, count = reader.take("QQQ")
    if magic != _LIST_MAGIC:
        raise BadParameters("load_param_dict: these bytes are no saved parameters", why="they begin otherwise")
    names = [reader.bytes(reader.take("Q")[0]).decode("utf-8", "replace") for _ in range(reader.bounded(count))]
    if reader.take("Q")[0] != count:
        raise BadParameters("load_param_dict: there are not as many tensors as names")
    return {name: _read_tensor(reader) for name in names}


def save_param_dict_to_file(params: Mapping[str, object], path: str | os.PathLike[str]) -> None:
    """Write what `save_param_dict` gives to a file."""
    data = save_param_dict(params)
    try:
        Path(path).write_bytes(data)
    except (OSError, TypeError, ValueError) as error:
        raise ParametersFile("written", path, error) from None


def load_param_dict_from_file(path: str | os.PathLike[str]) -> dict[str, NDArray]:
    """The tensors in a file of `save_param_dict_to_file`."""
    try:
        data = Path(path).read_bytes()
    except (OSError, TypeError, ValueError) as error:
        raise ParametersFile("read", path, error) from None
    return load_param_dict(data)


def _read_tensor(reader: _Reader) -> NDArray:
    magic, _, _, _, rank, code, bits, lanes = reader.take("QQiiiBBH")
    if magic != _TENSOR_MAGIC or not 0 <= rank <= 64:
        raise BadParameters("load_param_dict: a tensor does not begin as one")
    shape = reader.take(f"{rank}q")
    (size,) = reader.take("q")
    dtype = _dtype(code, bits, lanes)
    if any(axis < 0 for axis in shape) or prod(shape) * dtype.nbytes * dtype.lanes != size:
        raise BadParameters(f"load_param_dict: a {dtype} tensor of shape {shape} has {size} bytes")
    content = np.frombuffer(reader.bytes(size), dtype.numpy())
    tensor = empty(shape, dtype)
    mine = np.asarray(tensor)
    mine[...] = content.reshape(mine.shape)
    return tensor


def _dtype(code: int, bits: int, lanes: int) -> DataType:
    kind = next((name for name, number in TYPE_CODES.items() if number == code), None)
    if code == TYPE_CODES["uint"] and bits == 1:
        kind = "bool"
    try:
        if kind is None or lanes < 1:
            raise UnknownDataType(f"type code {code}")
        return DataType("bool" if kind == "bool" else f"{kind}{bits}").with_lanes(lanes)
    except UnknownDataType as error:
        raise BadParameters(f"load_param_dict: a tensor has the unknown type ({code}, {bits}, {lanes})") from error


class _Reader:
    """Bytes taken one piece after another; running out of them is an error."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def bytes(self, size: int) -> bytes:
        if size > len(self.data) - self.at:
            left = len(self.data) - self.at
            raise BadParameters(
                f"load_param_dict: the parameters are cut off: {size} bytes should follow, and {left} do"
            )
        piece = self.data[self.at : self.at + size]
        self.at += size
        return piece

    def take(self, form: str) -> tuple[int, ...]:
        return struct.unpack("<" + form, self.bytes(struct.calcsize("<" + form)))

    def bounded(self, count: int) -> int:
        """A count of things that take eight bytes at least, refused before memory is made for them."""
        if count * 8 > len(self.data) - self.at:
            raise BadParameters(f"load_param_dict: {count} names are announced, and there are not enough bytes")
        return count
