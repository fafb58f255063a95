"""Calls with numpy arrays straight from the interpreter: what passes, what goes the other way, and who keeps it."""

from __future__ import annotations

import ctypes
import gc
import pickle
import sys
import threading
import weakref

import ml_dtypes
import numpy as np
import pytest

from loopwright.runtime import array_call, ffi
from loopwright.runtime.dlpack import _DLTensor, dlpack_type, view_memory
from loopwright.runtime.dtype import DataType
from tests.runtime.native_call import SAFE_CALL, Value

FLOAT32 = DataType("float32")
ELSEWHERE = "elsewhere"


class Function:
    """A compiled function: what it was given, and what it does with the arrays."""

    def __init__(self, body=lambda *arrays: None):
        self.tensors = []

        @SAFE_CALL
        def entry(_handle, args, count, _result):
            values = list((Value * count).from_address(args))
            assert all(value.type_index == 7 and value.padding == 0 for value in values)
            self.tensors = [_DLTensor.from_address(value.value) for value in values]
            return body(*map(as_array, self.tensors)) or 0

        self.entry = entry
        self.address = ctypes.cast(entry, ctypes.c_void_p).value


def as_array(tensor):
    shape = tuple(tensor.shape[: tensor.ndim]) if tensor.ndim else ()
    kinds = [DataType(name) for name in ("bool", "int8", "int64", "float16", "bfloat16", "float32", "float64")]
    (dtype,) = [k for k in kinds if dlpack_type(k) == (tensor.type_code, tensor.bits, tensor.lanes)]
    strides = tuple(int(np.prod(shape[axis + 1 :])) for axis in range(len(shape)))
    assert not tensor.strides and tensor.byte_offset == 0 and (tensor.device_type, tensor.device_id) == (1, 0)
    return view_memory(tensor.data or 0, shape, strides, dtype, None)


def made(function, inputs, outputs, sizes, otherwise=lambda *_: ELSEWHERE, owner=None):
    call = array_call.array_call(function.address, inputs, outputs, sizes, otherwise, (function, owner))
    if call is None:
        pytest.skip(f"there is no native part: {array_call.why_not()}")
    return call


@pytest.fixture(scope="module")
def add():
    """x + y for float32 arrays of rank 2 and of the sizes of x."""

    def body(x, y, z):
        np.add(x, y, out=z)

    return made(Function(body), [(FLOAT32, 2), (FLOAT32, 2)], [(FLOAT32, 2)], [~0, ~1])


def arrays(shape=(2, 3), dtype="float32"):
    x = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    return x, np.ascontiguousarray(x[::-1])


@pytest.mark.parametrize("shape", [(2, 3), (1, 1), (0, 4), (4, 0), (7, 131)])
def test_an_output_is_fresh_and_has_the_sizes_of_an_input(add, shape):
    x, y = arrays(shape)
    first, second = add(x, y), add(x, y)
    assert type(first) is np.ndarray and first.flags.owndata and first.flags.c_contiguous and first is not second
    assert first.dtype == np.float32 and first.shape == shape
    np.testing.assert_array_equal(first, x + y)


def test_what_is_read_may_be_read_only_and_the_same_array_twice(add):
    x, _ = arrays()
    x.flags.writeable = False
    np.testing.assert_array_equal(add(x, x), x + x)


def test_arrays_that_were_pickled_pass(add):
    x, y = arrays()
    again = pickle.loads(pickle.dumps(x))
    assert again.dtype is not x.dtype
    np.testing.assert_array_equal(add(again, y), x + y)
    other_bytes = pickle.loads(pickle.dumps(np.dtype(">f4")))
    assert add(x.astype(other_bytes), y) == ELSEWHERE


class Own(np.ndarray):
    pass


def misaligned(x):
    room = np.zeros(x.nbytes + 1, "uint8")[1:].view("float32").reshape(x.shape)
    room[:] = x
    return room


OTHERS = {
    "a subclass": lambda x: x.view(Own),
    "by columns": np.asfortranarray,
    "reversed": lambda x: x[::-1],
    "every other": lambda x: np.repeat(x, 2, axis=1)[:, ::2],
    "spread": lambda x: np.broadcast_to(x[:1], x.shape),
    "other bytes": lambda x: x.astype(">f4"),
    "another type": lambda x: x.astype("float64"),
    "the same width": lambda x: x.view("int32"),
    "another rank": lambda x: x[None],
    "misaligned": misaligned,
    "a list": lambda x: x.tolist(),
    "a number": lambda x: 1.0,
    "none": lambda x: None,
    "a type": lambda x: np.ndarray,
    "a memoryview": memoryview,
}


@pytest.mark.parametrize("change", OTHERS.values(), ids=OTHERS)
@pytest.mark.parametrize("position", [0, 1])
def test_anything_else_goes_the_other_way_untouched(add, change, position):
    seen = []
    x, y = arrays()
    given = [x, y]
    given[position] = change(x)
    assert add(*given) == ELSEWHERE
    function = Function()
    call = made(
        function, [(FLOAT32, 2)] * 2, [(FLOAT32, 2)], [2, 3], otherwise=lambda *args: seen.extend(args) or ELSEWHERE
    )
    assert call(*given) == ELSEWHERE and not function.tensors
    assert [id(value) for value in seen] == [id(value) for value in given]


