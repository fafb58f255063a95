"""What regions of interest, anchors and proposals mean, in numpy, and the samples they are tried on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, floor

import numpy as np

from loopwright.topi.registry import Bound, Sample
from loopwright.topi.testing.boxes import non_max_suppression, overlap
from loopwright.topi.types import Arguments, Ints

_EPS = float(np.finfo("float32").eps)


def roi_align_nchw(
    data: np.ndarray,
    rois: np.ndarray,
    pooled_size: Ints,
    spatial_scale: float,
    mode: str | int | bytes,
    sample_ratio: int = -1,
    aligned: bool = False,
) -> np.ndarray:
    pooled = [pooled_size] * 2 if isinstance(pooled_size, int) else list(pooled_size)
    is_mean = mode in (0, "avg", b"avg")
    result = np.zeros((len(rois), data.shape[1], *pooled))
    for r, (batch, x1, y1, x2, y2) in enumerate(rois):
        starts = np.array([y1, x1]) * spatial_scale
        lengths = np.array([y2, x2]) * spatial_scale - starts
        starts, lengths = (starts - 0.5, lengths) if aligned else (starts, np.maximum(lengths, 1.0))
        bins = lengths / pooled
        counts = [ceil(size) if sample_ratio <= 0 else sample_ratio for size in bins]
        for at in np.ndindex(*pooled):
            values = []
            for sample in np.ndindex(*counts):
                location = [starts[k] + (at[k] + (sample[k] + 0.5) / counts[k]) * bins[k] for k in range(2)]
                values.append(_between(data[int(batch)], location))
            answer = (np.mean(values, 0) if is_mean else np.max(values, 0)) if values else 0.0
            result[(r, slice(None), *at)] = answer
    return result


def _between(picture: np.ndarray, location: Sequence[float]) -> np.ndarray:
    """The four pixels around a place, weighted."""
    total = np.zeros(picture.shape[0])
    if any(not -1 <= value <= size for value, size in zip(location, picture.shape[1:], strict=True)):
        return total
    kept = [min(max(value, 0.0), size - 1) for value, size in zip(location, picture.shape[1:], strict=True)]
    for corner in np.ndindex(2, 2):
        pixel = [
            min(floor(value) + step, size - 1)
            for value, step, size in zip(kept, corner, picture.shape[1:], strict=True)
        ]
        weights = [
            value - floor(value) if step else 1 - value + floor(value) for value, step in zip(kept, corner, strict=True)
        ]
        total = total + picture[:, pixel[0], pixel[1]] * weights[0] * weights[1]
    return total


def roi_align_nhwc(
    data: np.ndarray,
    rois: np.ndarray,
    pooled_size: Ints,
    spatial_scale: float,
    mode: str | int | bytes,
    sample_ratio: int = -1,
    aligned: bool = False,
) -> np.ndarray:
    moved = data.transpose(0, 3, 1, 2)
    return roi_align_nchw(moved, rois, pooled_size, spatial_scale, mode, sample_ratio, aligned).transpose(0, 2, 3, 1)


def _pictures(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).uniform(-1, 1, shape).astype("float32")


def _rois(batch: int, count: int, size: float) -> np.ndarray:
    """Regions whose corners are quarters, exact in every type; one of them is empty, one outside."""
    random = np.random.default_rng(count)
    low = random.integers(0, int(size / 2), (count, 2)) + 0.25
    rois = np.concatenate(
        [random.integers(0, batch, (count, 1)), low, low + random.integers(2, int(size), (count, 2))], 1
    )
    rois[0, 3:] = rois[0, 1:3]
    rois[-1, 3:] += size
    return rois.astype("float32")


def _coordinates(pixels: int, samples: int) -> Bound:
    """A place has 8 roundings of at most 2·`pixels`; a pixel further changes a value by at most 2 in each direction.

    Weighing four values below 1 costs 6 eps, adding up `samples` of them as many.
    """
    return lambda args, exact: (2 * 8 * 2 * pixels * 2 + 6 + samples + 2) * _EPS


def roi_align_nchw_samples() -> Iterable[Sample]:
    data, rois = _pictures(2, 3, 9, 11), _rois(2, 5, 16.0)
    yield Sample((data, rois, (3, 4), 0.5, 0), bound=_coordinates(11, 16))
    yield Sample((data, rois, 2, 0.5, b"max", 2), bound=_coordinates(11, 16))
    yield Sample((data, rois, (1, 3), 0.25, "avg", 3), bound=_coordinates(11, 16))
    yield Sample((data, rois, (2, 3), 0.5, "avg", -1, True), bound=_coordinates(11, 16))


def roi_align_nhwc_samples() -> Iterable[Sample]:
    yield Sample((_pictures(2, 9, 11, 3), _rois(2, 4, 16.0), (3, 2), 0.5, "avg", 2), bound=_coordinates(11, 16))
    yield Sample((_pictures(1, 9, 11, 1), _rois(1, 3, 16.0), (2, 2), 0.5, "max"), bound=_coordinates(11, 16))


def roi_pool_nchw(data: np.ndarray, rois: np.ndarray, pooled_size: Ints, spatial_scale: float) -> np.ndarray:
    pooled = [pooled_size] * 2 if isinstance(pooled_size, int) else list(pooled_size)
    result = np.zeros((len(rois), data.shape[1], *pooled))
    for r, (batch, *corners) in enumerate(rois):
        x1, y1, x2, y2 = (floor(abs(value * spatial_scale) + 0.5) * (1 if value >= 0 else -1) for value in corners)
        starts, lengths = (y1, x1), (max(y2 - y1 + 1, 1), max(x2 - x1 + 1, 1))
        for at in np.ndindex(*pooled):
            cut = []
            for k in range(2):
                low = starts[k] + floor(at[k] * lengths[k] / pooled[k])
                high = starts[k] + ceil((at[k] + 1) * lengths[k] / pooled[k])
                cut.append(slice(min(max(low, 0), data.shape[2 + k]), min(max(high, 0), data.shape[2 + k])))
            part = data[int(batch), :, cut[0], cut[1]]
            if part.size:
                result[(r, slice(None), *at)] = part.max((1, 2))
    return result


def roi_pool_nchw_samples() -> Iterable[Sample]:
    yield Sample((_pictures(2, 3, 9, 11), _rois(2, 6, 16.0), (3, 4), 0.5))
    yield Sample((_pictures(1, 1, 5, 5), _rois(1, 4, 40.0), 7, 0.25))


def reorg(data: np.ndarray, stride: int) -> np.ndarray:
    batch, channels, height, width = data.shape
    fewer = channels // stride**2
    memory = data.reshape(batch, fewer, height * stride, width * stride)
    result = np.empty_like(data)
    for c in range(channels):
        offset = c // fewer
        result[:, c] = memory[:, c % fewer, offset // stride :: stride, offset % stride :: stride]
    return result.reshape(batch, channels * stride**2, height // stride, width // stride)


def reorg_samples() -> Iterable[Sample]:
    yield Sample((_pictures(2, 8, 4, 6), 2))
    yield Sample((_pictures(1, 9, 3, 6), 3))
    yield Sample((_pictures(1, 3, 2, 5), 1))


def multibox_prior(
    data: np.ndarray,
    sizes: Sequence[float] = (1,),
    ratios: Sequence[float] = (1,),
    steps: Sequence[float] = (-1, -1),
    offsets: Sequence[float] = (0.5, 0.5),
    clip: bool = False,
) -> np.ndarray:
    height, width = data.shape[2:]
    sides = [(size, size) for size in sizes] + [(sizes[0] / ratio**0.5, sizes[0] * ratio**0.5) for ratio in ratios[1:]]
    boxes = []
    for y, x in np.ndindex(height, width):
        middle = [
            (at + offset) * (step if step > 0 else 1 / size)
            for at, offset, step, size in zip((y, x), offsets, steps, (height, width), strict=True)
        ]
        for high, wide in sides:
            half_wide, half_high = wide * height / width / 2, high / 2
            boxes.append([middle[1] - half_wide, middle[0] - half_high, middle[1] + half_wide, middle[0] + half_high])
    result = np.array(boxes)[None]
    return np.clip(result, 0, 1) if clip else result


def _few_ulps(args: Arguments, exact: np.ndarray) -> float:
    """At most 8 roundings of numbers below 4."""
    return 8 * 4 * _EPS


def multibox_prior_samples() -> Iterable[Sample]:
    yield Sample((_pictures(1, 2, 3, 4), (0.5, 0.25), (1.0, 2.0, 0.5)), bound=_few_ulps)
    yield Sample((_pictures(1, 2, 2, 3), (0.75,), (1.0,), (0.3, 0.2), (0.25, 0.5), True), bound=_few_ulps)
    yield Sample((_pictures(1, 1, 1, 1),), bound=_few_ulps)


def multibox_transform_loc(
    cls_prob: np.ndarray,
    loc_pred: np.ndarray,
    anchor: np.ndarray,
    clip: bool = True,
    threshold: float = 0.01,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    keep_background: bool = False,
) -> list[np.ndarray]:
    first = 0 if keep_background else 1
    batch, _, count = cls_prob.shape
    result, counts = np.full((batch, count, 6), -1.0), np.zeros(batch, "int32")
    for b, i in np.ndindex(batch, count):
        best = first + int(np.argmax(cls_prob[b, first:, i]))
        if cls_prob[b, best, i] < threshold:
            continue
        low, high = anchor[0, i, :2], anchor[0, i, 2:]
        shift = loc_pred[b, 4 * i : 4 * i + 4] * variances
        middle = shift[:2] * (high - low) + (low + high) / 2
        half = np.exp(shift[2:]) * (high - low) / 2
        corners = np.concatenate([middle - half, middle + half])
        row = [best - first, cls_prob[b, best, i], *(np.clip(corners, 0, 1) if clip else corners)]
        result[b, counts[b]] = row
        counts[b] += 1
    return [result, counts]


def _detections(batch: int, classes: int, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(count)
    low = random.uniform(0, 0.5, (1, count, 2))
    anchor = np.concatenate([low, low + random.uniform(0.1, 0.5, (1, count, 2))], -1).astype("float32")
    scores = random.permutation(batch * classes * count).reshape(batch, classes, count) / np.float32(1024)
    return scores.astype("float32"), random.uniform(-1, 1, (batch, count * 4)).astype("float32"), anchor


def multibox_transform_loc_samples() -> Iterable[Sample]:
    yield Sample((*_detections(2, 3, 7), True, 0.0203), bound=_few_ulps)
    yield Sample((*_detections(1, 2, 5), False, 0.0), bound=_few_ulps)
    yield Sample((*_detections(2, 3, 4),), {"keep_background": True}, bound=_few_ulps)


def multibox_detection(
    cls_prob: np.ndarray,
    loc_pred: np.ndarray,
    anchor: np.ndarray,
    clip: bool = True,
    threshold: float = 0.01,
    nms_threshold: float = 0.5,
    force_suppress: bool = False,
    variances: Sequence[float] = (0.1, 0.1, 0.2, 0.2),
    nms_topk: int = -1,
) -> np.ndarray | list[np.ndarray]:
    boxes, counts = multibox_transform_loc(cls_prob, loc_pred, anchor, clip, threshold, variances)
    return non_max_suppression(boxes, counts, None, -1, nms_threshold, force_suppress, nms_topk, return_indices=False)


def multibox_detection_samples() -> Iterable[Sample]:
    yield Sample((*_detections(2, 3, 11),), {"nms_threshold": 0.31}, bound=_few_ulps)
    yield Sample((*_detections(1, 3, 9), True, 0.01, 0.21, True), {"nms_topk": 6}, bound=_few_ulps)


def proposal(
    cls_prob: np.ndarray,
    bbox_pred: np.ndarray,
    im_info: np.ndarray,
    scales: Sequence[float],
    ratios: Sequence[float],
    feature_stride: int,
    threshold: float,
    rpn_pre_nms_top_n: int,
    rpn_post_nms_top_n: int,
    rpn_min_size: int,
    iou_loss: bool,
) -> np.ndarray:
    batch, _, height, width = cls_prob.shape
    shapes = []
    for ratio in ratios:
        wide = floor((floor(feature_stride**2 / ratio)) ** 0.5 + 0.5)
        shapes += [(wide * scale, floor(wide * ratio + 0.5) * scale) for scale in scales]
    result = []
    for b in range(batch):
        boxes, scores = [], []
        for y, x, a in np.ndindex(height, width, len(shapes)):
            side = np.array(shapes[a], "float64")
            middle = (feature_stride - 1) / 2 + np.array([x, y]) * feature_stride
            shift = bbox_pred[b, 4 * a : 4 * a + 4, y, x]
            if iou_loss:
                corners = np.concatenate([middle - (side - 1) / 2, middle + (side - 1) / 2]) + shift
            else:
                moved, half = shift[:2] * side + middle, (np.exp(shift[2:]) * side - 1) / 2
                corners = np.concatenate([moved - half, moved + half])
            box = np.clip(corners, 0, im_info[b, [1, 0, 1, 0]] - 1)
            least = rpn_min_size * im_info[b, 2]
            is_small = min(box[2:] - box[:2] + 1) < least
            boxes.append(box + least / 2 * np.array([-1, -1, 1, 1]) if is_small else box)
            scores.append(-1.0 if is_small else cls_prob[b, len(shapes) + a, y, x])
        kept: list[int] = []
        for index in np.argsort(-np.array(scores), kind="stable")[
            : rpn_pre_nms_top_n if rpn_pre_nms_top_n > 0 else None
        ]:
            grown = [boxes[k] + [0, 0, 1, 1] for k in (*kept, int(index))]
            if len(kept) < rpn_post_nms_top_n and not any(overlap(box, grown[-1]) > threshold for box in grown[:-1]):
                kept.append(int(index))
        result += [[b, *boxes[kept[k % len(kept)]]] for k in range(rpn_post_nms_top_n)]
    return np.array(result)


def proposal_samples() -> Iterable[Sample]:
    # Corners are below 128, and have at most 8 roundings; exp has 2.
    def bound(args: Arguments, exact: np.ndarray) -> np.ndarray | float:
        return 10 * 128 * _EPS

    def sample(batch: int, scales: Sequence[float], ratios: Sequence[float], *options: object) -> Sample:
        random = np.random.default_rng(batch)
        anchors = len(scales) * len(ratios)
        scores = random.permutation(batch * 2 * anchors * 12).reshape(batch, 2 * anchors, 3, 4) / 1024
        shifts = random.uniform(-0.4, 0.4, (batch, 4 * anchors, 3, 4))
        info = np.array([[48, 64, 1.0]] * batch)
        arrays = [array.astype("float32") for array in (scores, shifts, info)]
        return Sample((*arrays, scales, ratios, *options), bound=bound)

    yield sample(2, (1.0, 2.0), (0.5, 1.0), 16, 0.613, 20, 6, 8, False)
    yield sample(1, (0.5,), (1.0,), 16, 0.3071, -1, 20, 2, True)
