"""Arrays of foreign code that export no tensor, and strides that DLPack cannot say: errors that name the argument."""

from __future__ import annotations

import numpy as np
import pytest

import loopwright as lw
from loopwright.evaluator import evaluate
from loopwright.runtime.call_errors import ArgumentKindMismatch, StrideMismatch
from loopwright.runtime.tensor import BadTensorData
from loopwright.script import from_source

PROGRAM = """
@T.prim_func
def main(A: T.Buffer((6,), "float32"), B: T.Buffer((6,), "float32")):
    for i in range(6):
        B[i] = A[i] + 1.0
"""


class Exports:
    """An array of somebody else's: `given` is what it exports, or raises."""

    def __init__(self, given: object) -> None:
        self.given = given

    def __dlpack__(self, **_: object) -> object:
        if isinstance(self.given, Exception):
            raise self.given
        return self.given

    def __dlpack_device__(self) -> tuple[int, int]:
        return 1, 0


def used_capsule() -> object:
    capsule = np.zeros(6, "float32").__dlpack__()
    np.from_dlpack(Exports(capsule))
    return capsule


WRONG = {
    "a number": lambda: 3,
    "None": lambda: None,
    "used": used_capsule,
    "ValueError": lambda: ValueError("not today"),
    "BufferError": lambda: BufferError("not today"),
    "KeyError": lambda: KeyError("not today"),
    "RuntimeError": lambda: RuntimeError("not today"),
}


@pytest.fixture(scope="module")
def kernel():
    return lw.build(from_source(PROGRAM))


@pytest.mark.parametrize("what", WRONG)
def test_an_object_that_exports_no_tensor(kernel, what):
    wrong, fine = Exports(WRONG[what]()), np.zeros(6, "float32")
    for number, args in ((1, (wrong, fine)), (2, (fine, wrong))):
        with pytest.raises(ArgumentKindMismatch, match=f"main: argument number {number}: Exports exports no tensor"):
            kernel(*args)
    with pytest.raises(ArgumentKindMismatch, match="main: argument A: Exports exports no tensor"):
        evaluate(from_source(PROGRAM), wrong, fine)
    for take in (lw.nd.array, lw.nd.from_dlpack, lw.nd.empty((6,)).copyfrom):
        with pytest.raises(BadTensorData, match="Exports exports no tensor"):
            take(wrong)


def test_an_object_that_exports_one(kernel):
    given, result = np.arange(6, dtype="float32"), np.zeros(6, "float32")
    kernel(Exports(given.__dlpack__()), result)
    np.testing.assert_array_equal(result, given + 1)


def test_a_field_of_a_packed_record(kernel):
    field, fine = np.zeros(6, [("x", "float32"), ("y", "int16")])["x"], np.zeros(6, "float32")
    message = r"has byte strides \(6,\), which are not whole"
    for number, args in ((1, (field, fine)), (2, (fine, field))):
        with pytest.raises(StrideMismatch, match=f"main: argument number {number} {message}"):
            kernel(*args)
    with pytest.raises(StrideMismatch, match=message):
        evaluate(from_source(PROGRAM), field, fine)
    with pytest.raises(BadTensorData, match="ndarray exports no tensor"):
        lw.nd.from_dlpack(field)
    assert lw.nd.array(field).shape == (6,)


def test_errors_of_functions_that_are_called_stay_what_they_are(kernel):
    lw.register_func("test.foreign_arrays.fails", lambda: {}["missing"], override=True)
    calls = lw.build(
        from_source(
            PROGRAM.replace("    for i", '    T.evaluate(T.call_packed("test.foreign_arrays.fails"))\n    for i')
        )
    )
    with pytest.raises(KeyError, match="missing"):
        calls(np.zeros(6, "float32"), np.zeros(6, "float32"))
