"""Concatenations whose inputs are written in place: fewer launches, the same results, and memory that does not grow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import loopwright as lw
from loopwright import relay
from loopwright.contrib import graph_executor
from loopwright.model import BadProgram, KernelMismatch, c_module, compile_program
from loopwright.model.program import Launch, Part, Program, Value

Build = Callable[[Any], Any]


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype("float32")


def conv(x: Any, channels: int, window: int = 1, seed: int = 1) -> Any:
    # The largest sums here, of three convolutions of numbers up to 3 by weights up to 1, are below 2^24: all are exact.
    weight = relay.const(np.sign(numbers(window, window, channels_of(x), channels, seed=seed)))
    return relay.nn.relu(
        relay.nn.conv2d(x, weight, padding=(window // 2,) * 2, data_layout="NHWC", kernel_layout="HWIO")
    )


def channels_of(x: Any) -> int:
    module = relay.IRModule.from_expr(relay.Function(relay.analysis.free_vars(x), x))
    return int(relay.transform.InferType()(module)["main"].body.checked_type.shape[-1])


def pool(x: Any) -> Any:
    return relay.nn.max_pool2d(x, (3, 3), (1, 1), padding=(1, 1, 1, 1), layout="NHWC")


def join(*parts: Any, axis: int = 3) -> Any:
    return relay.concatenate(list(parts), axis)


def built(build: Build, shape: tuple[int, ...] = (1, 6, 7, 16)) -> Any:
    """The model of what `build` makes of an input, after its results were found to be those of the interpreter."""
    x = relay.var("x", shape=shape)
    module = relay.IRModule.from_expr(relay.Function([x], build(x)))
    given = numbers(*shape, seed=9)
    expected = relay.create_executor("debug", module).evaluate()(given)
    model = relay.build(module, "llvm")
    for found in (model(given), model(given)):  # the second time in memory that holds something
        for one, other in zip(listed(found), listed(expected), strict=True):
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    return model


def listed(found: Any) -> list[Any]:
    return list(found) if isinstance(found, (list, tuple)) else [found]


def copies(model: Any) -> int:
    """Launches that do nothing but concatenate, or copy into a whole."""
    functions = model.program.attrs["functions"]
    return sum(
        launch not in functions or str(functions[launch].body.attrs.op_name) == "concatenate"
        for launch in model.program.launches()
    )


def parts(model: Any) -> list[Part]:
    return [part for launch in model.program.launches() for part in launch.parts if part is not None]


def test_branches_write_into_the_whole() -> None:
    model = built(lambda x: pool(join(conv(x, 32), conv(x, 16, 3, seed=2), pool(x))))
    assert copies(model) == 0
    assert parts(model) == [Part(3, 0, 32), Part(3, 32, 16), Part(3, 48, 16)]


def test_parts_of_parts_are_parts_of_the_whole() -> None:
    def dense(x: Any) -> Any:
        first = join(conv(x, 16), conv(x, 32, seed=2))
        second = join(first, conv(pool(first), 16, 3, seed=3))
        third = join(second, conv(pool(second), 32, 3, seed=4))
        return pool(third)

    model = built(dense)
    assert copies(model) == 0
    wholes = {launch.arguments[k].shape for launch in model.program.launches() for k, p in enumerate(launch.parts) if p}
    assert wholes == {(1, 6, 7, 96)}
    assert {part.start for part in parts(model)} == {0, 16, 48, 64}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
def test_every_axis(axis: int) -> None:
    model = built(lambda x: pool(join(conv(x, 32), conv(x, 32, seed=2), axis=axis)), (1, 4, 4, 16))
    assert copies(model) == 0


BRANCHES: dict[str, tuple[Build, int]] = {
    "twice the same": (lambda x: twice(conv(x, 16)), 1),
    "of two wholes": (lambda x: shared(conv(x, 16), conv(x, 16, seed=2), pool(x)), 1),
    "an input": (lambda x: pool(join(x, conv(x, 16))), 1),
    "a constant": (lambda x: pool(join(conv(x, 16), relay.const(numbers(1, 6, 7, 5)))), 1),
    "not aligned": (lambda x: pool(join(conv(x, 3), conv(x, 16, seed=2))), 1),
    "a view of another": (lambda x: pool(join(conv(x, 16), turned(x))), 1),
    "an output as well": (lambda x: relay.Tuple(with_part(conv(x, 16), pool(x))), 1),
    "all of it an output": (lambda x: join(conv(x, 16), pool(x)), 1),
    "only inputs": (lambda x: pool(join(x, x)), 1),
}


def turned(x: Any) -> Any:
    return relay.reshape(pool(relay.reshape(x, (1, 7, 6, 16))), (1, 6, 7, 16))


def twice(y: Any) -> Any:
    return pool(join(y, pool(y), y))


def shared(a: Any, b: Any, c: Any) -> Any:
    return relay.add(pool(join(a, b)), pool(join(c, a)))


def with_part(a: Any, b: Any) -> list[Any]:
    return [a, pool(join(a, b))]


@pytest.mark.one_in(3)
@pytest.mark.parametrize("name", BRANCHES)
def test_what_cannot_be_a_part_is_copied(name: str) -> None:
    build, at_least = BRANCHES[name]
    assert copies(built(build)) >= at_least


def test_a_value_of_two_wholes() -> None:
    build, _ = BRANCHES["of two wholes"]
    assert copies(built(build)) == 1


def test_parts_along_another_axis_of_a_value_of_two_wholes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("loopwright.relay.lower.concat_in_place.MORE_MEMORY", 10.0)

    def crossed(x: Any) -> Any:
        shared_part = conv(x, 16)
        along_lines = join(shared_part, pool(x), axis=1)
        other = conv(pool(join(x, x, axis=1)), 16, seed=2)
        last = pool(join(shared_part, conv(x, 16, seed=3)))
        return relay.Tuple([pool(join(other, along_lines)), pool(along_lines), last])

    assert {part.axis for part in parts(built(crossed, (1, 4, 4, 16)))} == {3}


def test_lines_of_no_elements() -> None:
    built(lambda x: pool(join(conv(x, 16), relay.const(numbers(1, 6, 7, 0)), pool(x))))


def test_memory_does_not_grow_much_for_it() -> None:
    """A value that waits long for the others would hold the room of them all."""

    def long_wait(x: Any) -> Any:
        early, y = conv(x, 16), x
        for seed in range(2):
            y = conv(pool(y), 512, seed=seed)
        return pool(join(early, conv(y, 512, seed=7)))

    model = built(long_wait)
    assert copies(model) == 1
    assert not parts(model)


def test_looking_at_a_part() -> None:
    model = built(lambda x: pool(join(conv(x, 32), pool(x))))
    run = graph_executor.GraphModule(model)
    given = numbers(1, 6, 7, 16, seed=9)
    run.set_input("x", given)
    seen = [run.debug_get_output(k).numpy().shape for k in range(len(model.program.launches()))]
    assert seen == [(1, 6, 7, 32), (1, 6, 7, 16), (1, 6, 7, 48)]
    rows = model.compiled.profile(given).rows
    assert [row.bytes_written for row in rows] == [4 * 42 * size for size in (32, 16, 48)]


@pytest.mark.long
def test_exported_as_a_library_and_as_c(tmp_path: Any) -> None:
    model = built(lambda x: pool(join(conv(x, 32), pool(x))))
    given, out = numbers(1, 6, 7, 16, seed=9), np.zeros((1, 6, 7, 48), "float32")
    expected = model(given)
    model.export_library(str(tmp_path / "m.so"))
    lw.load_module(str(tmp_path / "m.so"))["default"](given, out)
    np.testing.assert_array_equal(out, expected)
    again = np.zeros_like(out)
    c_module(model.program)["default"](given, again)
    np.testing.assert_array_equal(again, expected)


def test_programs_with_wrong_parts() -> None:
    func = relay.build(relay.IRModule.from_expr(identity()), "llvm").program.launches()[0].func
    x, y, z = (Value(name, (4, 16), "float32") for name in "xyz")
    with pytest.raises(KernelMismatch, match="its argument 2 is no part of"):
        compile_program(Program("p", [x], [y], {}, [Launch(func, (x, y), parts=(None, Part(1, 8, 9)))]))
    with pytest.raises(KernelMismatch, match="which has no such axis"):
        compile_program(Program("p", [x], [y], {}, [Launch(func, (x, y), parts=(None, Part(2, 0, 1)))]))
    with pytest.raises(KernelMismatch, match="it has 2 arguments, and parts for 1"):
        compile_program(Program("p", [x], [y], {}, [Launch(func, (x, y), parts=(None,))]))
    with pytest.raises(KernelMismatch, match="it adds to z, and has 2 outputs"):
        compile_program(Program("p", [z], [y], {}, [Launch(func, (x, y), 2, keeps=z)]))
    with pytest.raises(BadProgram, match="reads z before anything makes it"):
        compile_program(Program("p", [x], [y], {}, [Launch(func, (x, y), keeps=z)]))


def identity() -> Any:
    x = relay.var("x", shape=(4, 16))
    return relay.Function([x], relay.nn.relu(x))
