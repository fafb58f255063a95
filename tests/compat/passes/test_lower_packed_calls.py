"""LowerTVMBuiltin, by the name of scripts: packed calls on stacks, and workspace."""

from __future__ import annotations

import pytest

from loopwright import tir
from loopwright.compat.passes.device_passes import DeviceWorkLeft
from loopwright.ir import AttrStmt, DeclBuffer, For, LetStmt, PrimFunc, collect
from loopwright.script import tir as T

lower = tir.transform.LowerTVMBuiltin()


def shown(func: PrimFunc) -> str:
    return str(func).replace("T.call_packed_lowered(", "CALL(")


def lines(func: PrimFunc) -> list[str]:
    return [line.strip() for line in shown(func).splitlines()]


def test_a_packed_call_takes_slots_for_values_and_type_codes():
    @T.prim_func(private=True)
    def before(n: T.int32, x: T.float32, p: T.handle):
        T.evaluate(T.call_packed("scale", n, x, "fast", p))

    text = lines(lower(before))
    assert text[text.index('T.tvm_struct_set(stack_value, 0, 12, T.Cast("int64", n))') :] == [
        'T.tvm_struct_set(stack_value, 0, 12, T.Cast("int64", n))',
        "stack_tcode_1[0] = 0",
        'T.tvm_struct_set(stack_value, 1, 12, T.Cast("float64", x))',
        "stack_tcode_1[1] = 2",
        'T.tvm_struct_set(stack_value, 2, 12, "fast")',
        "stack_tcode_1[2] = 11",
        "T.tvm_struct_set(stack_value, 3, 12, p)",
        "stack_tcode_1[3] = 3",
        'CALL("scale", stack_value, stack_tcode, 0, 4)',
    ]
    assert [str(let.value) for let in collect(lower(before).body, LetStmt)] == [
        'T.tvm_stack_alloca("arg_tcode", 5)',
        'T.tvm_stack_alloca("arg_value", 5)',
    ]


def test_an_array_is_written_field_by_field():
    @T.prim_func(private=True)
    def before(A: T.Buffer((4, 6), "int16")):
        T.evaluate(T.call_packed("sort", A))

    func = lower(before)
    stacks = [str(let.value).removeprefix("T.tvm_stack_alloca") for let in collect(func.body, LetStmt)]
    assert stacks == ['("arg_tcode", 2)', '("arg_value", 2)', '("array", 1)', '("shape", 2)']
    text = lines(func)
    first = text.index("stack_shape_1[0] = T.int64(4)")
    assert text[first + 1 : first + 5] == [
        "stack_shape_1[1] = T.int64(6)",
        "T.tvm_struct_set(stack_array, 0, 1, A.data)",
        "T.tvm_struct_set(stack_array, 0, 2, T.address_of(stack_shape_1[0]))",
        'T.tvm_struct_set(stack_array, 0, 3, T.reinterpret("handle", T.uint64(0)))',
    ]
    values = ["4, 2", "5, T.uint8(0)", "6, T.uint8(16)", "7, T.uint16(1)", "8, T.uint64(0)", "9, 0", "10, 1"]
    assert text[first + 5 : first + 12] == [f"T.tvm_struct_set(stack_array, 0, {value})" for value in values]
    assert text[first + 12 :] == [
        'T.tvm_struct_set(stack_value, 0, 12, T.tvm_struct_get(stack_array, 0, 0, "handle"))',
        "stack_tcode_1[0] = 7",
        'CALL("sort", stack_value, stack_tcode, 0, 1)',
    ]


def test_calls_of_one_statement_do_not_share_slots_and_statements_do():
    @T.prim_func(private=True)
    def before(A: T.Buffer((4,), "int32"), n: T.int32):
        A[0] = T.call_packed("f", n) + T.call_packed("g", T.call_packed("h", n), n)
        A[1] = T.call_packed("f", n)

    text = shown(lower(before))
    assert '"f", stack_value, stack_tcode, 0, 1) + CALL("g", stack_value, stack_tcode, 2, 4)' in text
    assert '"h", stack_value, stack_tcode, 4, 5)' in text and 'A[1] = CALL("f"' in text
    assert '"arg_value", 6' in text


def test_a_parallel_loop_has_stacks_of_its_own():
    @T.prim_func(private=True)
    def before(n: T.int32):
        for i in T.parallel(8):
            T.evaluate(T.call_packed("f", i, n))
        T.evaluate(T.call_packed("g"))

    func = lower(before)
    loop = collect(func.body, For)[0]
    assert str(func.body.value) == 'T.tvm_stack_alloca("arg_tcode", 1)'
    assert str(loop.body.value) == 'T.tvm_stack_alloca("arg_tcode", 3)' and isinstance(loop.body.body, DeclBuffer)


def test_large_and_foreign_memory_is_workspace():
    @T.prim_func(private=True)
    def before(n: T.int32):
        small = T.decl_buffer((16,))
        large = T.decl_buffer((n, 16))
        small[0] = T.float32(1)
        large[0, 0] = small[0]
        T.attr("on", "device_type", 2)
        T.attr("on", "device_id", 3)
        foreign = T.decl_buffer((16,))
        foreign[0] = T.float32(2)

    func = lower(before)
    memory = [str(let.value) for let in collect(func.body, LetStmt)]
    assert memory == [
        'T.TVMBackendAllocWorkspace(1, 0, T.uint64(4) * T.Cast("uint64", n) * T.uint64(16), 2, 32)',
        "T.TVMBackendAllocWorkspace(2, 3, T.uint64(64), 2, 32)",
    ]
    text = str(func)
    assert text.count("T.tvm_throw_last_error()") == 4 and "if T.TVMBackendFreeWorkspace(2, 3, foreign) != 0:" in text
    assert {attr.attr_key for attr in collect(func.body, AttrStmt)} == {"storage_alignment"}


def test_what_is_not_lowered_is_refused():
    @T.prim_func(private=True)
    def nowhere():
        T.attr("on", "device_type", 2)
        memory = T.decl_buffer((16,))
        memory[0] = T.float32(2)

    @T.prim_func(private=True)
    def choice(A: T.Buffer((4,), "int32"), n: T.int32):
        A[0] = T.if_then_else(n < 4, T.call_packed("f", A[n]), 0)

    @T.prim_func(private=True)
    def symbol(n: T.int32):
        T.evaluate(T.call_cpacked("f", n))

    for func, message in [
        (nowhere, "memory on a device whose device_id no attribute gives"),
        (choice, "call_packed in an expression that is not always computed"),
        (symbol, "a packed call of a C symbol"),
    ]:
        with pytest.raises(DeviceWorkLeft, match=message):
            lower(func)


def test_functions_without_work_and_of_devices_stay():
    @T.prim_func(private=True)
    def idle(A: T.Buffer((4,))):
        for i in T.parallel(4):
            A[i] = T.float32(1)

    @T.prim_func(private=True)
    def kernel():
        T.func_attr({"target": T.target("cuda")})
        T.evaluate(T.call_packed("f"))

    assert lower(idle) is idle and lower(kernel) is kernel
