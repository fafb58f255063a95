"""Functions in a subset of Python that run as Python, and compile."""

import numpy as np
import tvm
import tvm.testing
from tvm import te
from tvm.te import hybrid


@te.hybrid.script
def outer_product(a, b):
    c = output_tensor((a.shape[0], b.shape[0]), "float32")
    for i in range(a.shape[0]):
        for j in range(b.shape[0]):
            c[i, j] = a[i] * b[j]
    return c


@hybrid.script
def blur(a):
    b = output_tensor((30, 30), "float32")
    for i in range(30):
        for j in range(30):
            s = float32(0.0)
            for di in range(3):
                for dj in range(3):
                    s += a[i + di, j + dj]
            b[i, j] = s / 9.0
    return b


@hybrid.script
def signs(a):
    positive = output_tensor((a.shape[0],), "int32")
    root = output_tensor((a.shape[0],), "float32")
    for i in parallel(a.shape[0]):
        if a[i] > 0.0:
            positive[i] = 1
            root[i] = sqrt(a[i])
        elif a[i] < 0.0:
            positive[i] = -1
            root[i] = 0.0
        else:
            positive[i] = 0
            root[i] = 0.0
    return positive, root


def compiled(args, *arrays):
    func = tvm.build(te.create_prim_func(args), target="llvm")
    given = [tvm.nd.array(array) for array in arrays]
    func(*given)
    return [array.numpy() for array in given]


def check_outer_product():
    a, b = np.random.rand(6).astype("float32"), np.random.rand(9).astype("float32")
    tvm.testing.assert_allclose(outer_product(a, b), np.outer(a, b))  # as plain Python
    A, B = te.placeholder((6,), name="a"), te.placeholder((9,), name="b")
    C = outer_product(A, B)
    assert isinstance(C.op, te.HybridOp)
    np.testing.assert_array_equal(compiled([A, B, C], a, b, np.zeros((6, 9), "float32"))[2], np.outer(a, b))


def check_blur():
    a = np.random.rand(32, 32).astype("float32")
    expected = sum(a[i : i + 30, j : j + 30].astype("float64") for i in range(3) for j in range(3)) / 9
    tvm.testing.assert_allclose(blur(a), expected, rtol=1e-5)
    A = te.placeholder((32, 32), name="a")
    scaled = te.compute((32, 32), lambda i, j: A[i, j] * 2.0, name="scaled")
    B = blur(scaled)  # in the middle of other stages
    C = te.compute((30, 30), lambda i, j: B[i, j] + 1.0, name="C")
    tvm.testing.assert_allclose(compiled([A, C], a, np.zeros((30, 30), "float32"))[1], 2 * expected + 1, rtol=1e-5)


def check_signs():
    a = np.array([1.0, -2.0, 0.0, 4.0, -0.5], "float32")
    A = te.placeholder((5,), name="a")
    positive, root = signs(A)
    got = compiled([A, positive, root], a, np.zeros(5, "int32"), np.zeros(5, "float32"))
    np.testing.assert_array_equal(got[1], np.sign(a).astype("int32"))
    tvm.testing.assert_allclose(got[2], np.sqrt(np.maximum(a, 0)), rtol=1e-6)


if __name__ == "__main__":
    np.random.seed(4)
    check_outer_product()
    check_blur()
    check_signs()
    print("ok")
