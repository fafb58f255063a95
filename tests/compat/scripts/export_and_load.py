"""Write compiled functions to files, and load them again."""

import os
import sys

import numpy as np
import tvm
import tvm.testing
from tvm import te
from tvm.contrib import cc, utils

n = te.var("n")
A = te.placeholder((n,), name="A")
B = te.compute(A.shape, lambda i: A[i] + 1.0, name="B")
C = te.compute(A.shape, lambda i: A[i] * 2.0, name="C")

mod = tvm.IRModule(
    {
        "add_one": te.create_prim_func([A, B]).with_attr("global_symbol", "add_one"),
        "twice": te.create_prim_func([A, C]).with_attr("global_symbol", "twice"),
    }
)
temp = utils.tempdir()


def check(loaded):
    x = np.arange(37, dtype="float32")
    for name, expected in (("add_one", x + 1), ("twice", x * 2)):
        y = tvm.nd.array(np.zeros_like(x))
        loaded[name](tvm.nd.array(x), y)
        np.testing.assert_array_equal(y.numpy(), expected)


def shared_library(built):
    path = temp.relpath("lib.so")
    built.export_library(path)
    assert os.path.exists(path)
    check(tvm.runtime.load_module(path))
    # The compiler can be one's own.
    other = temp.relpath("other.so")
    built.export_library(other, fcompile=cc.create_shared)
    check(tvm.runtime.load_module(other))


def archive(built):
    path = temp.relpath("lib.tar")
    built.export_library(path)
    check(tvm.runtime.load_module(path))


def object_file(built):
    path = temp.relpath("lib.o")
    built.save(path)
    assert os.path.getsize(path) > 0
    library = temp.relpath("from_object.so")
    cc.create_shared(library, [path])
    check(tvm.runtime.load_module(library))


def what_is_missing():
    try:
        tvm.runtime.load_module(temp.relpath("nothing.so"))
    except ValueError:
        pass
    else:
        raise AssertionError("a missing file was loaded")
    loaded = tvm.runtime.load_module(temp.relpath("lib.so"))
    try:
        loaded["three_times"]
    except AttributeError as error:
        assert "three_times" in str(error)
    else:
        raise AssertionError("a missing function was found")


if __name__ == "__main__":
    built = tvm.build(mod, target="llvm")
    check(built)
    shared_library(built)
    archive(built)
    object_file(built)
    what_is_missing()
    assert sorted(name for name in temp.listdir() if name.endswith(".so")) == ["from_object.so", "lib.so", "other.so"]
    print(f"exported for {sys.platform}")
    print("ok")
