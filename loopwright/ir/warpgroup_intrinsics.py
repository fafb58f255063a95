"""Intrinsics of warpgroups: wgmma, the matmul of sm_90a, which four warps run together and asynchronously.

    T.fence_proxy_async()                       stores to the tiles are seen by wgmma; a barrier follows
    T.wgmma_fence()                             accumulators (and A in registers) are what was stored to them
    T.wgmma(T.address_of(acc[0]), 128, "float16", T.address_of(A[0]), 128, 0, 1024, 0,
            "float16", T.address_of(B[0]), 128, 0, 1024, 0, k > 0)
    T.wgmma_commit()                            what was begun since the last call is a group
    T.compute_now(x)                            x is computed here, beside the products that are under way
    T.wgmma_wait(0, T.address_of(acc[0]), 64)   all groups but the last 0 are done: accumulators and tiles are free

`wgmma` is D[64, n] (+)= A[64, K] · B[K, n], where K is 32 bytes of the operands' type. A warpgroup is four warps whose
first thread is a multiple of 128. Its thread t holds D[h * 8 + t // 32 * 16 + t % 32 // 4, j * 8 + t % 4 * 2 + e] as
element j * 4 + h * 2 + e of its n / 2 accumulators; of A, where that is in registers, byte t % 4 * 4 + r // 2 * 16 + b
of row r % 2 * 8 + t // 32 * 16 + t % 32 // 4 as byte b of its register r.

An operand in shared memory begins at a byte address, and `x` counts rows of A or columns of B, of `s` bytes an element:

    swizzle 32, 64, 128    address + x // 8 * stride + x % 8 * swizzle + k * s
    swizzle 0              address + x // 8 * stride + x % 8 * 16 + k * s // 16 * leading + k * s % 16
    128, transposed        address + x // 64 * leading + x % 64 * 2 + k // 8 * stride + k % 8 * 128

and where it is swizzled, bits 4 and up of that are combined (exclusive or) with bits 7 and up: three bits of them for
128, two for 64, one for 32. `transposed` means that elements lie along x (MN-major), and is for float16 and bfloat16.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from loopwright.ir.buffer import BufferLoad
from loopwright.ir.expr import Call, Expr, IntImm, StringImm, as_exprs
from loopwright.ir.op import CallEffect, Op, register_op
from loopwright.runtime.dtype import FLOAT32, INT32, VOID, DataType

WARPGROUP_INTRINSICS: Final = frozenset(
    f"tir.{name}"
    for name in "wgmma_fence wgmma wgmma_commit wgmma_wait compute_now set_max_registers fence_proxy_async".split()
)
SWIZZLES: Final = (0, 32, 64, 128)
CORE_ROWS: Final = 8  # rows (columns of B) that follow each other at one pitch
_OPERAND_BYTES: Final = 32  # of a row of A along K
_REGISTERS: Final = range(24, 257, 8)
_MOST_PENDING: Final = 7
_LARGEST_STEP: Final = (1 << 18) - 16  # of a matrix descriptor

for _name in WARPGROUP_INTRINSICS:
    register_op(_name, CallEffect.OPAQUE)


class OperandKind(NamedTuple):
    """A type of the elements of A and B."""

    dtype: DataType  # in memory
    family: str  # A and B are of one family; those of float8, and those of integers, may differ

    @property
    def k(self) -> int:
        """The K of one call."""
        return _OPERAND_BYTES // self.dtype.nbytes

    @property
    def accumulator(self) -> DataType:
        """The type of D."""
        return INT32 if self.family == "int8" else FLOAT32


OPERAND_KINDS: Final[dict[str, OperandKind]] = {
    "float16": OperandKind(DataType("float16"), "float16"),
    "bfloat16": OperandKind(DataType("bfloat16"), "bfloat16"),
    "tfloat32": OperandKind(FLOAT32, "tfloat32"),
    "float8_e4m3": OperandKind(DataType("float8_e4m3"), "float8"),
    "float8_e5m2": OperandKind(DataType("float8_e5m2"), "float8"),
    "int8": OperandKind(DataType("int8"), "int8"),
    "uint8": OperandKind(DataType("uint8"), "int8"),
}
_WORDS: Final = (INT32, DataType("uint32"))  # registers of A that a program has packed


def widths(kind: OperandKind) -> list[int]:
    """The n that wgmma has for a type."""
    return [n for n in range(8, 257, 8) if kind.family != "int8" or n <= 24 or n % 16 == 0]


def addressed(value: Expr) -> BufferLoad | None:
    """The element that a value is the address of."""
    load = value.args[0] if isinstance(value, Call) and value.op.name == "tir.address_of" else None
    return load if isinstance(load, BufferLoad) else None


def _wrong(name: str, wanted: str, argument: str, got: object) -> TypeError:
    return TypeError(f"{name}() takes {wanted} as {argument}; got {got}")


def _constant(name: str, argument: str, value: Expr) -> int:
    if not isinstance(value, IntImm):
        raise _wrong(name, "a constant", argument, value)
    return value.value


def _describe(value: Expr) -> str:
    load = addressed(value)
    return "no address" if load is None else f"that of {load.dtype} in {load.buffer.scope()} memory"


def _check_registers(name: str, argument: str, value: Expr, dtypes: tuple[DataType, ...]) -> None:
    load = addressed(value)
    if load is None or load.dtype not in dtypes or load.buffer.scope() != "local":
        wanted = f"the address of {' or '.join(map(str, dtypes))} in local memory, as T.address_of(acc[0]) gives it,"
        raise _wrong(name, wanted, argument, _describe(value))


def _check_kind(argument: str, value: Expr) -> OperandKind:
    if not isinstance(value, StringImm) or value.value not in OPERAND_KINDS:
        raise _wrong("wgmma", f"one of {', '.join(OPERAND_KINDS)}", argument, value)
    return OPERAND_KINDS[value.value]


def _check_matrix(operand: str, kind: OperandKind, args: tuple[Expr, ...]) -> None:
    """The address, the swizzle, both steps and the transposition of an operand in shared memory."""
    load = addressed(args[0])
    if load is None or load.dtype is not kind.dtype or not load.buffer.scope().startswith("shared"):
        where = "shared or local" if operand == "a" else "shared"
        wanted = f"the address of {kind.dtype} in {where} memory, as T.address_of(S[0]) gives it,"
        raise _wrong("wgmma", wanted, operand, _describe(args[0]))
    names = [f"{operand}_{part}" for part in ("swizzle", "leading", "stride", "is_transposed")]
    swizzle, leading, stride, is_transposed = [
        _constant("wgmma", name, value) for name, value in zip(names, args[1:], strict=True)
    ]
    if swizzle not in SWIZZLES:
        raise _wrong("wgmma", "0, 32, 64 or 128", names[0], swizzle)
    if is_transposed not in (0, 1):
        raise _wrong("wgmma", "0 or 1", names[3], is_transposed)
    if is_transposed and (swizzle != 128 or kind.dtype.nbytes != 2):
        got = f"1 for {kind.dtype} with the swizzle {swizzle}"
        raise _wrong("wgmma", "0 for all but float16 and bfloat16 with the swizzle 128", names[3], got)
    pattern = pattern_bytes(swizzle)
    for name, value in ((names[1], leading), (names[2], stride)):
        # Nothing reads the leading step of a swizzle that is not transposed.
        multiple = pattern if name == names[2] or is_transposed else 16
        if value % multiple or not 0 <= value <= _LARGEST_STEP:
            repeats = f" (those after which the swizzle {swizzle} repeats)" if multiple > 16 else ""
            raise _wrong("wgmma", f"a multiple of {multiple} bytes{repeats}, less than 2^18,", name, value)


def pattern_bytes(swizzle: int) -> int:
    """The bytes after which a swizzle repeats: tiles begin at multiples of them, and so do their groups of rows."""
    return CORE_ROWS * swizzle or 16


def wgmma(
    accumulators: object,
    n: object,
    a_kind: object,
    a: object,
    a_swizzle: object,
    a_leading: object,
    a_stride: object,
    a_is_transposed: object,
    b_kind: object,
    b: object,
    b_swizzle: object,
    b_leading: object,
    b_stride: object,
    b_is_transposed: object,
    adds: object,
) -> Expr:
    """Begin D[64, n] (+)= A · B by a warpgroup; `adds` is 0 where D is A · B alone.

    `a` is in shared memory, or in registers: the address of 16 bytes of local memory, and all that follows of it is 0.
    """
    first = (accumulators, n, a_kind, a, a_swizzle, a_leading, a_stride, a_is_transposed)
    args = as_exprs((*first, b_kind, b, b_swizzle, b_leading, b_stride, b_is_transposed, adds))
    kinds = _check_kind("a_kind", args[2]), _check_kind("b_kind", args[8])
    if kinds[0].family != kinds[1].family:
        raise _wrong("wgmma", f"a type of one family with {args[2]}", "b_kind", args[8])
    _check_registers("wgmma", "accumulators", args[0], (kinds[0].accumulator,))
    if _constant("wgmma", "n", args[1]) not in widths(kinds[0]):
        multiple = "8, 16, 24 or a multiple of 16" if kinds[0].family == "int8" else "a multiple of 8"
        raise _wrong("wgmma", f"{multiple} up to 256", "n", args[1])
    if is_in_registers(args[3]):
        _check_registers("wgmma", "a", args[3], (kinds[0].dtype, *_WORDS))
        given = [value.value if isinstance(value, IntImm) else value for value in args[4:8]]
        if any([value != 0 for value in given]):
            raise _wrong("wgmma", "0, 0, 0 and 0", "a_swizzle … a_is_transposed of registers", given)
    else:
        _check_matrix("a", kinds[0], args[3:8])
    _check_matrix("b", kinds[1], args[9:14])
    if args[14].dtype is not INT32 and not args[14].dtype.is_bool:
        raise _wrong("wgmma", "int32 or bool", "adds", args[14].dtype)
    return Call(VOID, Op.get("tir.wgmma"), args)


def is_in_registers(a: Expr) -> bool:
    """Whether A of a wgmma is in registers."""
    load = addressed(a)
    return load is not None and load.buffer.scope() == "local"


def wgmma_fence() -> Expr:
    """What this warpgroup has stored to accumulators and to A in registers is what the next wgmma sees."""
    return Call(VOID, Op.get("tir.wgmma_fence"), ())


def wgmma_commit() -> Expr:
    """What this warpgroup has begun since the last call is a group, which may be empty."""
    return Call(VOID, Op.get("tir.wgmma_commit"), ())


def wgmma_wait(n: object, *accumulators: object) -> Expr:
    """Wait until the groups of this warpgroup are done, all but the last `n`.

    `accumulators` are addresses and counts: that many 32-bit registers from each address on are read after the wait.
    """
    args = as_exprs((n, *accumulators))
    if _constant("wgmma_wait", "n", args[0]) not in range(_MOST_PENDING + 1):
        raise _wrong("wgmma_wait", f"0 to {_MOST_PENDING}", "n", args[0])
    if len(args) % 2 == 0:
        raise _wrong("wgmma_wait", "pairs of an address and a count", "accumulators", f"{len(args) - 1} arguments")
    for k in range(1, len(args), 2):
        _check_registers("wgmma_wait", f"accumulator {k // 2}", args[k], (FLOAT32, *_WORDS))
        if _constant("wgmma_wait", f"count {k // 2}", args[k + 1]) < 1:
            raise _wrong("wgmma_wait", "at least 1", f"count {k // 2}", args[k + 1])
    return Call(VOID, Op.get("tir.wgmma_wait"), args)


def compute_now(value: object) -> Expr:
    """A float32 is computed before what follows: an assembler may move arithmetic behind waits, where it takes time."""
    args = as_exprs((value,))
    if args[0].dtype is not FLOAT32:
        raise _wrong("compute_now", "a float32", "value", args[0].dtype)
    return Call(VOID, Op.get("tir.compute_now"), args)


def set_max_registers(count: object, how: object) -> Expr:
    """This warpgroup gets more registers a thread ("inc", when others have given them back), or gives some ("dec")."""
    args = as_exprs((count, how))
    if _constant("set_max_registers", "count", args[0]) not in _REGISTERS:
        raise _wrong("set_max_registers", "a multiple of 8 from 24 to 256", "count", args[0])
    if not isinstance(args[1], StringImm) or args[1].value not in ("inc", "dec"):
        raise _wrong("set_max_registers", '"inc" or "dec"', "how", args[1])
    return Call(VOID, Op.get("tir.set_max_registers"), args)


def fence_proxy_async() -> Expr:
    """What this thread has stored to shared memory comes before what wgmma and the copy engine do there later."""
    return Call(VOID, Op.get("tir.fence_proxy_async"), ())


__all__ = [
    "compute_now",
    "fence_proxy_async",
    "set_max_registers",
    "wgmma",
    "wgmma_commit",
    "wgmma_fence",
    "wgmma_wait",
]
