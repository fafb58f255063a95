"""Packed calls from native code: what the function sees, what comes back, and what happens when it fails."""

from __future__ import annotations

import gc
import traceback
import weakref

import numpy as np
import pytest

import loopwright
from loopwright import nd
from loopwright.codegen.llvm.packed_calls import NotAPackedArgument
from loopwright.runtime import register_func, remove_global_func
from loopwright.runtime.call_errors import PackedResultMismatch, UnregisteredFunction
from loopwright.script import tir as T


@pytest.fixture
def packed(request: pytest.FixtureRequest):
    """Register functions for one test."""
    names = []

    def register(name: str, function: object) -> None:
        register_func(name, function, override=True)
        names.append(name)

    yield register
    for name in names:
        remove_global_func(name)


@T.prim_func
def send_everything(A: T.Buffer((2, 3), "float32"), n: T.int32, x: T.float32, B: T.Buffer((1,), "int32")):
    B[0] = T.call_packed("test.see", A, n, x, "text", n > 2, T.int64(-(2**40)), T.uint8(200))


def test_arguments_arrive_as_what_they_are(packed):
    seen = []

    def see(tensor, *others):
        seen.append((tuple(tensor.shape), tuple(tensor.strides), str(tensor.dtype), tensor.numpy().tolist(), *others))
        return 7

    packed("test.see", see)
    b = nd.empty((1,), "int32")
    data = np.arange(6, dtype="float32").reshape(2, 3)
    loopwright.build(send_everything)(data, 5, 0.5, b)
    assert seen == [((2, 3), (3, 1), "float32", data.tolist(), 5, 0.5, "text", True, -(2**40), 200)]
    assert [type(value) for value in seen[0][4:]] == [int, float, type(seen[0][6]), bool, int, int]
    assert b.numpy()[0] == 7


def test_what_the_function_writes_is_seen(packed):
    def double(tensor):
        np.asarray(tensor)[...] *= 2

    @T.prim_func
    def func(A: T.Buffer((4,), "float32")):
        T.evaluate(T.call_packed("test.double", A))
        A[0] = A[0] + T.float32(1)

    packed("test.double", double)
    a = np.arange(1, 5, dtype="float32")
    loopwright.build(func)(a)
    assert a.tolist() == [3, 4, 6, 8]


@pytest.mark.parametrize("dtype", "bool int8 uint16 int64 float16 bfloat16 float64".split())
def test_views_have_their_type(packed, dtype):
    seen = []
    packed("test.dtype", lambda x: seen.append((str(x.dtype), tuple(x.shape))))

    @T.prim_func
    def func(A: T.Buffer((3, 1), dtype)):
        T.evaluate(T.call_packed("test.dtype", A))

    loopwright.build(func)(nd.empty((3, 1), dtype))
    assert seen == [(dtype, (3, 1))]


@pytest.mark.parametrize("shape", [(), (0,), (1,), (5, 0, 2)])
def test_views_of_boundary_shapes(packed, shape):
    seen = []
    packed("test.shape", lambda x: seen.append((tuple(x.shape), x.numpy().size)))

    @T.prim_func
    def func(A: T.Buffer(shape, "float32")):
        T.evaluate(T.call_packed("test.shape", A))

    loopwright.build(func)(nd.empty(shape))
    assert seen == [(shape, int(np.prod(shape)))]


def test_strides_and_symbolic_shapes_travel(packed):
    seen = []
    packed("test.strides", lambda x: seen.append((tuple(x.strides), x.numpy().tolist())))

    @T.prim_func
    def func(a: T.handle, n: T.int32):
        stride, offset = T.int32(), T.int32()
        A = T.match_buffer(a, (n, n), "float32", strides=[stride, 1], elem_offset=offset)
        T.evaluate(T.call_packed("test.strides", A))

    data = np.arange(16, dtype="float32").reshape(4, 4)
    loopwright.build(func)(data[1:3, 1:3], 2)
    assert seen == [((4, 1), [[5, 6], [9, 10]])]


def test_a_part_of_a_buffer_travels_with_its_offset(packed):
    seen = []
    packed("test.part", lambda x: seen.append(x.numpy().tolist()))

    @T.prim_func
    def func(A: T.Buffer((4, 4), "int32")):
        part = T.Buffer((2, 2), "int32", data=A.data, strides=(4, 1), elem_offset=5)
        T.evaluate(T.call_packed("test.part", part))

    loopwright.build(func)(np.arange(16, dtype="int32").reshape(4, 4))
    assert seen == [[[5, 6], [9, 10]]]


