"""meta_schedule: the search of `loopwright.tune` under the peer's names: what scripts for it import and derive from.

    database = ms.tune_tir(mod, "llvm -num-cores=4", work_dir="work", max_trials_global=64)
    sch = ms.tir_integration.compile_tir(database, mod, "llvm -num-cores=4")

Open `tir_integration.py` first, then `tune.py`: with the usual parts the search is that of `session_tuning.py`; parts
of the user's own (`derived.py`) run in the loop of `task_scheduler/task_scheduler.py`. Rules do step by step what those
of the peer do (`schedule_rule/`).
"""

from loopwright.meta_schedule import arg_info as arg_info
from loopwright.meta_schedule import builder as builder
from loopwright.meta_schedule import cost_model as cost_model
from loopwright.meta_schedule import database as database
from loopwright.meta_schedule import feature_extractor as feature_extractor
from loopwright.meta_schedule import measure_callback as measure_callback
from loopwright.meta_schedule import mutator as mutator
from loopwright.meta_schedule import postproc as postproc
from loopwright.meta_schedule import relay_integration as relay_integration
from loopwright.meta_schedule import runner as runner
from loopwright.meta_schedule import schedule_rule as schedule_rule
from loopwright.meta_schedule import search_strategy as search_strategy
from loopwright.meta_schedule import space_generator as space_generator
from loopwright.meta_schedule import task_scheduler as task_scheduler
from loopwright.meta_schedule import tir_integration as tir_integration
from loopwright.meta_schedule import trace_apply as trace_apply
from loopwright.meta_schedule import tune as tune
from loopwright.meta_schedule import tune_context as tune_context
from loopwright.meta_schedule.arg_info import ArgInfo as ArgInfo
from loopwright.meta_schedule.arg_info import TensorInfo as TensorInfo
from loopwright.meta_schedule.builder import Builder as Builder
from loopwright.meta_schedule.cost_model import CostModel as CostModel
from loopwright.meta_schedule.database import Database as Database
from loopwright.meta_schedule.derived import derived_object as derived_object
from loopwright.meta_schedule.feature_extractor import FeatureExtractor as FeatureExtractor
from loopwright.meta_schedule.measure_callback import MeasureCallback as MeasureCallback
from loopwright.meta_schedule.mutator import Mutator as Mutator
from loopwright.meta_schedule.postproc import Postproc as Postproc
from loopwright.meta_schedule.profiler import Profiler as Profiler
from loopwright.meta_schedule.relay_integration import compile_relay as compile_relay
from loopwright.meta_schedule.relay_integration import tune_relay as tune_relay
from loopwright.meta_schedule.runner import Runner as Runner
from loopwright.meta_schedule.schedule_rule import ScheduleRule as ScheduleRule
from loopwright.meta_schedule.search_strategy import MeasureCandidate as MeasureCandidate
from loopwright.meta_schedule.search_strategy import SearchStrategy as SearchStrategy
from loopwright.meta_schedule.space_generator import SpaceGenerator as SpaceGenerator
from loopwright.meta_schedule.task_scheduler import TaskScheduler as TaskScheduler
from loopwright.meta_schedule.tir_integration import compile_tir as compile_tir
from loopwright.meta_schedule.tir_integration import tune_tir as tune_tir
from loopwright.meta_schedule.tune import tune_tasks as tune_tasks
from loopwright.meta_schedule.tune_context import TuneContext as TuneContext
