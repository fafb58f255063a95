"""Intrinsics of asynchronous kernels: mbarriers, bulk copies into shared memory, barriers of some warps.

Warps of different roles hand shared memory to each other: one copies tiles, others compute on those that are there.

    T.mbarrier_init(T.address_of(full[s]), 1)                     one thread; a __syncthreads() before it is used
    T.bulk_copy_async(T.address_of(S[s, 0]), T.address_of(A[i]), 4 * n, T.address_of(full[s]))      all 32 lanes
    T.mbarrier_arrive(T.address_of(full[s]))                      lane 0, afterwards
    T.mbarrier_wait(T.address_of(full[s]), round % 2)             whoever reads S[s, …]
    T.role_barrier(1, 64)                                         waits for two warps

An mbarrier is a uint64 in shared memory that goes through phases 0, 1, 2, …: a phase completes when as many threads
have arrived as `mbarrier_init` says and all bytes that copies have announced are there. `mbarrier_wait` waits until the
phase of that parity has completed: phase k has the parity k % 2, and what came before phase 0 has completed, with
parity 1. Two phases in a row are told apart, others are not: who waits may be at most one phase behind.

A bulk copy announces its bytes when lane 0 calls it, and is no arrival. It touches its target from the time when the
first lane calls it until the phase has completed. Stores before an arrival are seen after a wait for its phase.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright.ir.buffer import BufferLoad
from loopwright.ir.expr import Call, Expr, IntImm, as_exprs
from loopwright.ir.op import CallEffect, Op, register_op
from loopwright.runtime.dtype import INT32, INT64, VOID, DataType

_MBARRIER: Final = DataType("uint64")
_WARP: Final = 32
_ROLE_BARRIERS: Final = range(1, 16)  # barrier 0 is that of __syncthreads()
_MOST_THREADS: Final = 1024
# The arguments of each: an mbarrier, addresses, integers.
_ARGUMENTS: Final[dict[str, tuple[str, ...]]] = {
    "mbarrier_init": ("barrier", "arrivals"),
    "mbarrier_arrive": ("barrier",),
    "mbarrier_wait": ("barrier", "parity"),
    "bulk_copy_async": ("target", "source", "bytes", "barrier"),
    "role_barrier": ("number", "threads"),
}
ASYNC_INTRINSICS: Final = frozenset(f"tir.{name}" for name in _ARGUMENTS)

for _name in ASYNC_INTRINSICS:
    register_op(_name, CallEffect.OPAQUE)


def _call(name: str, *given: object) -> Expr:
    args = as_exprs(given)
    for argument, value in zip(_ARGUMENTS[name], args, strict=True):
        _CHECKS[argument](name, argument, value)
    return Call(VOID, Op.get(f"tir.{name}"), args)


def _element(value: Expr) -> BufferLoad | None:
    """What the address is of."""
    load = value.args[0] if isinstance(value, Call) and value.op.name == "tir.address_of" else None
    return load if isinstance(load, BufferLoad) else None


def _check_barrier(name: str, argument: str, value: Expr) -> None:
    load = _element(value)
    if load is None or load.dtype is not _MBARRIER or not load.buffer.scope().startswith("shared"):
        given = "no address" if load is None else f"that of {load.dtype} in {load.buffer.scope()} memory"
        wanted = "the address of one uint64 in shared memory, as T.address_of(full[0]) gives it,"
        raise TypeError(f"{name}() takes {wanted} as {argument}; got {given}")


def _check_address(name: str, argument: str, value: Expr) -> None:
    load, where = _element(value), "shared" if argument == "target" else "global"
    if load is None or not load.buffer.scope().startswith(where):
        given = "no address" if load is None else f"that of an element in {load.buffer.scope()} memory"
        wanted = f"an address in {where} memory, as T.address_of(S[0]) gives it,"
        raise TypeError(f"{name}() takes {wanted} as {argument}; got {given}")


def _check_integer(name: str, argument: str, value: Expr) -> None:
    allowed = (INT32, INT64) if argument == "bytes" else (INT32,)
    if value.dtype not in allowed:
        kinds = " or ".join(map(str, allowed))
        raise TypeError(f"{name}() takes {kinds} as {argument}; got {value.dtype}")
    if isinstance(value, IntImm) and argument in _RANGES and value.value not in _RANGES[argument]:
        low, high = _RANGES[argument][0], _RANGES[argument][-1]
        of = f", a multiple of {_WARP}" if argument == "threads" else ""
        raise TypeError(f"{name}() takes {low} to {high} as {argument}{of}; got {value.value}")


_RANGES: Final = {
    "arrivals": range(1, 1 << 20),
    "parity": range(2),
    "number": _ROLE_BARRIERS,
    "threads": range(_WARP, _MOST_THREADS + 1, _WARP),
}
_CHECKS: Final[dict[str, Callable[[str, str, Expr], None]]] = {
    "barrier": _check_barrier,
    "target": _check_address,
    "source": _check_address,
    **dict.fromkeys(("arrivals", "parity", "bytes", "number", "threads"), _check_integer),
}


def mbarrier_init(barrier: object, arrivals: object) -> Expr:
    """The uint64 at `barrier` becomes an mbarrier whose phases have `arrivals` arrivals each."""
    return _call("mbarrier_init", barrier, arrivals)


def mbarrier_arrive(barrier: object) -> Expr:
    """This thread arrives: one arrival of the phase that is under way."""
    return _call("mbarrier_arrive", barrier)


def mbarrier_wait(barrier: object, parity: object) -> Expr:
    """Wait until the phase of that parity, 0 or 1, has completed."""
    return _call("mbarrier_wait", barrier, parity)


def bulk_copy_async(target: object, source: object, bytes: object, barrier: object) -> Expr:
    """Begin to copy `bytes` bytes, for which the phase of `barrier` waits; all lanes of a warp say the same."""
    return _call("bulk_copy_async", target, source, bytes, barrier)


def role_barrier(number: object, threads: object) -> Expr:
    """Wait until `threads` threads, those of whole warps, wait at the barrier of that number."""
    return _call("role_barrier", number, threads)


__all__ = ["bulk_copy_async", "mbarrier_arrive", "mbarrier_init", "mbarrier_wait", "role_barrier"]
