"""Number types of one's own: `custom[posit]32` is 32 bits that only the user's functions know how to add.

    datatype.register("posit", 131)
    datatype.register_op(datatype.create_lower_func({(32, 32): "FloatToPosit32"}), "Cast", "llvm", "float", "posit")
    datatype.register_op(datatype.create_lower_func({32: "Posit32Add"}), "Add", "llvm", "posit")
    …
    te.compute((n,), lambda i: X[i].astype("custom[posit]32") + Y[i].astype("custom[posit]32"))

In memory a value is its bits, an unsigned integer. `transform/passes/lower_custom_datatypes.py` replaces every
operation on such a type by what was registered for it; what is registered nowhere is an error that says what to
register.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from loopwright.runtime.dtype import CUSTOM_CODES, DataType, register_custom
from loopwright.runtime.errors import LoopwrightError

# The kinds a cast may come from or go to, by the names scripts use.
_PLAIN: Final = ("int", "uint", "float", "bfloat", "bool", "handle")


class CustomTypeTaken(LoopwrightError, ValueError):
    """A custom data type was registered under a name or a code that another one has, or under a code outside its range.

    Codes of custom types are from 129 to 255; those below belong to DLPack.

    For example:

        # needs a process of its own
        from loopwright.target import datatype

        datatype.register("mine", 150)
        datatype.register("yours", 150)
    """

    code = "LW0611"

    def __init__(self, name: str, number: int, problem: str) -> None:
        super().__init__(
            f"cannot register the custom data type {name!r} with code {number}: {problem}",
            hint="choose a name of its own and a code from 129 to 255",
            fields={"name": name, "code": number},
        )


class UnknownCustomType(LoopwrightError, ValueError):
    """No custom data type has that name or code; `target.datatype.register(name, code)` makes one.

    For example:

        from loopwright.target import datatype

        datatype.get_type_code("never_registered")
    """

    code = "LW0612"

    def __init__(self, asked: object) -> None:
        known = ", ".join(CUSTOM_CODES) or "none yet"
        super().__init__(
            f"no custom data type is registered as {asked!r}",
            hint=f"register it with target.datatype.register(name, code); registered are: {known}",
            fields={"asked": str(asked)},
        )


class NoLeastValue(LoopwrightError, ValueError):
    """The least value of a custom data type was needed (by `max`, or `min_value`), and nothing says what it is.

    For example:

        # needs a process of its own
        from loopwright import tir
        from loopwright.target import datatype

        datatype.register("bottomless", 161)
        tir.min_value("custom[bottomless]16")
    """

    code = "LW0614"

    def __init__(self, dtype: DataType) -> None:
        super().__init__(
            f"nothing says what the least value of {dtype} is",
            hint=f'register it: datatype.register_min_func(lambda bits: …, "{dtype.custom}")',
            fields={"dtype": str(dtype)},
        )


class ExternLowering(NamedTuple):
    """An operation becomes a call of a C function, chosen by the width of its operand (and result, for casts)."""

    names: Mapping[int | tuple[int, int], str] | str

    def name_for(self, source: DataType, target: DataType, is_cast: bool) -> str | None:
        """The C function for these types, or None when the table has none."""
        if isinstance(self.names, str):
            return self.names
        return self.names.get((source.bits, target.bits)) if is_cast else self.names.get(source.bits)


class KeepLowering(NamedTuple):
    """The operation stays what it is, on the bits: choices and calls of C functions need nothing else."""


Lowering = ExternLowering | KeepLowering | Callable[[Any], Any]


class Operation(NamedTuple):
    """What a lowering is registered for; `dest` only for casts."""

    op: str
    target: str
    source: str
    dest: str = ""


_LOWERINGS: Final[dict[Operation, Lowering]] = {}
_LEAST: Final[dict[str, Callable[[int], Any]]] = {}

lower_ite: Final = KeepLowering()
lower_call_pure_extern: Final = KeepLowering()


def register(type_name: str, type_code: int) -> None:
    """Make `custom[type_name]bits` a data type; doing it twice the same way changes nothing."""
    if CUSTOM_CODES.get(type_name) == type_code:
        return
    if not type_name.isidentifier():
        raise CustomTypeTaken(type_name, type_code, "the name is no identifier")
    if not 129 <= type_code <= 255:
        raise CustomTypeTaken(type_name, type_code, "the code is outside 129 to 255")
    if type_name in CUSTOM_CODES:
        raise CustomTypeTaken(type_name, type_code, f"the name has code {CUSTOM_CODES[type_name]} already")
    if type_code in CUSTOM_CODES.values():
        raise CustomTypeTaken(type_name, type_code, f"the code is that of {get_type_name(type_code)}")
    register_custom(type_name, type_code)


def get_type_code(type_name: str) -> int:
    """The code of a custom type."""
    if type_name not in CUSTOM_CODES:
        raise UnknownCustomType(type_name)
    return CUSTOM_CODES[type_name]


def get_type_name(type_code: int) -> str:
    """The name of the custom type with that code."""
    for name, code in CUSTOM_CODES.items():
        if code == type_code:
            return name
    raise UnknownCustomType(type_code)


def get_type_registered(type_code: int) -> bool:
    """Whether a custom type has that code."""
    return type_code in CUSTOM_CODES.values()


def create_lower_func(extern_func_map: Mapping[Any, str] | str) -> ExternLowering:
    """A lowering to C functions: `{32: "Posit32Add"}`, for casts `{(32, 16): "ToPosit16"}`, or one name for all."""
    return ExternLowering(extern_func_map)


def create_min_lower_func(extern_func_map: Mapping[int, str], type_name: str) -> Callable[[int], tuple[str, int]]:
    """The least value of a type as a call of a C function without arguments, by width; for `register_min_func`."""
    get_type_code(type_name)
    return lambda bits: (extern_func_map[bits], bits)


def register_op(
    lower_func: Lowering,
    op_name: str,
    target: str,
    src_type_name: str,
    dest_type_name: str | None = None,
    intrinsic_name: str | None = None,
) -> None:
    """Lower `op_name` (Add, Cast, Max, LT, FloatImm, Call …) on a type for target kind `target` by `lower_func`.

    For `Call`, `intrinsic_name` is the operator's, as in `tir.exp`. `Cast` needs both types, one of them custom.
    """
    if op_name == "Cast" and dest_type_name is None:
        raise TypeError("register_op: Cast needs dest_type_name, the type it goes to")
    for name in (src_type_name, dest_type_name):
        if name is not None and name not in _PLAIN:
            get_type_code(name)
    op = op_name if intrinsic_name is None else intrinsic_name.removeprefix("tir.")
    _LOWERINGS[Operation(op, target, src_type_name, dest_type_name or "")] = lower_func


def register_min_func(func: Callable[[int], object], type_name: str) -> None:
    """The least value of a custom type, from its width: what `max` over nothing gives."""
    get_type_code(type_name)
    _LEAST[type_name] = func


def find_lowering(op: str, target: str, source: DataType, dest: DataType | None = None) -> Lowering | None:
    """What is registered for an operation on these types."""
    return _LOWERINGS.get(Operation(op, target, type_name(source), type_name(dest) if dest is not None else ""))


def type_name(dtype: DataType) -> str:
    """The name under which lowerings know a type: `posit`, `float`, `int`."""
    return dtype.custom or dtype.kind


def least_value(dtype: DataType) -> Any:
    """What `register_min_func` gave for the type, applied to its width: an expression, or (C function, width)."""
    func = _LEAST.get(dtype.custom)
    if func is None:
        raise NoLeastValue(dtype)
    return func(dtype.bits)
