"""The pytest plugin: `pytest_plugins = ["loopwright.testing.plugin"]`.

A test that takes `target` runs on every target that tests are meant for (`targets.py`), skipped where it cannot run;
`dev` is the target's device. Values of `testing.parameters` go together.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import pytest

from loopwright.runtime import Device, device
from loopwright.target import Target
from loopwright.target.errors import UnknownTargetKind
from loopwright.target.target import TargetLike
from loopwright.testing.fixtures import GROUPS, Group
from loopwright.testing.marks import MARKS
from loopwright.testing.targets import is_runnable, wanted_targets


def pytest_configure(config: pytest.Config) -> None:
    """Register the marks."""
    for name, meaning in MARKS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Spread tests over their targets, and over their sets of parameters."""
    # pytest rewrites the assertions of a plugin, for which it reads the file once for each name it is asked for by.
    if metafunc.__dict__.setdefault("_spread_by", __name__) != __name__:
        return
    if "target" in metafunc.fixturenames and not _is_parametrized(metafunc, "target"):
        metafunc.parametrize("target", _targets(metafunc), scope="session")
    _parametrize_groups(metafunc)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip targets that cannot run here, also of the user's own lists; fail where `xfail_parameterizations` says so."""
    for item in items:
        target = getattr(item, "callspec", None) and item.callspec.params.get("target")  # type: ignore[attr-defined]
        if isinstance(target, (str, Target)):
            for needed in _target_to_requirement(target):
                if needed.mark not in item.iter_markers():
                    item.add_marker(needed)
        for mark in item.iter_markers("loopwright_failing_parameters"):
            if item.name.partition("[")[2].removesuffix("]") in mark.args:
                item.add_marker(pytest.mark.xfail(reason=mark.kwargs["reason"]))


@pytest.fixture
def dev(target: TargetLike) -> Device:
    """The device of `target`."""
    return device(str(Target(target).kind))


def _is_parametrized(metafunc: pytest.Metafunc, name: str) -> bool:
    for mark in metafunc.definition.iter_markers("parametrize"):
        names = mark.args[0] if mark.args else mark.kwargs["argnames"]
        if name in ([n.strip() for n in names.split(",")] if isinstance(names, str) else names):
            return True
    return bool(metafunc.definition.session._fixturemanager.getfixturedefs(name, metafunc.definition))


def _targets(metafunc: pytest.Metafunc) -> list[Any]:
    """The targets of a test, each with the marks that skip it or expect it to fail."""

    def named(mark: str) -> list[Any]:
        return [target for result in metafunc.definition.iter_markers(mark) for target in result.args]

    excluded, failing = named("loopwright_excluded_targets"), named("loopwright_failing_targets")
    chosen = []
    for target in named("loopwright_targets") or wanted_targets():
        text = target if isinstance(target, str) else str(Target(target))
        kind = str(Target(target).kind)
        if text in excluded or kind in excluded:
            continue
        marks = _target_to_requirement(target)
        if text in failing or kind in failing:
            marks.append(pytest.mark.xfail(reason=f"known to fail on target {text}"))
        chosen.append(pytest.param(target, marks=marks, id=text))
    return chosen


def _target_to_requirement(target: TargetLike) -> list[pytest.MarkDecorator]:
    """The marks of a test that runs on `target`: it is skipped where that cannot be built, or has no device."""
    try:
        if is_runnable(target):
            return []
    except UnknownTargetKind:  # the user's own meaning of the word
        return []
    text = target if isinstance(target, str) else str(Target(target))
    return [pytest.mark.skip(reason=f"target {text} cannot be built, or its device is not here")]


def _parametrize_groups(metafunc: pytest.Metafunc) -> None:
    groups: dict[int, list[tuple[str, Group]]] = defaultdict(list)
    for name in metafunc.fixturenames:
        definitions = metafunc._arg2fixturedefs.get(name)
        result = GROUPS.get(_function(definitions[-1].func)) if definitions else None
        if result is not None:
            groups[result[0]].append((name, result))
    for members in groups.values():
        _, _, value_sets, ids = members[0][1]
        names = [name for name, _ in members]
        rows = [tuple(values[position] for _, (_, position, _, _) in members) for values in value_sets]
        metafunc.parametrize(names, rows, indirect=True, ids=ids)


def _function(function: object) -> Any:
    """The plain function of a method: parameters of a class are bound to an instance."""
    return getattr(function, "__func__", function)