@pytest.mark.parametrize("count", [0, 1, 3])
def test_another_number_of_arguments_goes_the_other_way(add, count):
    assert add(*[arrays()[0]] * count) == ELSEWHERE


def test_names_are_refused(add):
    with pytest.raises(TypeError, match="keyword"):
        add(x=arrays()[0])


def test_what_the_function_refuses_goes_the_other_way_and_leaves_no_error():
    raise_error = ffi.load().LIB.TVMFFIErrorSetRaisedFromCStr

    def body(*_):
        raise_error(ctypes.c_char_p(b"ShapeMismatch"), ctypes.c_char_p(b"not that"))
        return -1

    call = made(Function(body), [(FLOAT32, 1)], [(FLOAT32, 1)], [3])
    assert call(np.zeros(3, "float32")) == ELSEWHERE
    error = ctypes.c_void_p()
    ffi.load().LIB.TVMFFIErrorMoveFromRaised(ctypes.byref(error))
    assert not error.value


def test_an_error_of_the_other_way_is_raised():
    def otherwise(*_):
        raise KeyError("not that")

    call = made(Function(), [(FLOAT32, 1)], [(FLOAT32, 1)], [3], otherwise)
    with pytest.raises(KeyError, match="not that"):
        call(3)


def test_an_output_too_large_for_memory_is_numpys_error():
    call = made(Function(), [], [(FLOAT32, 2), (FLOAT32, 2)], [2, 2, 1 << 30, 1 << 30])
    with pytest.raises(MemoryError):
        call()


def test_several_outputs_of_any_rank_are_a_list():
    def body(x, total, pair):
        total[...] = x.sum()
        pair[:] = x.min(), x.max()

    function = Function(body)
    call = made(function, [(FLOAT32, 1)], [(DataType("float64"), 0), (FLOAT32, 1)], [2])
    total, pair = call(np.arange(5, dtype="float32"))
    assert total.shape == () and total == 10 and pair.tolist() == [0, 4]


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "float16", "bfloat16", "float64"])
def test_element_types(dtype):
    kind = DataType(dtype)

    def body(x, y):
        y[:] = x[::-1]

    call = made(Function(body), [(kind, 1)], [(kind, 1)], [~0])
    x = np.array([1, 0, 0, 1, 1]).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    result = call(x)
    assert result.dtype == x.dtype
    np.testing.assert_array_equal(result, x[::-1])


def test_many_arguments():
    count = 300

    def body(*arrays):
        for k, x in enumerate(arrays[:-1]):
            arrays[-1][k] = x[0]

    call = made(Function(body), [(FLOAT32, 1)] * count, [(FLOAT32, 1)], [count])
    given = [np.full(2, k, "float32") for k in range(count)]
    np.testing.assert_array_equal(call(*given), np.arange(count))
    assert array_call.array_call(1, [(FLOAT32, 1)] * 5000, [(FLOAT32, 1)], [1], print, None) is None


def test_types_that_are_no_elements_of_an_array_have_no_such_call():
    for dtype in ("float32x4", "int4"):
        assert array_call.array_call(1, [(DataType(dtype), 1)], [(FLOAT32, 1)], [1], print, None) is None
    assert array_call.array_call(1, [(FLOAT32, 1)], [], [], print, None) is None


def test_references_are_given_back(add):
    x, y = arrays()
    objects = (x, y, np.dtype("float32"), ELSEWHERE)
    before = [sys.getrefcount(one) for one in objects]
    for _ in range(100):
        add(x, y)
        add(x, 1)
        add(x)
    assert [sys.getrefcount(one) for one in objects] == before


def test_the_code_lives_as_long_as_the_call():
    class Engine:
        pass

    engine = Engine()
    alive = weakref.ref(engine)
    call = made(Function(), [(FLOAT32, 1)], [(FLOAT32, 1)], [1], owner=engine)
    del engine
    gc.collect()
    assert alive() is not None and call(np.zeros(1, "float32")).shape == (1,)
    del call
    gc.collect()
    assert alive() is None


def test_threads_call_at_once_and_the_gil_is_released():
    meeting = threading.Barrier(4, timeout=30)

    def body(x, y):
        meeting.wait()  # all of them are inside
        y[:] = x

    call = made(Function(body), [(FLOAT32, 1)], [(FLOAT32, 1)], [~0])
    given = [np.full(3 + k, k, "float32") for k in range(4)]
    results = {}

    def run(k):
        for _ in range(5):
            results[k] = call(given[k])

    threads = [threading.Thread(target=run, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k, x in enumerate(given):
        np.testing.assert_array_equal(results[k], x)


def test_without_the_native_part_there_is_no_such_call(monkeypatch):
    monkeypatch.setattr(array_call, "_library", lambda: None)
    assert array_call.array_call(1, [(FLOAT32, 1)], [(FLOAT32, 1)], [1], print, None) is None
    assert array_call.why_not()


def test_an_unknown_numpy_is_left_alone(monkeypatch):
    monkeypatch.setattr(array_call, "_NUMPY_ABIS", (3,))
    assert array_call._interpreter() is None
    monkeypatch.undo()
    assert array_call._fields_are_as_read(object.__basicsize__)
    assert not array_call._fields_are_as_read(object.__basicsize__ + 8)
