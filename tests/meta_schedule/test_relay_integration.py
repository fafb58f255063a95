"""tune_relay and compile_relay: the kernels of a model are tasks; the model computes the same with what was found."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from loopwright import meta_schedule as ms
from loopwright import relay
from loopwright.contrib import graph_executor
from loopwright.ir import IRModule
from loopwright.runtime import cpu

TARGET = "llvm -num-cores=1"


def model() -> tuple[IRModule, dict[str, np.ndarray]]:
    x = relay.var("x", shape=(8, 16))
    w = relay.var("w", shape=(24, 16))
    body = relay.nn.relu(relay.nn.dense(x, w))
    weights = {"w": np.random.default_rng(0).standard_normal((24, 16)).astype("float32")}
    return IRModule.from_expr(relay.Function([x, w], body)), weights


def test_kernels_are_tasks_with_weights(tmp_path: Path):
    mod, params = model()
    tasks = ms.relay_integration.extract_tasks(mod, TARGET, params)
    assert tasks and all(task.weight >= 1 and task.dispatched for task in tasks)
    contexts, weights = ms.relay_integration.extracted_tasks_to_tune_contexts(tasks, str(tmp_path))
    assert len(contexts) == len(weights) == len(tasks)


def test_a_model_is_tuned_and_compiled(tmp_path: Path):
    mod, params = model()
    database = ms.tune_relay(mod, params, TARGET, str(tmp_path), max_trials_global=2, seed=1)
    assert len(database) >= 1
    lib = ms.compile_relay(database, mod, TARGET, params)
    x = np.random.rand(8, 16).astype("float32")
    runtime = graph_executor.GraphModule(lib["default"](cpu()))
    runtime.set_input("x", x)
    runtime.run()
    np.testing.assert_allclose(runtime.get_output(0).numpy(), np.maximum(x @ params["w"].T, 0), rtol=1e-4, atol=1e-5)
