"""FeatureExtractor: numbers about candidates, a row for each block, that cost models learn from."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from loopwright.meta_schedule.derived import Part
from loopwright.meta_schedule.errors import MethodNotDefined, UnknownKind
from loopwright.runtime.tensor import NDArray, array


class FeatureExtractor(Part):
    """Derive from `PyFeatureExtractor` for one of yours."""

    FeatureExtractorType = object
    kinds: ClassVar[dict[str, Callable[..., Any]]] = {}  # by name; each kind enters itself

    def extract_from(self, context: Any, candidates: Sequence[Any]) -> list[NDArray]:
        """An array of rows for each candidate."""
        raise MethodNotDefined(f"{type(self).__name__}'s extract_from is not defined")

    @staticmethod
    def create(kind: Any = "per-store-feature", *args: Any, **kwargs: Any) -> FeatureExtractor:
        """An extractor of a kind: "per-store-feature"."""
        if isinstance(kind, FeatureExtractor):
            return kind
        if kind not in FeatureExtractor.kinds:
            raise UnknownKind("feature extractor", kind, list(FeatureExtractor.kinds))
        made: FeatureExtractor = FeatureExtractor.kinds[kind](*args, **kwargs)
        return made


create = FeatureExtractor.create


class PyFeatureExtractor(FeatureExtractor):
    """What extractors of the user's derive from."""


class RandomFeatureExtractor(PyFeatureExtractor):
    """Numbers by chance, to try models with."""

    def __init__(self, *, feature_size: int = 30, max_block_num: int = 5, seed: int = 0) -> None:
        self.feature_size, self.max_block_num = feature_size, max_block_num
        self._numbers = np.random.default_rng(seed)

    @property
    def random_state(self) -> dict[str, Any]:
        """Where the random numbers are; it can be set."""
        return dict(self._numbers.bit_generator.state)

    @random_state.setter
    def random_state(self, state: dict[str, Any]) -> None:
        self._numbers.bit_generator.state = state

    def extract_from(self, context: Any, candidates: Sequence[Any]) -> list[NDArray]:
        rows = [int(self._numbers.integers(1, self.max_block_num + 1)) for _ in candidates]
        return [array(self._numbers.random((count, self.feature_size))) for count in rows]
