"""XGBModel: boosted trees that learn from measurements how candidates compare; with `pip install xgboost`.

The score of a candidate is the sum of the scores of its blocks: a row of features each. What is learned is the best
time of a workload, divided by the time of the candidate.
"""

from __future__ import annotations

import io
import json
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from loopwright.ir import structural_hash
from loopwright.meta_schedule.cost_model.cost_model import CostModel, PyCostModel
from loopwright.meta_schedule.errors import UnreadableData
from loopwright.meta_schedule.feature_extractor import FeatureExtractor
from loopwright.runtime.together import together


class XGBConfig(NamedTuple):
    """Settings of the trees."""

    max_depth: int = 10
    gamma: float = 0.001
    min_child_weight: float = 0
    eta: float = 0.2
    seed: int = 43
    nthread: int | None = None
    tree_method: str = "auto"

    def to_dict(self) -> dict[str, Any]:
        return {name: value for name, value in self._asdict().items() if value is not None}


class FeatureGroup:
    """What was measured of one workload."""

    def __init__(self, group_hash: str, features: list[np.ndarray], costs: np.ndarray) -> None:
        self.group_hash, self.features, self.costs = group_hash, features, np.asarray(costs, dtype=float)

    @property
    def min_cost(self) -> float:
        return float(self.costs.min())

    def append(self, features: list[np.ndarray], costs: np.ndarray) -> None:
        """More candidates."""
        self.features = [*self.features, *features]
        self.costs = np.concatenate([self.costs, np.asarray(costs, dtype=float)])


