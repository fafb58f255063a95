"""LocalBuilder and LocalRunner: files and times; what goes wrong is a message in the result."""

from __future__ import annotations

import time
from typing import Any

import pytest

from loopwright import meta_schedule as ms
from loopwright.runtime import register_func
from loopwright.runtime.errors import NotBuilt
from loopwright.target import Target
from tests.meta_schedule.programs import gemm

TARGET = Target("llvm -num-cores=1")


def test_a_program_is_built_and_run():
    mod = ms.tune_context._normalize_mod(gemm())
    (built,) = ms.builder.LocalBuilder().build([ms.builder.BuilderInput(mod, TARGET)])
    assert built.error_msg is None
    config = ms.runner.EvaluatorConfig(number=1, repeat=2, min_repeat_ms=0)
    infos = ms.ArgInfo.from_entry_func(mod)
    given = ms.runner.RunnerInput(built.artifact_path, "llvm", infos)
    (future,) = ms.runner.LocalRunner(evaluator_config=config).run([given])
    assert future.done()
    result = future.result()
    assert result.error_msg is None and len(result.run_secs) == 2 and result.run_secs[0].value > 0


def test_a_slow_build_is_ended():
    def slow(mod: Any, target: Any, params: Any) -> None:
        time.sleep(30)

    builder = ms.builder.LocalBuilder(timeout_sec=0.3, f_build=slow)
    (built,) = builder.build([ms.builder.BuilderInput(gemm(), TARGET)])
    assert built.artifact_path is None and built.error_msg.startswith("LocalBuilder: Timeout")


def test_a_hook_that_raises():
    def broken(mod: Any, target: Any, params: Any) -> None:
        raise ValueError("no luck")

    (built,) = ms.builder.LocalBuilder(f_build=broken).build([ms.builder.BuilderInput(gemm(), TARGET)])
    assert "An exception occurred" in built.error_msg and "no luck" in built.error_msg


def test_hooks_are_found_by_name_where_the_initializer_registers_them():
    def initializer() -> None:
        @register_func("tests.meta_schedule.times", override=True)
        def times(module: Any, device: Any, config: Any, arguments: Any) -> list[float]:
            return [1.5]

        @register_func("tests.meta_schedule.nothing", override=True)
        def nothing(device: Any, infos: Any, repeat: int) -> list[Any]:
            return []

    mod = ms.tune_context._normalize_mod(gemm())
    (built,) = ms.builder.LocalBuilder().build([ms.builder.BuilderInput(mod, TARGET)])
    runner = ms.runner.LocalRunner(
        f_run_evaluator="tests.meta_schedule.times",
        f_alloc_argument="tests.meta_schedule.nothing",
        initializer=initializer,
    )
    (future,) = runner.run([ms.runner.RunnerInput(built.artifact_path, "llvm", [])])
    assert future.result().run_secs == [1.5]
    with pytest.raises(ValueError, match=r"no function is registered as 'tests\.meta_schedule\.nobody'"):
        ms.builder.LocalBuilder(f_build="tests.meta_schedule.nobody")


def test_rpc_says_that_it_is_not_there():
    with pytest.raises(NotBuilt, match="needs RPC"):
        ms.runner.RPCRunner()
    with pytest.raises(ValueError, match=r"RPCConfig\.tracker_host is not given"):
        ms.runner.RPCConfig._normalized(None)