def test_a_local_buffer_can_be_filled_by_a_function(packed):
    def fill(tensor):
        np.asarray(tensor)[...] = 3

    packed("test.fill", fill)

    @T.prim_func
    def func(B: T.Buffer((8,), "float32")):
        tmp = T.alloc_buffer((8,), "float32")
        T.evaluate(T.call_packed("test.fill", tmp))
        for i in range(8):
            B[i] = tmp[i] + T.float32(1)

    b = nd.empty((8,))
    loopwright.build(func)(b)
    assert b.numpy().tolist() == [4] * 8


def test_the_exception_arrives_itself_with_its_traceback(packed):
    mine = KeyError("deep inside")

    def fail(*_):
        raise mine

    packed("test.fail", fail)

    @T.prim_func
    def func(A: T.Buffer((4,), "float32")):
        A[0] = T.float32(1)
        T.evaluate(T.call_packed("test.fail", A))
        A[1] = T.float32(1)

    a = np.zeros(4, "float32")
    with pytest.raises(KeyError) as caught:
        loopwright.build(func)(a)
    assert caught.value is mine
    assert "fail" in [frame.name for frame in traceback.extract_tb(mine.__traceback__)]
    assert a.tolist() == [1, 0, 0, 0]  # nothing after the call ran


def test_an_exception_leaves_a_parallel_loop(packed):
    def fail(i):
        if i == 3:
            raise ValueError("iteration 3")

    packed("test.fail_at", fail)

    @T.prim_func
    def func(A: T.Buffer((8,), "float32")):
        for i in T.parallel(8):
            T.evaluate(T.call_packed("test.fail_at", i))

    module = loopwright.build(func)
    for _ in range(3):
        with pytest.raises(ValueError, match="iteration 3"):
            module(nd.empty((8,)))


def test_a_function_nobody_registered():
    @T.prim_func
    def func(A: T.Buffer((4,), "float32")):
        T.evaluate(T.call_packed("test.nobody", A))

    module = loopwright.build(func)  # looked up when called: it may be registered until then
    with pytest.raises(UnregisteredFunction, match=r"no function is registered as 'test\.nobody'"):
        module(nd.empty((4,)))
    register_func("test.nobody", lambda _: None)
    module(nd.empty((4,)))
    remove_global_func("test.nobody")
    module(nd.empty((4,)))  # what was found once is kept


@pytest.mark.parametrize(("value", "expected"), [(3, 3), (True, 1), (None, 0), (-1, -1)])
def test_results_as_integers(packed, value, expected):
    packed("test.value", lambda: value)

    @T.prim_func
    def func(A: T.Buffer((1,), "int32")):
        A[0] = T.call_packed("test.value")

    a = nd.empty((1,), "int32")
    loopwright.build(func)(a)
    assert a.numpy()[0] == expected


@pytest.mark.parametrize("value", [1.5, "three", [1, 2]])
def test_results_that_do_not_fit(packed, value):
    packed("test.value", lambda: value)

    @T.prim_func
    def func(A: T.Buffer((1,), "int32")):
        A[0] = T.call_packed("test.value")

    with pytest.raises(PackedResultMismatch, match=r"'test.value' returned something else than a number of type int32"):
        loopwright.build(func)(nd.empty((1,), "int32"))


def test_results_nobody_uses_may_be_anything_and_are_released(packed):
    class Result:
        pass

    made = []

    def give():
        made.append(weakref.ref(one := Result()))
        return one

    packed("test.object", give)

    @T.prim_func
    def func(A: T.Buffer((1,), "int32")):
        T.evaluate(T.call_packed("test.object"))
        A[0] = 1

    loopwright.build(func)(nd.empty((1,), "int32"))
    gc.collect()
    assert [one() for one in made] == [None]


def test_cpacked_calls_a_function_of_the_same_module():
    @loopwright.script.ir_module
    class Module:
        @T.prim_func
        def main(A: T.Buffer((4,), "float32")):
            T.func_attr({"global_symbol": "main"})
            T.evaluate(T.call_cpacked("add_one", A))

        @T.prim_func
        def add_one(A: T.Buffer((4,), "float32")):
            T.func_attr({"global_symbol": "add_one"})
            for i in range(4):
                A[i] = A[i] + T.float32(1)

    a = np.zeros(4, "float32")
    loopwright.build(Module)["main"](a)
    assert a.tolist() == [1] * 4


def test_a_vector_is_no_argument():
    @T.prim_func
    def func(A: T.Buffer((4,), "float32")):
        T.evaluate(T.call_packed("test.vector", T.Broadcast(T.float32(1), 4)))

    with pytest.raises(NotAPackedArgument, match=r"call_packed\('test.vector'\): argument 1 is a float32x4"):
        loopwright.build(func)


def test_the_module_lists_what_it_calls():
    assert loopwright.build(send_everything).metadata["packed"] == ("test.see",)
