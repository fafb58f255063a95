"""Python's garbage collector runs seldom while a program is compiled, and as before afterwards."""

from __future__ import annotations

import gc
import threading

import pytest

import loopwright as lw
from loopwright import te
from loopwright.ir.rare_collections import NEW_OBJECTS, rare_collections


@pytest.fixture
def threshold():
    usual = gc.get_threshold()
    yield lambda first: gc.set_threshold(first, *usual[1:])
    gc.set_threshold(*usual)


@rare_collections
def inside():
    return gc.get_threshold()[0]


@rare_collections
def twice_inside():
    first = inside()
    return first, gc.get_threshold()[0]


def test_the_threshold_is_high_inside_and_as_before_outside(threshold):
    threshold(700)
    assert inside() == NEW_OBJECTS
    assert twice_inside() == (NEW_OBJECTS, NEW_OBJECTS)
    assert gc.get_threshold()[0] == 700


@pytest.mark.parametrize("first", [0, NEW_OBJECTS, 10 * NEW_OBJECTS])
def test_who_collects_never_or_more_seldom_still_does(threshold, first):
    threshold(first)
    assert inside() == first
    assert gc.get_threshold()[0] == first


def test_what_is_set_inside_stays(threshold):
    threshold(700)

    @rare_collections
    def sets():
        threshold(5000)

    sets()
    assert gc.get_threshold()[0] == 5000


def test_an_error_restores_it(threshold):
    threshold(700)

    @rare_collections
    def fails():
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        fails()
    assert gc.get_threshold()[0] == 700


def test_the_last_thread_restores_it(threshold):
    threshold(700)
    entered, leave = threading.Event(), threading.Event()

    @rare_collections
    def waits():
        entered.set()
        leave.wait(10)

    other = threading.Thread(target=waits)
    other.start()
    entered.wait(10)
    assert inside() == NEW_OBJECTS
    assert gc.get_threshold()[0] == NEW_OBJECTS  # the other one is inside still
    leave.set()
    other.join()
    assert gc.get_threshold()[0] == 700


def test_a_build_leaves_it_as_it_was(threshold):
    threshold(700)
    A = te.placeholder((4,), name="A")
    lw.build([A, te.compute((4,), lambda i: A[i] + 1, name="B")], autosched=True)
    assert gc.get_threshold()[0] == 700