class PackSum:
    """Rows of several candidates as one matrix; predictions of rows are added up for each candidate."""

    def __init__(self, xs: Sequence[np.ndarray], ys: np.ndarray | None) -> None:
        import xgboost  # loaded when needed: it takes half a second

        self.ids = np.concatenate([np.full(len(one), number) for number, one in enumerate(xs)]).astype(int)
        rows = np.concatenate(list(xs), axis=0)
        self.count = len(xs)
        self.ys = None if ys is None else np.asarray(ys, dtype=float)
        labels = None if self.ys is None else self.ys[self.ids]
        self.dmatrix = xgboost.DMatrix(rows, label=labels)
        if self.ys is not None:
            self.dmatrix.set_weight(labels)

    def predict_with_score(self, pred: np.ndarray) -> np.ndarray:
        """The sums."""
        return np.bincount(self.ids, weights=np.asarray(pred, dtype=float), minlength=self.count)

    def obj_square_error(self, ys_pred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Gradient and Hessian of the squared error of the sums."""
        assert self.ys is not None
        sums = self.predict_with_score(ys_pred)[self.ids]
        weight = self.ys[self.ids]
        return (sums - self.ys[self.ids]) * weight, np.ones(len(self.ids)) * weight

    def rmse(self, ys_pred: np.ndarray) -> tuple[str, float]:
        """How far the sums are from what was measured."""
        assert self.ys is not None
        return "p-rmse", float(np.sqrt(np.mean((self.predict_with_score(ys_pred) - self.ys) ** 2)))

    def average_peak_score(self, ys_pred: np.ndarray, n: int) -> tuple[str, float]:
        """How good the best of the n candidates that the model likes are, on average of n."""
        assert self.ys is not None
        order = np.argsort(-self.predict_with_score(ys_pred))
        peaks = np.maximum.accumulate(self.ys[order])[:n] / max(float(self.ys.max()), 1e-12)
        return f"a-peak@{n}", float(np.mean(peaks))


class XGBModel(PyCostModel):
    """Before `num_warmup_samples` measurements its scores are by chance."""

    def __init__(
        self,
        *,
        extractor: Any = "per-store-feature",
        config: XGBConfig | None = None,
        num_warmup_samples: int = 100,
        early_stopping_rounds: int = 50,
        verbose_eval: int = 25,
        average_peak_n: int = 32,
        adaptive_training: bool = True,
        num_tuning_cores: int | None = None,
    ) -> None:
        self.extractor = FeatureExtractor.create(extractor)
        self.config = (config or XGBConfig())._replace(nthread=num_tuning_cores)
        self.num_warmup_samples, self.early_stopping_rounds = num_warmup_samples, early_stopping_rounds
        self.verbose_eval, self.average_peak_n = verbose_eval, average_peak_n
        self.adaptive_training = adaptive_training
        self.data: dict[str, FeatureGroup] = {}
        self.data_size = self.last_train_size = 0
        self.booster: Any = None
        self._numbers = np.random.default_rng(self.config.seed)

    # --- files: a zip of the trees and of what they were trained on ---

    def save(self, path: str) -> None:
        with together(path) as folder, zipfile.ZipFile(folder / Path(path).name, "w") as archive:
            if self.booster is not None:
                archive.writestr("trees.json", bytes(self.booster.save_raw("json")))
            groups = []
            for number, group in enumerate(self.data.values()):
                groups.append({"hash": group.group_hash, "costs": group.costs.tolist()})
                for index, rows in enumerate(group.features):
                    archive.writestr(f"{number}/{index}.npy", _array_bytes(rows))
            archive.writestr("groups.json", json.dumps([self.data_size, self.last_train_size, groups]))

    def load(self, path: str) -> None:
        try:
            with zipfile.ZipFile(path) as archive:
                data_size, last_train_size, data = _read_groups(archive)
                booster = _read_trees(archive)
        except (OSError, EOFError, zipfile.BadZipFile, KeyError, TypeError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error).partition("\n")[0]
            raise UnreadableData(f"the cost model {path}", why, "give a file that `save` wrote") from error
        self.data_size, self.last_train_size, self.data, self.booster = data_size, last_train_size, data, booster

    # --- learning ---

    def update(self, context: Any, candidates: Sequence[Any], results: Sequence[Any]) -> None:
        if not candidates:
            return
        key = "" if context is None or context.mod is None else str(structural_hash(context.mod))
        features = self._features(context, candidates)
        costs = np.array([_cost(result) for result in results])
        group = self.data.get(key)
        if group is None:
            self.data[key] = FeatureGroup(key, features, costs)
        else:
            group.append(features, costs)
        self.data_size += len(features)
        wanted = self.last_train_size * 0.2 if self.adaptive_training else 0
        if self.data_size >= self.num_warmup_samples and self.data_size - self.last_train_size >= wanted:
            self._train()

    def predict(self, context: Any, candidates: Sequence[Any]) -> np.ndarray:
        if self.booster is None or self.data_size < self.num_warmup_samples or not candidates:
            return self._numbers.random(len(candidates))
        packed = PackSum(self._features(context, candidates), None)
        return packed.predict_with_score(self.booster.predict(packed.dmatrix))

    def _features(self, context: Any, candidates: Sequence[Any]) -> list[np.ndarray]:
        rows = [np.asarray(one.numpy(), dtype="float32") for one in self.extractor.extract_from(context, candidates)]
        return [one if len(one) else np.zeros((1, one.shape[1] if one.ndim > 1 else 1), "float32") for one in rows]

    def _train(self) -> None:
        import xgboost  # loaded when needed: it takes half a second

        self.last_train_size = self.data_size
        groups = list(self.data.values())
        xs = [rows for group in groups for rows in group.features]
        ys = np.concatenate([group.min_cost / group.costs for group in groups])
        packed = PackSum(xs, ys)

        def objective(pred: np.ndarray, _matrix: Any) -> tuple[np.ndarray, np.ndarray]:
            return packed.obj_square_error(pred)

        def error(pred: np.ndarray, _matrix: Any) -> tuple[str, float]:
            return packed.rmse(pred)

        settings = {**self.config.to_dict(), "disable_default_eval_metric": 1, "base_score": 0.0}
        self.booster = xgboost.train(
            settings,
            packed.dmatrix,
            num_boost_round=_MOST_TREES,
            obj=objective,
            evals=[(packed.dmatrix, "train")],
            custom_metric=error,
            early_stopping_rounds=self.early_stopping_rounds,
            verbose_eval=False,
        )


_MOST_TREES = 1000
_FAILED = 1e10


def _cost(result: Any) -> float:
    """Seconds; never zero, and very long for a failure."""
    if not result.run_secs:
        return _FAILED
    return max(float(np.mean([float(one) for one in result.run_secs])), 1e-12)


def _array_bytes(rows: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, rows, allow_pickle=False)
    return buffer.getvalue()


def _get_custom_call_back(*args: Any, **kwargs: Any) -> Callable[..., None]:
    """Callbacks of xgboost before 1.6, which is not supported."""
    raise NotImplementedError("this is for xgboost before 1.6")


CostModel.kinds["xgb"] = XGBModel


def _read_groups(archive: zipfile.ZipFile) -> tuple[int, int, dict[str, FeatureGroup]]:
    data_size, last_train_size, groups = json.loads(archive.read("groups.json"))
    data = {}
    for number, group in enumerate(groups):
        names = [f"{number}/{index}.npy" for index in range(len(group["costs"]))]
        features = [np.load(io.BytesIO(archive.read(name)), allow_pickle=False) for name in names]
        data[group["hash"]] = FeatureGroup(group["hash"], features, np.asarray(group["costs"]))
    return data_size, last_train_size, data


def _read_trees(archive: zipfile.ZipFile) -> Any:
    """The trees; None where the model had not learned yet."""
    if "trees.json" not in archive.namelist():
        return None
    import xgboost  # loaded when needed: it takes half a second

    booster = xgboost.Booster()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "trees.json"
        file.write_bytes(archive.read("trees.json"))
        booster.load_model(str(file))
    return booster
