"""Intrinsics of machines and of the runtime: pointers, packed calls, warps, tensor cores, barriers, vector halves.

Programs may say all of them, print them and read them back. Which ones a target has a rule for is the business of
code generation: one without a rule is refused there, by name.

`intrinsics.py` holds those that compute on plain values.

Blocks of one kernel hand words on to later blocks by status words, elements of global memory that are atomic:

    ticket = T.take_ticket(T.address_of(counter[0]))          the counter's value, which is one more from now on
    T.publish(T.address_of(status[ticket]), word)             the status word, which was 0, is `word`, which is not 0
    word = T.await_published(T.address_of(status[k]))         waits until the status word is not 0

Counters are int32, status words uint64. A word is published by itself: what was stored before it is not. An await is
for what a block with an earlier ticket publishes, or what this block has published before a barrier: such blocks have
started already, whatever order the GPU starts blocks in, and wait for no later one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from loopwright.ir.buffer import BufferLoad
from loopwright.ir.expr import Call, Expr, StringImm, as_exprs
from loopwright.ir.intrinsics import as_array
from loopwright.ir.op import CallEffect, Op, register_op
from loopwright.runtime.dtype import BOOL, HANDLE, INT32, VOID, DataType

# Calls whose first Python argument is the type of the result: `ptx_mma("float32", …)`.
DTYPE_FIRST: Final = (
    "vectorlow vectorhigh vectorcombine ptx_mma ptx_mma_sp ptx_ldmatrix ptx_cp_async ptx_cp_async_bulk "
    "mma_store mma_fill"
).split()
# Calls with a fixed result type and any arguments: name → (type, how many arguments; None: any number).
_FIXED: Final[dict[str, tuple[DataType, int | None]]] = {
    "tvm_struct_set": (INT32, 4),
    "tvm_stack_alloca": (HANDLE, 2),
    "tvm_stack_make_shape": (HANDLE, None),
    "tvm_stack_make_array": (HANDLE, 6),
    "tvm_tuple": (HANDLE, None),
    "tvm_throw_last_error": (HANDLE, 0),
    "tvm_check_return": (INT32, 3),
    "tvm_access_ptr": (HANDLE, 5),
    "tvm_static_handle": (HANDLE, 0),
    "lookup_param": (HANDLE, 1),
    "isnullptr": (BOOL, 1),
    "TVMBackendAllocWorkspace": (HANDLE, 5),
    "TVMBackendFreeWorkspace": (INT32, 3),
    "tvm_storage_sync": (HANDLE, None),
    "tvm_thread_allreduce": (HANDLE, None),
    "tvm_warp_activemask": (DataType("uint32"), 0),
    "start_profile_intrinsic": (HANDLE, 1),
    "end_profile_intrinsic": (HANDLE, 1),
    "tvm_load_matrix_sync": (HANDLE, 8),
    "tvm_store_matrix_sync": (HANDLE, 8),
    "tvm_mma_sync": (HANDLE, 8),
    "tvm_bmma_sync": (HANDLE, 8),
    "tvm_fill_fragment": (HANDLE, 6),
    "ptx_commit_group": (VOID, 0),
    "ptx_wait_group": (VOID, 1),
    "ptx_cp_async_barrier": (VOID, 1),
    "ptx_init_barrier_thread_count": (VOID, 2),
    "ptx_arrive_barrier": (VOID, 1),
    "ptx_arrive_barrier_expect_tx": (VOID, 2),
    "ptx_wait_barrier": (VOID, 1),
    "create_barriers": (VOID, 1),
    "call_packed_lowered": (INT32, None),
    "call_cpacked_lowered": (INT32, None),
    "call_error": (HANDLE, None),
    "take_ticket": (INT32, 1),
    "publish": (VOID, 2),
    "await_published": (DataType("uint64"), 1),
}
# What blocks hand on to later ones, and the type of the element that each call takes the address of.
HANDOFFS: Final = {
    "tir.take_ticket": INT32,
    "tir.publish": DataType("uint64"),
    "tir.await_published": DataType("uint64"),
}
# Calls with a function of their own below.
_OTHERS: Final = (
    "type_annotation undef tvm_struct_get tvm_warp_shuffle tvm_warp_shuffle_up tvm_warp_shuffle_down "
    "tvm_warp_shuffle_xor q_multiply_shift q_multiply_shift_per_axis call_cpacked"
).split()
_PURE: Final = frozenset(
    "vectorlow vectorhigh vectorcombine type_annotation undef call_error q_multiply_shift "
    "q_multiply_shift_per_axis".split()
)
_READS: Final = frozenset("tvm_access_ptr lookup_param isnullptr tvm_struct_get".split())

for _name in (*_FIXED, *DTYPE_FIRST, *_OTHERS):
    register_op(
        f"tir.{_name}",
        CallEffect.PURE if _name in _PURE else CallEffect.READ_STATE if _name in _READS else CallEffect.OPAQUE,
    )


def _fixed(name: str) -> Callable[..., Expr]:
    op, (dtype, count) = Op.get(f"tir.{name}"), _FIXED[name]

    def build(*args: object) -> Expr:
        if count is not None and len(args) != count:
            raise TypeError(f"{name}() takes {count} argument{'s' * (count != 1)}, but {len(args)} were given")
        return Call(dtype, op, as_exprs(args))

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"A call of tir.{name}."
    return build


def _handoff(name: str) -> Callable[..., Expr]:
    build, element = _fixed(name), HANDOFFS[f"tir.{name}"]

    def build_checked(*args: object) -> Expr:
        result = build(*args)
        assert isinstance(result, Call)
        pointer = result.args[0]
        load = pointer.args[0] if isinstance(pointer, Call) and pointer.op.name == "tir.address_of" else None
        if not isinstance(load, BufferLoad) or load.dtype is not element:
            given = "no address" if not isinstance(load, BufferLoad) else f"that of {load.dtype}"
            raise TypeError(f"{name}() takes the address of one {element}, as T.address_of(A[0]) gives it; got {given}")
        if len(result.args) > 1 and result.args[1].dtype is not element:
            raise TypeError(f"{name}() takes a word of type {element}; got {result.args[1].dtype}")
        return result

    build_checked.__name__ = build_checked.__qualname__ = name
    build_checked.__doc__ = build.__doc__
    return build_checked


def _dtype_first(name: str) -> Callable[..., Expr]:
    op = Op.get(f"tir.{name}")

    def build(dtype: str | DataType, *args: object) -> Expr:
        return Call(DataType(dtype), op, as_exprs(tuple([arg for arg in args if arg is not None])))

    build.__name__ = build.__qualname__ = name
    build.__doc__ = f"A call of tir.{name} with a result of `dtype`."
    return build


tvm_struct_set, tvm_stack_alloca = _fixed("tvm_struct_set"), _fixed("tvm_stack_alloca")
tvm_stack_make_shape, tvm_stack_make_array = _fixed("tvm_stack_make_shape"), _fixed("tvm_stack_make_array")
tvm_tuple, tvm_throw_last_error = _fixed("tvm_tuple"), _fixed("tvm_throw_last_error")
tvm_check_return, tvm_access_ptr = _fixed("tvm_check_return"), _fixed("tvm_access_ptr")
tvm_static_handle = _fixed("tvm_static_handle")
lookup_param, isnullptr = _fixed("lookup_param"), _fixed("isnullptr")
TVMBackendAllocWorkspace = _fixed("TVMBackendAllocWorkspace")
TVMBackendFreeWorkspace = _fixed("TVMBackendFreeWorkspace")
tvm_storage_sync, tvm_thread_allreduce = _fixed("tvm_storage_sync"), _fixed("tvm_thread_allreduce")
tvm_warp_activemask = _fixed("tvm_warp_activemask")
start_profile_intrinsic = _fixed("start_profile_intrinsic")
end_profile_intrinsic = _fixed("end_profile_intrinsic")
tvm_load_matrix_sync, tvm_store_matrix_sync = _fixed("tvm_load_matrix_sync"), _fixed("tvm_store_matrix_sync")
tvm_mma_sync, tvm_bmma_sync = _fixed("tvm_mma_sync"), _fixed("tvm_bmma_sync")
tvm_fill_fragment = _fixed("tvm_fill_fragment")
ptx_commit_group, ptx_wait_group = _fixed("ptx_commit_group"), _fixed("ptx_wait_group")
ptx_cp_async_barrier = _fixed("ptx_cp_async_barrier")
ptx_init_barrier_thread_count = _fixed("ptx_init_barrier_thread_count")
ptx_arrive_barrier, ptx_wait_barrier = _fixed("ptx_arrive_barrier"), _fixed("ptx_wait_barrier")
ptx_arrive_barrier_expect_tx = _fixed("ptx_arrive_barrier_expect_tx")
create_barriers = _fixed("create_barriers")
call_packed_lowered, call_cpacked_lowered = _fixed("call_packed_lowered"), _fixed("call_cpacked_lowered")
# The message of an assertion: the class of the error, a format, and the integers for each %lld in it.
call_error = _fixed("call_error")

take_ticket, publish, await_published = _handoff("take_ticket"), _handoff("publish"), _handoff("await_published")

vectorlow, vectorhigh = _dtype_first("vectorlow"), _dtype_first("vectorhigh")
vectorcombine = _dtype_first("vectorcombine")
ptx_mma, ptx_mma_sp, ptx_ldmatrix = map(_dtype_first, ("ptx_mma", "ptx_mma_sp", "ptx_ldmatrix"))
ptx_cp_async, ptx_cp_async_bulk = _dtype_first("ptx_cp_async"), _dtype_first("ptx_cp_async_bulk")
mma_store, mma_fill = _dtype_first("mma_store"), _dtype_first("mma_fill")


def type_annotation(dtype: str | DataType) -> Expr:
    """A type as an argument of a call, as `tvm_access_ptr` takes one."""
    return Call(DataType(dtype), Op.get("tir.type_annotation"), ())


def tvm_struct_get(arr: object, index: object, field: object, dtype: str | DataType) -> Expr:
    """Field number `field` of the array structure at `arr[index]`, as `dtype`."""
    return Call(DataType(dtype), Op.get("tir.tvm_struct_get"), as_exprs((arr, index, field)))


def _shuffle(name: str) -> Callable[..., Expr]:
    op = Op.get(f"tir.{name}")

    def build(mask: object, value: object, warp_id: object, width: object, warp_size: object) -> Expr:
        given = as_exprs((mask, value, warp_id, width, warp_size))
        return Call(given[1].dtype, op, given)

    build.__name__ = build.__qualname__ = name
    build.__doc__ = "The value of another lane of the warp."
    return build


tvm_warp_shuffle, tvm_warp_shuffle_up = _shuffle("tvm_warp_shuffle"), _shuffle("tvm_warp_shuffle_up")
tvm_warp_shuffle_down, tvm_warp_shuffle_xor = _shuffle("tvm_warp_shuffle_down"), _shuffle("tvm_warp_shuffle_xor")


def undef(dtype: str | DataType = INT32) -> Expr:
    """No value at all: storing it leaves an element without one."""
    return Call(DataType(dtype), Op.get("tir.undef"), ())


def q_multiply_shift(x: object, y: object, q: object, s: object) -> Expr:
    """x * y * 2^(s - q) on integers, rounded half up: `y` has `q` bits of fraction."""
    given = as_exprs((x, y, q, s))
    return Call(given[0].dtype, Op.get("tir.q_multiply_shift"), given)


def q_multiply_shift_per_axis(
    x: object, y: object, ls: object, rs: object, q: object, is_lshift_required: object, is_rshift_required: object
) -> Expr:
    """The same with shifts of their own for each channel: left by `ls` before, right by `rs` after."""
    given = as_exprs((x, y, ls, rs, q, is_lshift_required, is_rshift_required))
    return Call(given[0].dtype, Op.get("tir.q_multiply_shift_per_axis"), given)


def call_cpacked(name: str, *args: object) -> Expr:
    """A call of a C function with the packed convention; buffers are passed as arrays."""
    return Call(INT32, Op.get("tir.call_cpacked"), (StringImm(name), *as_exprs([as_array(arg) for arg in args])))


def llvm_lookup_intrinsic_id(name: str) -> str:
    """What `call_llvm_intrin` takes for the LLVM intrinsic of that name: here, the name itself."""
    return name


__all__ = [
    *_FIXED,
    *DTYPE_FIRST,
    "call_cpacked",
    "llvm_lookup_intrinsic_id",
    "q_multiply_shift",
    "q_multiply_shift_per_axis",
    "tvm_struct_get",
    "tvm_warp_shuffle",
    "tvm_warp_shuffle_down",
    "tvm_warp_shuffle_up",
    "tvm_warp_shuffle_xor",
    "type_annotation",
    "undef",
]
