"""What suppressing boxes means, in numpy, and the samples it is tried on.

The samples have corners that are small whole numbers and thresholds that no overlap comes near, so that float32 and
float64 choose the same boxes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from loopwright.topi.registry import Sample


def get_valid_counts(
    data: np.ndarray, score_threshold: np.ndarray | float = 0, id_index: int = 0, score_index: int = 1
) -> list[np.ndarray]:
    counts = np.zeros(data.shape[0], "int32")
    moved, indices = np.full_like(data, -1), np.full(data.shape[:2], -1, "int32")
    for b, rows in enumerate(data):
        keep = rows[:, score_index] > float(np.asarray(score_threshold).reshape(-1)[0])
        keep &= (rows[:, id_index] >= 0) if id_index >= 0 else True
        counts[b] = keep.sum()
        moved[b, : counts[b]] = rows[keep]
        indices[b, : counts[b]] = np.nonzero(keep)[0]
    return [counts, moved, indices]


def overlap(a: Sequence[float], b: Sequence[float]) -> float:
    """Intersection over union of two boxes given by opposite corners."""
    shared, areas = 1.0, [1.0, 1.0]
    for axis in (0, 1):
        spans = [sorted((box[axis], box[axis + 2])) for box in (a, b)]
        shared *= max(min(spans[0][1], spans[1][1]) - max(spans[0][0], spans[1][0]), 0.0)
        areas = [area * (high - low) for area, (low, high) in zip(areas, spans, strict=True)]
    union = sum(areas) - shared
    return shared / union if union > 0 else 0.0


def non_max_suppression(
    data: np.ndarray,
    valid_count: np.ndarray,
    indices: np.ndarray | None,
    max_output_size: np.ndarray | int = -1,
    iou_threshold: float = 0.5,
    force_suppress: bool = False,
    top_k: int = -1,
    coord_start: int = 2,
    score_index: int = 1,
    id_index: int = 0,
    return_indices: bool = True,
    invalid_to_bottom: bool = False,
) -> np.ndarray | list[np.ndarray]:
    result, numbers = np.full(data.shape[:2], -1), np.zeros((data.shape[0], 1), "int32")
    boxes = np.full_like(data, -1)
    limit = int(np.asarray(max_output_size).reshape(-1)[0])
    for b, rows in enumerate(data):
        order = np.argsort(-rows[: valid_count[b], score_index], kind="stable")
        kept: list[int] = []
        for position, index in enumerate(order[: top_k if top_k >= 0 else None]):
            if (id_index >= 0 and rows[index, id_index] < 0) or (0 <= limit <= len(kept)):
                continue
            corners = slice(coord_start, coord_start + 4)
            falls = any(
                overlap(rows[order[better], corners], rows[index, corners]) >= iou_threshold
                and (force_suppress or id_index < 0 or rows[order[better], id_index] == rows[index, id_index])
                for better in kept
            )
            if not falls:
                kept.append(position)
        for number, position in enumerate(kept):
            boxes[b, number if invalid_to_bottom else position] = rows[order[position]]
            result[b, number] = order[position] if indices is None else indices[b, order[position]]
        numbers[b] = len(kept)
    return [result, numbers] if return_indices else boxes


def _class_boxes(
    boxes: np.ndarray,
    scores: np.ndarray,
    most: np.ndarray | int,
    iou_threshold: float,
    score_threshold: float,
    at_least: bool = False,
) -> list[int]:
    """The boxes of one picture that are kept by the scores of one class, best first."""
    kept: list[int] = []
    for index in np.argsort(-scores, kind="stable"):
        enough = scores[index] >= score_threshold if at_least else scores[index] > score_threshold
        limit = int(np.asarray(most).reshape(-1)[0])
        if enough and (limit < 0 or len(kept) < limit):
            if not any(overlap(boxes[better], boxes[index]) > iou_threshold for better in kept):
                kept.append(int(index))
    return kept


def all_class_non_max_suppression(
    boxes: np.ndarray,
    scores: np.ndarray,
    max_output_boxes_per_class: np.ndarray | int,
    iou_threshold: float,
    score_threshold: float,
    output_format: str = "onnx",
) -> list[np.ndarray]:
    batch, classes, count = scores.shape
    result = [
        (b, c, index)
        for b in range(batch)
        for c in range(classes)
        for index in _class_boxes(boxes[b], scores[b, c], max_output_boxes_per_class, iou_threshold, score_threshold)
    ]
    if output_format == "onnx":
        rows = np.full((batch * classes * count, 3), -1)
        rows[: len(result)] = np.array(result).reshape(-1, 3)
        return [rows, np.array([len(result)])]
    rows, best, totals = np.full((batch, classes * count, 2), -1), np.zeros((batch, classes * count)), np.zeros(batch)
    for b in range(batch):
        own = sorted([row for row in result if row[0] == b], key=lambda row: -scores[row])
        totals[b] = len(own)
        for number, row in enumerate(own):
            rows[b, number], best[b, number] = row[1:], scores[row]
    return [rows, best, totals.astype("int64")]


def regular_non_max_suppression(
    boxes: np.ndarray,
    scores: np.ndarray,
    max_detections_per_class: np.ndarray | int,
    max_detections: int,
    num_classes: int,
    iou_threshold: float,
    score_threshold: float,
) -> list[np.ndarray]:
    batch = boxes.shape[0]
    found_boxes = np.zeros((batch, max_detections, 4))
    found_classes, found_scores = np.zeros((batch, max_detections)), np.zeros((batch, max_detections))
    totals = np.zeros(batch)
    for b in range(batch):
        own = []
        for c in range(num_classes):
            line = scores[b, :, scores.shape[2] - num_classes + c]
            kept = _class_boxes(boxes[b], line, max_detections_per_class, iou_threshold, score_threshold, True)
            own += [(-line[index], c, index) for index in kept]
        own = sorted(own, key=lambda row: row[0])[:max_detections]
        totals[b] = len(own)
        for number, (score, c, index) in enumerate(own):
            found_boxes[b, number], found_classes[b, number], found_scores[b, number] = boxes[b, index], c, -score
    return [found_boxes, found_classes, found_scores, totals]


def _boxes(batch: int, count: int, seed: int = 0) -> np.ndarray:
    """Boxes with corners 0 to 12, their corners in either order."""
    random = np.random.default_rng(seed)
    low = random.integers(0, 6, (batch, count, 2))
    boxes = np.concatenate([low, low + random.integers(1, 7, (batch, count, 2))], -1).astype("float32")
    transposed = random.integers(0, 2, (batch, count, 1)).astype(bool)
    return np.where(transposed, boxes[..., [2, 3, 0, 1]], boxes)


def _scores(*shape: int, seed: int = 0) -> np.ndarray:
    """Different scores, multiples of 1/1024."""
    count = int(np.prod(shape))
    order = np.random.default_rng(seed).permutation(max(count, 1))[:count]
    return (order / 1024).astype("float32").reshape(shape)


def _data(batch: int, count: int, seed: int = 0) -> np.ndarray:
    """Class, score, box."""
    classes = np.random.default_rng(seed).integers(-1, 3, (batch, count, 1))
    return np.concatenate([classes, _scores(batch, count, 1, seed=seed), _boxes(batch, count, seed)], -1).astype(
        "float32"
    )


def get_valid_counts_samples() -> Iterable[Sample]:
    yield Sample((_data(3, 17), 0.01))
    yield Sample((_data(2, 9), 0.01, -1, 1))
    yield Sample((np.ascontiguousarray(_data(1, 9)[..., 1:]), np.array([0.005], "float32"), -1, 0))
    yield Sample((_data(1, 0),))
    yield Sample((_data(1, 5), 9.0))


def non_max_suppression_samples() -> Iterable[Sample]:
    data, count = _data(2, 23), np.array([23, 9], "int32")
    index = np.stack([np.arange(23), np.arange(23)[::-1]]).astype("int32")
    yield Sample((data, count, index), {"iou_threshold": 0.317})
    yield Sample((data, count, index, 4, 0.317, True))
    yield Sample((data, count, index, -1, 0.511, False, 10))
    yield Sample((data, count, index, np.array(3, "int32"), 0.317), {"id_index": -1})
    for to_bottom in (False, True):
        yield Sample((data, count, index, 5, 0.317), {"return_indices": False, "invalid_to_bottom": to_bottom})
    plain = {"coord_start": 1, "score_index": 0, "id_index": -1, "iou_threshold": 0.317}
    yield Sample((np.ascontiguousarray(data[..., 1:]), count, index), plain)
    yield Sample((data, np.array([0, 1], "int32"), index))


def all_class_non_max_suppression_samples() -> Iterable[Sample]:
    boxes, scores = _boxes(2, 13), _scores(2, 3, 13)
    yield Sample((boxes, scores, 4, 0.317, 0.0103))
    yield Sample((boxes, scores, np.array([100], "int64"), 0.511, 0.0))
    yield Sample((boxes, scores, 3, 0.317, 0.0103, "tensorflow"))
    yield Sample((boxes, scores, 0, 0.317, 0.0103))
    yield Sample((_boxes(1, 1), _scores(1, 1, 1), -1, 0.5, -1.0))
    yield Sample((_boxes(1, 0), _scores(1, 2, 0), 4, 0.5, 0.0))


def regular_non_max_suppression_samples() -> Iterable[Sample]:
    yield Sample((_boxes(2, 11), _scores(2, 11, 4), 5, 7, 3, 0.317, 0.0103))
    yield Sample((_boxes(1, 5), _scores(1, 5, 2), 2, 9, 2, 0.317, 0.0))
