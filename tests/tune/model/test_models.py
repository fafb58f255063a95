"""Models learn what the prior gets wrong, within a task and across tasks; experience survives as JSON."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from loopwright.tune.errors import UnknownName
from loopwright.tune.model import MODELS, Experience, cost_model
from loopwright.tune.space import Batch

HAS_XGBOOST = importlib.util.find_spec("xgboost") is not None


def batch(count: int, seed: int) -> Batch:
    """Candidates whose prior knows nothing of their feature "b"."""
    random = np.random.default_rng(seed)
    features = random.normal(size=(count, 2))
    return Batch(np.arange(count).reshape(-1, 1), features, ("a", "b"), features[:, 0])


def seconds(of: Batch, scale: float = 1.0) -> np.ndarray:
    return scale * np.exp(of.prior + 0.8 * of.features[:, 1])


def learned(name: str, count: int = 60) -> float:
    """How well the model orders candidates of a new task, after measurements of two others: a rank correlation."""
    experience = Experience()
    for task in range(2):
        known = batch(count, task)
        for number, took in enumerate(seconds(known, 10.0**task)):
            experience.add(f"task {task}", known, number, took)
    model = cost_model(name)
    model.fit(experience)
    new = batch(200, 9)
    ranks = [np.argsort(np.argsort(values)) for values in (model.predict(new), seconds(new))]
    return float(np.corrcoef(*ranks)[0, 1])


def test_the_prior_learns_nothing():
    assert 0.6 < learned("prior") < 0.9


def test_ridge_learns_what_the_prior_does_not_know():
    assert learned("ridge") > 0.97
    assert learned("ridge", 6) > learned("prior")


@pytest.mark.skipif(not HAS_XGBOOST, reason="xgboost is not installed")
def test_trees_learn_too():
    assert learned("xgb") > 0.9


def test_with_nothing_measured_models_are_the_prior():
    new = batch(5, 0)
    for name in MODELS:
        if name == "random" or (name == "xgb" and not HAS_XGBOOST):
            continue
        model = cost_model(name)
        model.fit(Experience())
        np.testing.assert_array_equal(model.predict(new), new.prior)


def test_a_model_meets_features_it_does_not_know():
    experience = Experience()
    known = batch(20, 0)
    for number, took in enumerate(seconds(known)):
        experience.add("one", known, number, took)
    model = cost_model("ridge")
    model.fit(experience)
    other = Batch(np.zeros((3, 1), dtype=np.int64), np.ones((3, 1)), ("c",), np.array([1.0, 2.0, 3.0]))
    assert np.argsort(model.predict(other)).tolist() == [0, 1, 2]


def test_experience_is_json():
    experience = Experience()
    known = batch(3, 0)
    for number in range(3):
        experience.add("one", known, number, 0.5)
    experience.add("one", known, 0, float("inf"))  # it failed
    again = Experience.load(experience.save())
    assert again.rows == experience.rows
    assert len(again.rows) == 3
    assert Experience.load(b"{") == Experience.load(b'{"version": 999}') == Experience()
    assert Experience.load(b'{"version": 1, "rows": [["t", {"a": "x"}, 0, 0]]}') == Experience()


def test_a_model_that_does_not_exist():
    with pytest.raises(UnknownName, match="there is no cost model 'oracle'"):
        cost_model("oracle")
