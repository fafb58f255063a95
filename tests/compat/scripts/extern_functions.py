"""Tensors that are computed by someone else: a registered Python function, and a loop written by hand."""

import numpy as np
import tvm
import tvm.testing
from tvm import te

calls = []


@tvm.register_func("tvm.contrib.my_matmul")
def my_matmul(a, b, c, transpose):
    calls.append(transpose)
    left = a.numpy()
    tvm.nd.array((left.T if transpose else left) @ b.numpy()).copyto(c)


@tvm.register_func("tvm.contrib.my_tvm_addone")
def my_tvm_addone(x, y):
    """Gets views of the caller's memory."""
    print(f"my_tvm_addone signatures: {type(x).__name__}, {type(y).__name__}")
    tvm.nd.array(x.numpy() + 1).copyto(y)


def product_then_bias():
    n, l, m = 12, 7, 9
    A = te.placeholder((n, l), name="A")
    B = te.placeholder((l, m), name="B")
    bias = te.placeholder((), name="bias")
    C = te.extern(
        (n, m),
        [A, B],
        lambda ins, outs: tvm.tir.call_packed("tvm.contrib.my_matmul", ins[0], ins[1], outs[0], 0),
        name="C",
    )
    assert isinstance(C.op, te.ExternOp)
    D = te.compute(C.shape, lambda i, j: C[i, j] + bias(), name="D")

    f = tvm.build(te.create_prim_func([A, B, D, bias]), target="llvm")
    a = np.random.uniform(size=(n, l)).astype("float32")
    b = np.random.uniform(size=(l, m)).astype("float32")
    d = tvm.nd.array(np.zeros((n, m), dtype="float32"))
    bb = np.array(10.0, "float32")
    f(tvm.nd.array(a), tvm.nd.array(b), d, tvm.nd.array(bb))
    tvm.testing.assert_allclose(d.numpy(), np.dot(a, b) + 10, rtol=1e-5)
    assert calls == [0]


def between_other_stages():
    n = 17
    A = te.placeholder((n,), name="A")
    doubled = te.compute((n,), lambda i: A[i] * 2.0, name="doubled")
    B = te.extern(
        doubled.shape,
        [doubled],
        lambda ins, outs: tvm.tir.call_packed("tvm.contrib.my_tvm_addone", ins[0], outs[0]),
        name="B",
    )
    f = tvm.build(te.create_prim_func([A, B]), target="llvm")
    a = tvm.nd.array(np.random.uniform(size=(n,)).astype("float32"))
    b = tvm.nd.array(np.zeros(n, dtype="float32"))
    f(a, b)
    tvm.testing.assert_allclose(b.numpy(), a.numpy() * 2 + 1, rtol=1e-6)


def a_loop_by_hand():
    n = 20
    A = te.placeholder((n,), name="A")

    def body(ins, outs):
        ib = tvm.tir.ir_builder.create()
        src, dst = ib.buffer_ptr(ins[0]), ib.buffer_ptr(outs[0])
        with ib.for_range(0, n, name="i") as i:
            with ib.if_scope(i < n - 1):
                dst[i] = src[i + 1] - src[i]
            with ib.else_scope():
                dst[i] = 0.0
        return ib.get()

    B = te.extern((n,), [A], body, name="difference", dtype="float32")
    f = tvm.build(te.create_prim_func([A, B]), target="llvm")
    a = np.random.uniform(size=n).astype("float32")
    b = tvm.nd.array(np.zeros(n, dtype="float32"))
    f(tvm.nd.array(a), b)
    np.testing.assert_array_equal(b.numpy(), np.append(np.diff(a), np.float32(0)))


def errors_come_back():
    @tvm.register_func("tvm.contrib.refuses")
    def refuses(x):
        raise KeyError("nothing for you")

    A = te.placeholder((4,), name="A")
    B = te.extern(
        (4,), [A], lambda ins, outs: tvm.tir.call_packed("tvm.contrib.refuses", ins[0]), name="B", dtype="float32"
    )
    f = tvm.build(te.create_prim_func([A, B]), target="llvm")
    array = tvm.nd.array(np.zeros(4, "float32"))
    try:
        f(array, tvm.nd.array(np.zeros(4, "float32")))
    except KeyError as error:
        assert "nothing for you" in str(error)
    else:
        raise AssertionError("the exception was lost")


if __name__ == "__main__":
    np.random.seed(3)
    product_then_bias()
    between_other_stages()
    a_loop_by_hand()
    errors_come_back()
    print("ok")
