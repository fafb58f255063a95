"""Cost models that are saved and read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from loopwright import meta_schedule as ms
from loopwright.meta_schedule.errors import UnreadableData
from loopwright.runtime.together import CannotWrite

pytest.importorskip("xgboost")


def test_what_was_saved_is_read(tmp_path: Path) -> None:
    model = ms.cost_model.XGBModel()
    model.data_size = 7
    model.save(str(tmp_path / "model.tar"))
    again = ms.cost_model.XGBModel()
    again.load(str(tmp_path / "model.tar"))
    assert (again.data_size, again.data, again.booster) == (7, {}, None)
    assert [one.name for one in tmp_path.iterdir()] == ["model.tar"]


def test_what_is_no_cost_model_is_refused_and_changes_nothing(tmp_path: Path) -> None:
    model = ms.cost_model.XGBModel()
    model.data_size = 7
    (tmp_path / "text.tar").write_text("no archive")
    model.save(str(tmp_path / "cut.tar"))
    (tmp_path / "cut.tar").write_bytes((tmp_path / "cut.tar").read_bytes()[:-30])
    with pytest.raises(UnreadableData, match="No such file"):
        model.load(str(tmp_path / "nowhere.tar"))
    for name in ("text.tar", "cut.tar"):
        with pytest.raises(UnreadableData, match=rf"the cost model .*{name} cannot be read"):
            model.load(str(tmp_path / name))
    assert model.data_size == 7


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(CannotWrite, match="it is a folder"):
        ms.cost_model.XGBModel().save(str(tmp_path))
