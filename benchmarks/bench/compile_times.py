"""How long compiling takes, and how much memory: each figure from fresh processes with a cache folder of their own.

They find bytecode of every module, as processes do that import an installed package: a run before them writes it.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
# What is compiled, with the cache off, or on and already holding it.
_RUNS = [("vector add", "add", False), ("gemm 1024³", "gemm", False), ("gemm 1024³ from cache", "gemm", True)]


def measure(folder: Path, repeats: int) -> list[dict[str, Any]]:
    """A row for each thing that is compiled: medians of seconds by stage, and the peak memory in bytes."""
    rows = []
    for name, program, cached in _RUNS:
        environment = {"LOOPWRIGHT_CACHE": "off", "PYTHONPYCACHEPREFIX": str(folder / "bytecode")}
        if cached:
            environment |= {"LOOPWRIGHT_CACHE": "on", "LOOPWRIGHT_CACHE_DIR": str(folder / "cache")}
        _child(program, environment)  # writes the bytecode, and fills the cache
        results = [_child(program, environment) for _ in range(repeats)]
        failed = next((result["error"] for result in results if "error" in result), None)
        if failed is not None:
            rows.append({"name": name, "status": "error", "message": failed})
            continue
        rows.append({"name": name, "status": "ok", **_medians(results)})
    return rows


def _medians(results: list[dict[str, Any]]) -> dict[str, Any]:
    names = list(dict.fromkeys([stage for result in results for stage in result["stages"]]))
    stages = {stage: statistics.median([result["stages"].get(stage, 0.0) for result in results]) for stage in names}
    whole = {
        key: statistics.median([result[key] for result in results])
        for key in ("import", "cold", "warm", "peak_bytes", "start_bytes")
    }
    return {**whole, "stages": stages, "groups": groups(whole["warm"], stages), "repeats": len(results)}


def groups(total: float, stages: Mapping[str, float]) -> dict[str, float]:
    """Seconds of scheduling, lowering and LLVM; what no stage claims is scheduling's, for it comes before them all."""
    llvm = sum([stages[stage] for stage in stages if stage.startswith("llvm") or stage in ("emit text", "link")])
    lower = sum([stages.get("check", 0.0), stages.get("lower", 0.0)])
    schedule = next((stages[name] for name in ("schedule", "autosched") if name in stages), None)
    return {"schedule": max(total - llvm - lower, 0.0) if schedule is None else schedule, "lower": lower, "llvm": llvm}


def _child(program: str, environment: Mapping[str, str]) -> dict[str, Any]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "benchmarks.bench.compile_child", program]
    own = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        command, capture_output=True, text=True, env={**own, **environment, "PYTHONPATH": path}, timeout=600
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines()
        return {"error": lines[-1] if lines else f"exit status {done.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found
