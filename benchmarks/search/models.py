"""Whole models before and after tuning, timed in turn.

    python -m benchmarks.search.models mobilenet-v2 shufflenet --minutes 10 --threads 2 --out FILE.json
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.bench.children import pool_settings
from benchmarks.bench.ratios import ratio

_ROUNDS = 61
_SAMPLE = 0.03  # seconds, at least


def gain(name: str, minutes: float, threads: int, seed: int, database: Path) -> dict[str, Any]:
    """Tune a model, and time it beside itself as the rules schedule it."""
    import numpy as np

    import loopwright as lw
    from loopwright.target import Target

    model = model_named(name)
    target = Target(f"llvm -num-cores={threads}")
    start = time.perf_counter()
    tuned = lw.tune(model, minutes=minutes, threads=threads, target=target, database=database, seed=seed)
    took = time.perf_counter() - start
    before, again = (lw.compile(model, target=target) for _ in range(2))
    after = lw.compile(model, target=target, database=database)
    shapes = before.input_shapes if hasattr(before, "input_shapes") else _shapes(model)
    inputs = [np.random.default_rng(0).random(shape, "float32") for shape in shapes]
    results = [np.asarray(_first(call(*inputs)), dtype=np.float64) for call in (before, after)]
    off = float(np.abs(results[0] - results[1]).max() / max(np.abs(results[0]).max(), 1e-30))
    contenders = {"before": before, "after": after, "again": again}
    seconds = _timed(contenders, inputs)
    return {
        "model": name,
        "threads": threads,
        "minutes": minutes,
        "seconds": round(took, 1),
        "trials": tuned.session.trials,
        "tasks": len(tuned.session.tasks),
        "by_tasks": round(tuned.speed_up, 4),
        "speed_up": ratio(seconds["before"], seconds["after"])._asdict(),
        "noise": ratio(seconds["before"], seconds["again"])._asdict(),
        "ms_before": 1e3 * sorted(seconds["before"])[_ROUNDS // 2],
        "differs": off,
    }


def model_named(name: str) -> Any:
    """An ONNX model of the benchmarks."""
    from benchmarks.models.light import light_model
    from benchmarks.models.mobilenet import mobilenet_v2

    return mobilenet_v2() if name == "mobilenet-v2" else light_model(name)


def _shapes(model: Any) -> list[list[int]]:
    """Of the inputs that are no weights."""
    weights = {one.name for one in model.graph.initializer}
    inputs = [one for one in model.graph.input if one.name not in weights]
    return [[size.dim_value for size in one.type.tensor_type.shape.dim] for one in inputs]


def _first(result: Any) -> Any:
    return result[0] if isinstance(result, (list, tuple)) else result


def _timed(contenders: dict[str, Any], inputs: Any) -> dict[str, list[float]]:
    calls = {}
    for name, call in contenders.items():
        call(*inputs)
        start = time.perf_counter()
        call(*inputs)
        calls[name] = max(1, int(_SAMPLE / (time.perf_counter() - start)))
    seconds: dict[str, list[float]] = {name: [] for name in contenders}
    for number in range(_ROUNDS):
        for name in list(contenders) if number % 2 else reversed(list(contenders)):
            contenders[name](*inputs)
            start = time.perf_counter()
            for _ in range(calls[name]):
                contenders[name](*inputs)
            seconds[name].append((time.perf_counter() - start) / calls[name])
    return seconds


def main() -> int:
    """Tune the models that are named, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.search.models", description=__doc__)
    known = "mobilenet-v2, or one of the onnx package's: shufflenet, inception_v2 …"
    parser.add_argument("models", nargs="+", help=known)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, metavar="FILE")
    chosen = parser.parse_args()
    settings = pool_settings(chosen.threads)
    if any([os.environ.get(name) != value for name, value in settings.items()]):  # libraries read them when they load
        command = [sys.executable, "-m", "benchmarks.search.models", *sys.argv[1:]]
        return subprocess.run(command, env={**os.environ, **settings}, check=False).returncode
    rows = []
    for name in chosen.models:
        with tempfile.TemporaryDirectory() as folder:
            rows.append(gain(name, chosen.minutes, chosen.threads, chosen.seed, Path(folder) / "tune.db"))
        print(json.dumps(rows[-1]), flush=True)
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
