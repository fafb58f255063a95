"""Runners. Open `runner.py` first, then `local_runner.py`."""

from loopwright.meta_schedule.runner.config import EvaluatorConfig as EvaluatorConfig
from loopwright.meta_schedule.runner.config import RPCConfig as RPCConfig
from loopwright.meta_schedule.runner.local_runner import LocalRunner as LocalRunner
from loopwright.meta_schedule.runner.local_runner import LocalRunnerFuture as LocalRunnerFuture
from loopwright.meta_schedule.runner.rpc_runner import RPCRunner as RPCRunner
from loopwright.meta_schedule.runner.runner import PyRunner as PyRunner
from loopwright.meta_schedule.runner.runner import PyRunnerFuture as PyRunnerFuture
from loopwright.meta_schedule.runner.runner import Runner as Runner
from loopwright.meta_schedule.runner.runner import RunnerFuture as RunnerFuture
from loopwright.meta_schedule.runner.runner import RunnerInput as RunnerInput
from loopwright.meta_schedule.runner.runner import RunnerResult as RunnerResult
from loopwright.meta_schedule.runner.runner import create as create
