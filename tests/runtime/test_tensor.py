from __future__ import annotations

import gc
import pickle

import ml_dtypes
import numpy as np
import pytest
from native_call import native

from loopwright import nd
from loopwright.runtime.dtype import DataType
from loopwright.runtime.registry import convert
from loopwright.runtime.tensor import BadTensorData, as_argument

DTYPES = (
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 float32 float64 bfloat16 e4m3_float8 e5m2_float8"
)


@pytest.mark.parametrize("dtype", DTYPES.split())
@pytest.mark.parametrize("shape", [(), (0,), (1,), (3, 0, 2), (7, 13)])
def test_round_trip_of_every_type(dtype: str, shape: tuple[int, ...]):
    data = np.arange(np.prod(shape)).reshape(shape).astype(DataType(dtype).numpy())
    tensor = nd.array(data)
    assert tensor.dtype == dtype
    assert tensor.shape == shape
    assert tensor.numpy().dtype == data.dtype
    assert tensor.numpy().tobytes() == data.tobytes()
    assert tensor.data_ptr() % 64 == 0
    assert pickle.loads(pickle.dumps(tensor)).numpy().tobytes() == data.tobytes()


def test_array_copies_and_numpy_copies():
    data = np.arange(3.0)
    tensor = nd.array(data)
    data[0] = 9
    seen = tensor.numpy()
    seen[1] = 9
    assert tensor.numpy().tolist() == [0, 1, 2]


def test_lists_and_numbers_become_tensors_with_numpys_types():
    assert nd.array([[1, 2], [3, 4]]).dtype == "int64"
    assert nd.array(1.5).shape == ()
    assert nd.array([1.0]).dtype == "float64"


def test_memory_is_shared_with_numpy_both_ways():
    data = np.arange(6.0).reshape(2, 3)
    tensor = nd.from_dlpack(data)
    data[0, 0] = 5
    assert tensor.numpy()[0, 0] == 5
    np.asarray(tensor)[1, 2] = 7
    assert data[1, 2] == 7
    assert np.shares_memory(np.from_dlpack(tensor), data)


def test_a_view_keeps_the_memory_alive():
    view = np.asarray(nd.array(np.full(1000, 3.0)))
    gc.collect()
    nd.array(np.zeros(1000))
    assert (view == 3).all()


def test_shared_tensors_keep_strides():
    tensor = nd.from_dlpack(np.arange(6.0).reshape(2, 3).T)
    assert tensor.strides == (1, 3)
    assert tensor.numpy().tolist() == [[0, 3], [1, 4], [2, 5]]


def test_ml_dtypes_are_shared_not_copied():
    data = np.arange(4).astype(ml_dtypes.bfloat16)
    tensor = nd.numpyasarray(data)
    assert (tensor.dtype, tensor.data_ptr()) == ("bfloat16", data.ctypes.data)


def test_vector_types_add_a_trailing_axis():
    tensor = nd.empty((3, 2), "float32x4")
    tensor[:] = np.arange(24).reshape(3, 2, 4)
    assert (tensor.shape, tensor.dtype, tensor.strides) == ((3, 2), "float32x4", (2, 1))
    assert tensor.numpy().shape == (3, 2, 4)
    assert tensor.numpy()[2, 1, 3] == 23
    assert pickle.loads(pickle.dumps(tensor)).dtype == "float32x4"


def test_copyfrom_casts_and_checks_the_shape():
    tensor = nd.empty((2,), "int32").copyfrom([1.9, -1.9])
    assert tensor.numpy().tolist() == [1, -1]
    with pytest.raises(ValueError, match=r"the tensor has shape \(2,\), the data has shape \(3,\)"):
        tensor.copyfrom(np.zeros(3))


def test_bfloat16_may_come_as_its_bits():
    tensor = nd.empty((1,), "bfloat16").copyfrom(np.array([0x3F80], np.uint16))
    assert float(tensor.numpy()[0]) == 1.0
    pairs = nd.empty((1,), "bfloat16x2").copyfrom(np.array([[0x3F80, 0x4000]], np.uint16))
    assert pairs.numpy().astype("float32").tolist() == [[1.0, 2.0]]
    assert nd.empty((1, 2), "uint16").copyfrom(pairs).numpy().tolist() == [[0x3F80, 0x4000]]


def test_copyto_a_tensor_and_a_device():
    source = nd.array([1.0, 2.0])
    target = nd.empty((2,), "float32")
    assert source.copyto(target) is target
    assert target.numpy().tolist() == [1, 2]
    copy = source.copyto(nd.cpu(0))
    assert not copy.same_as(source)
    assert copy.numpy().tolist() == [1, 2]
    with pytest.raises(TypeError, match="must be an NDArray or a Device, not int"):
        source.copyto(3)


def test_only_the_whole_tensor_is_assigned():
    tensor = nd.empty((2, 2))
    tensor[:] = 4
    tensor[...] = np.asarray(tensor) + 1
    assert tensor.numpy().tolist() == [[5, 5], [5, 5]]
    with pytest.raises(BadTensorData, match=r"only the whole tensor can be assigned, not \[0\]"):
        tensor[0] = 1


def test_equality_is_identity():
    tensor = nd.array([1.0])
    assert tensor == tensor
    assert tensor != nd.array([1.0])
    assert tensor.same_as(tensor)


def test_views_share_memory():
    tensor = nd.array(np.arange(6))
    view = tensor._create_view((2, 3))
    view[:] = 1
    assert tensor.numpy().tolist() == [1] * 6
    with pytest.raises(ValueError, match=r"shape \(4,\) has not as many elements as \(6,\)"):
        tensor._create_view((4,))
    with pytest.raises(ValueError, match="do not lie next to each other"):
        nd.from_dlpack(np.arange(6)[::2])._create_view((3,))


@pytest.mark.parametrize("bad", [["a"], [[1], [1, 2]], [object()]])
def test_what_is_no_tensor_data_is_refused(bad: object):
    with pytest.raises(ValueError, match="is no tensor data"):
        nd.array(bad)


def test_impossible_shapes_are_refused():
    with pytest.raises(ValueError, match="negative length"):
        nd.empty((2, -1))
    with pytest.raises(ValueError, match="larger than the address space"):
        nd.empty((1 << 62,))
    with pytest.raises(ValueError, match="no memory scope 'shared'"):
        nd.empty((2,), mem_scope="shared")
    with pytest.raises(TypeError, match="a device is needed, not str"):
        nd.empty((2,), device="cpu")


def test_functions_give_and_take_ndarrays():
    tensor = nd.array([1.0, 2.0])
    seen = convert(lambda x: x)(tensor)
    assert type(seen) is nd.NDArray
    assert seen.data_ptr() == tensor.data_ptr()
    pointers = []
    native(lambda values: pointers.append(values[0].type_index))(tensor)
    assert pointers == [70]


def test_as_argument_retypes_only_what_numpy_does_not_export():
    plain, locked = np.zeros(3), np.zeros(3)
    locked.flags.writeable = False
    assert as_argument(plain) is plain
    assert as_argument(5) == 5
    shared = as_argument(locked)
    assert shared.data_ptr() == locked.ctypes.data
    assert as_argument(np.zeros(3, ml_dtypes.bfloat16)).dtype == "bfloat16"
    assert as_argument(np.broadcast_to(np.zeros(3), (2, 3))).strides == (0, 1)


def test_repr_shows_the_data():
    assert "NDArray shape=(2,), dtype=float64, cpu(0)" in repr(nd.array([1.0, 2.0]))
