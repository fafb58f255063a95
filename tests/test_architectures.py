"""The race of architectures: its models, their results in float64, and the table; contenders run in `race.py`."""

from __future__ import annotations

import io
import math

import numpy as np
import pytest
from rich.console import Console

from benchmarks.architectures import audio, detectors, images, sequences, unets
from benchmarks.architectures.exact import difference, exact_results
from benchmarks.architectures.models import MODELS, inputs_of
from benchmarks.architectures.race import main
from benchmarks.architectures.table import means, show
from benchmarks.bench.measure import Samples
from benchmarks.bench.row import OURS, summary

SMALL = {
    "unet": lambda: unets.unet(16, 2, 2),
    "unet_resized": lambda: unets.unet_resized(16, 2, 2),
    "wave_unet": lambda: unets.wave_unet(32, 2, 2),
    "ssd": lambda: detectors.ssd(32, 3, 2),
    "yolo": lambda: detectors.yolo(32, 2, 20, 2),
    "preprocess": lambda: images.preprocess(24, 32),
    "blend": lambda: images.blend(6, 7),
    "equalise": lambda: images.equalise(6, 8),
    "segment": lambda: images.segment(4, 2, 3),
    "classify": lambda: images.classify(2, 9),
    "mel": lambda: audio.mel(200, 40, 20, 64, 8),
    "keywords": lambda: audio.keywords(20, 4, 8, 3),
    "wavenet": lambda: audio.wavenet(24, 4, 3),
    "conformer": lambda: audio.conformer(8, 8, 2, 1),
    "decoder_step": lambda: sequences.decoder_step(5, 8, 2, 1, 300),
    "points": lambda: sequences.points(20, 4, 3),
    "diffusion": lambda: sequences.diffusion(4, 8, 16, 2),
}


def test_every_model_is_tested():
    assert list(SMALL) == list(MODELS)


@pytest.mark.parametrize("name", SMALL)
def test_models_mean_what_onnx_says(name):
    onnx = pytest.importorskip("onnx")
    from onnx.reference import ReferenceEvaluator

    model = SMALL[name]()
    onnx.checker.check_model(model, full_check=True)
    given = inputs_of(model)
    exact = exact_results(model, given)
    if name == "preprocess":  # the evaluator of the onnx package rounds bytes where ONNX Runtime and ours cut them off
        assert exact[0].shape == (1, 3, 224, 224)
        return
    assert difference(ReferenceEvaluator(model).run(None, given), exact) < 1e-5


def test_results_are_compared_by_the_largest_number():
    exact = [np.array([1.0, -4.0]), np.array([1, 2])]
    right = [np.array([1.0, -4.0], np.float32), np.array([1, 2])]
    assert difference(right, exact) == 0
    assert difference([right[0] + np.float32(0.5), right[1]], exact) == pytest.approx(0.125)
    for wrong in ([right[0]], [right[0], right[1][:1]], [right[0] * math.nan, right[1]], [right[0], right[1] + 1]):
        assert difference(wrong, exact) == math.inf
    level = np.zeros(2000, np.float32)
    level[7] = 1
    assert difference([level], [np.ones(2000)], rounds=True) == 1
    assert difference([1 - level], [np.ones(2000)]) == 1
    assert difference([1 - level], [np.ones(2000)], rounds=True) == 0


def test_the_table_has_each_number_of_threads():
    def row(name: str, threads: int, **seconds: float) -> dict:
        taken = summary({other: Samples([one] * 3, 1) for other, one in {OURS: 1.0, **seconds}.items()})
        return {"name": name, "threads": threads, "status": "ok", "left_out": {}, **taken}

    rows = [row("one", 1, onnxruntime=2.0, before=4.0), row("two", 1, onnxruntime=0.5), row("one", 2, before=3.0)]
    rows[2]["left_out"] = {"onnxruntime": "its process ended with -11"}
    assert means(rows) == pytest.approx({(1, "onnxruntime"): 1, (1, "before"): 4, (2, "before"): 3})
    failed = {"name": "three", "threads": 1, "status": "wrong", "message": "far off", "left_out": {}}
    settings, machine = {"tolerance": 1e-4, "load_before": 2.0}, {"cpu": "a cpu", "arch": "x86_64", "cores": 2}
    record = {"date": "today", "machine": machine, "versions": {}, "settings": settings, "rows": [*rows, failed]}
    text = io.StringIO()
    show(record, Console(file=text, width=160))
    for part in (
        "2.00 (2.00-2.00)",
        "2 threads: ours, ms",
        "geomean",
        "one on 2: onnxruntime is left out: its process ended with -11",
        "three on 1: wrong: far off",
        "do not publish this",
    ):
        assert part in text.getvalue()


def test_unknown_models_and_folders_are_refused(capsys, tmp_path):
    for arguments, problem in ((["unit"], "there is no model 'unit'"), (["--before", str(tmp_path)], "no package")):
        with pytest.raises(SystemExit):
            main(arguments)
        assert problem in capsys.readouterr().err
