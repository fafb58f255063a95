"""The demo: ResNet-50 from an ONNX file to one native function, checked, raced and drawn.

Run it with `make demo`. It makes the model (`resnet50.py`: seeded random weights), compiles it, runs it, checks the
result against float64 with a derived bound (`float64_network.py`), lets ONNX Runtime run the same file in turn where
that is installed, and writes a page with the graph, the kernels and the memory plan: build/demo/report.html.

The same from the command line:

    loopwright inspect build/demo/resnet50.onnx
    loopwright compile build/demo/resnet50.onnx -o resnet50.so --report report.html
    loopwright run resnet50.so --print-time
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent))

from float64_network import DEVIATIONS, Estimate, float64_network
from resnet50 import BLOCKS, resnet50

from loopwright import runtime
from loopwright.cli.compiled_model import Options, compile_model
from loopwright.cli.model_files import read_model
from loopwright.cli.report import write_report
from loopwright.display import progress
from loopwright.display.page import table_html

FOLDER = Path("build/demo")
IMAGE = 224
STAGES = BLOCKS
PAIRS = 15


def main() -> None:
    try:
        import onnx  # noqa: F401
    except ImportError:
        sys.exit("The demo needs the package onnx: pip install onnx")
    progress.show()
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / "resnet50.onnx"
    proto = resnet50(image=IMAGE, blocks=STAGES)
    path.write_bytes(proto.SerializeToString())
    print(f"{path}: {len(proto.graph.node)} nodes, {path.stat().st_size / 1e6:.0f} MB, seeded random weights\n")

    start = time.perf_counter()
    model = read_model(str(path))
    made = compile_model(model, Options(name="resnet50"), {"read": time.perf_counter() - start})
    stages = ", ".join(f"{stage} {spent:.2f}" for stage, spent in made.seconds.items() if spent >= 0.005)
    print(f"compiled in {sum(made.seconds.values()):.1f} s ({stages})")
    print(f"{made.built.compiled.counts}\n{made.built.plan}\n")

    image = np.random.default_rng(1).standard_normal((1, 3, IMAGE, IMAGE), np.float32)
    ours = made.built(image)
    with progress.task("check against float64"):
        exact = float64_network(proto, {"image": image})["logits"]
    share = share_of_bound(ours, exact)
    checked = f"largest error {np.abs(ours - exact.value).max():.3g}, {share:.1%} of its bound"
    print(f"checked against float64: {checked} ({DEVIATIONS} standard deviations of independent roundings)\n")

    race = raced(path, image, lambda: made.built(image), exact)
    profile = made.built.compiled.profile(image, repeat=3)
    print("\nThe slowest kernels:\n")
    print("\n".join(str(profile).splitlines()[:7]))
    sections = [("Check", f"<p>Against float64: {checked}.</p>"), ("Race", race)]
    report = FOLDER / "report.html"
    write_report(report, made, profile=profile, sections=sections, title="ResNet-50")
    print(f"\nThe graph, every kernel and the memory plan: {report}")


def share_of_bound(found: np.ndarray, exact: Estimate) -> float:
    """The largest error, as a share of what is allowed; more than all of it is a mistake."""
    worst = float((np.abs(found - exact.value) / exact.bound()).max())
    assert worst <= 1, f"the result is {worst:.3g} times the error bound of float32 away from the exact one"
    return worst


def raced(path: Path, image: np.ndarray, ours: Callable[[], object], exact: Estimate) -> str:
    """Time it, beside ONNX Runtime where that is; print the table, and give it as HTML."""
    threads = runtime.num_threads()
    other = onnx_runtime(path, threads)
    rows = []
    if other is None:
        times = [timed(ours) for _ in range(PAIRS + 1)][1:]
        rows.append(("Loopwright", f"{statistics.median(times) * 1e3:.2f} ms", ""))
        note = "ONNX Runtime is not installed here, so there was no race: pip install onnxruntime."
    else:
        share_of_bound(other(image), exact)
        pairs = [(alone(ours), alone(lambda: other(image))) for _ in range(PAIRS)]
        ratio = statistics.median(theirs / mine for mine, theirs in pairs)
        rows.append(("Loopwright", f"{statistics.median(mine for mine, _ in pairs) * 1e3:.2f} ms", f"{ratio:.2f} ×"))
        rows.append(("ONNX Runtime", f"{statistics.median(theirs for _, theirs in pairs) * 1e3:.2f} ms", "1"))
        note = f"Medians of {PAIRS} pairs of calls, in turn, each after a pause and a call that does not count."
    print(f"One image, {threads} threads. {note}\n")
    for name, took, speed in rows:
        print(f"    {name:14} {took:>12}   {speed}")
    return f"<p>One image, {threads} threads. {note}</p>{table_html(('', 'median', 'speed'), rows, (1, 2))}"


def onnx_runtime(path: Path, threads: int) -> Callable[[np.ndarray], Any] | None:
    """The model in ONNX Runtime, on as many threads, or None where it is not installed."""
    try:
        import onnxruntime
    except ImportError:
        return None
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return lambda image: session.run(None, {"image": image})[0]


def alone(run: Callable[[], object]) -> float:
    """The seconds one call takes, once the threads of whoever ran before have stopped looking for work."""
    time.sleep(0.1)
    run()
    return timed(run)


def timed(run: Callable[[], object]) -> float:
    """The seconds one call takes."""
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


if __name__ == "__main__":
    main()
