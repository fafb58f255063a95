"""Names of log files, as scripts look for them."""

from __future__ import annotations

import logging
import os

get_logger = logging.getLogger


def get_loggers_from_work_dir(work_dir: str, task_names: list[str]) -> list[logging.Logger]:
    """A logger for each task, with a file in `work_dir/logs`."""
    folder = os.path.join(work_dir, "logs")
    os.makedirs(folder, exist_ok=True)
    loggers = []
    for number, name in enumerate(task_names):
        logger = logging.getLogger(f"tvm.meta_schedule.logging.task_{number:02d}_{name}")
        if not logger.handlers:
            logger.addHandler(logging.FileHandler(os.path.join(folder, f"{logger.name}.log"), delay=True))
        loggers.append(logger)
    return loggers
