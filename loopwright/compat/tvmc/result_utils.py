"""What a run's result shows."""

from __future__ import annotations

import numpy as np

from loopwright.compat.tvmc.model import TVMCResult


def get_top_results(result: TVMCResult, max_results: int) -> np.ndarray:
    """Two rows: the places of the largest elements of the first output, and these elements, largest first."""
    values = np.squeeze(result.get_output("output_0")).ravel()
    order = np.argsort(values)[::-1][:max_results]
    return np.array([order, values[order]])


def get_execution_time(result: TVMCResult) -> str:
    """The table of times."""
    return result.format_times()
