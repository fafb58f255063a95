"""pickle_memoize: a result is computed once for each combination of arguments, and can outlive the process."""

import numpy as np

from loopwright.contrib import pickle_memoize
from loopwright.contrib.pickle_memoize import memoize

calls: list[tuple[int, ...]] = []


def test_a_result_is_computed_once_for_its_arguments():
    @memoize("tests.squares")
    def squares(x, power=2):
        calls.append(x.shape)
        return x**power

    x = np.arange(4)
    assert squares(x) is squares(x.copy())
    assert (squares(x, power=3) == [0, 1, 8, 27]).all()
    assert calls == [(4,), (4,)]


def test_values_of_the_enclosing_function_count_as_arguments():
    def sums(n):
        @memoize("tests.sums")
        def total():
            return sum(range(n))

        return total()

    assert [sums(3), sums(5), sums(3)] == [3, 10, 3]


def test_what_cannot_be_compared_is_computed_again():
    @memoize("tests.apply")
    def apply(function, x):
        return function(x)

    assert apply(lambda x: x + 1, 1) == 2
    assert apply(lambda x: x + 2, 1) == 3


def test_saved_results_are_read_by_the_next_process(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = pickle_memoize.Cache("kept", save_at_exit=True)
    assert first.get(b"key", lambda: 7) == 7
    first.save()
    assert pickle_memoize.Cache("kept", save_at_exit=True).get(b"key", lambda: 0) == 7
    assert [path.name for path in (tmp_path / pickle_memoize.FOLDER).iterdir()] == ["kept.pkl"]
