from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from loopwright.model.arena_packing import ALIGNMENT, Block, aligned, lower_bound, pack, peak


def test_dead_blocks_give_their_place_to_later_ones():
    blocks = [Block(400, 0, 1), Block(100, 1, 2), Block(400, 2, 3)]
    assert pack(blocks) == [0, 448, 0]
    assert peak(blocks, pack(blocks)) == lower_bound(blocks) == 448 + 128


def test_a_chain_of_equal_blocks_takes_two():
    blocks = [Block(1000, k, k + 1) for k in range(20)]
    assert peak(blocks, pack(blocks)) == 2 * aligned(1000)


def test_no_blocks_and_empty_blocks():
    assert pack([]) == []
    assert lower_bound([]) == peak([], []) == 0
    assert peak([Block(0, 0, 5)], pack([Block(0, 0, 5)])) == 0


def check_apart(blocks, offsets):
    for k, (one, at) in enumerate(zip(blocks, offsets)):
        assert at % ALIGNMENT == 0
        for other, there in list(zip(blocks, offsets))[:k]:
            if one.first <= other.last and other.first <= one.last:
                assert at + aligned(one.size) <= there or there + aligned(other.size) <= at


@settings(max_examples=150, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 30), st.integers(0, 12)), max_size=40))
def test_blocks_that_live_together_are_apart(rows):
    blocks = [Block(size, first, first + length) for size, first, length in rows]
    offsets = pack(blocks)
    check_apart(blocks, offsets)
    assert peak(blocks, offsets) >= lower_bound(blocks)


def resnet():
    blocks, t = [Block(64 * 112 * 112 * 4, 0, 1), Block(64 * 56 * 56 * 4, 1, 5)], 1
    for count, channels, side in ((3, 64, 56), (4, 128, 28), (6, 256, 14), (3, 512, 7)):
        for k in range(count):
            inner = channels * side * side * 4
            blocks += [Block(inner, t + 1, t + 2), Block(inner, t + 2, t + 3)]
            if k == 0:
                blocks.append(Block(4 * inner, t + 3, t + 4))
                t += 1
            blocks.append(Block(4 * inner, t + 3, t + 7))
            t += 3
    return blocks


def densenet():
    blocks, t, channels = [], 0, 64
    for count, side in ((6, 56), (12, 28), (24, 14), (16, 7)):
        pixels = side * side * 4
        blocks.append(Block(channels * pixels, t, t + 3 * count))
        for k in range(count):
            blocks += [Block((channels + 32 * k) * pixels, t, t + 1), Block(128 * pixels, t + 1, t + 2)]
            blocks.append(Block(32 * pixels, t + 2, t + 3 * (count - k) + 1))
            t += 3
        channels += 32 * count
        blocks.append(Block(channels * pixels, t, t + 1))
        channels //= 2
        t += 1
    return blocks


def inception():
    blocks, t = [], 0
    for module, side in enumerate((35, 35, 35, 17, 17, 17, 17, 17, 8, 8, 8)):
        pixels = side * side * 4
        blocks.append(Block((192 + 96 * module) * pixels, t, t + 10))
        step = t
        for branch, lengths in enumerate(((64,), (48, 64), (64, 96, 96), (32,))):
            for k, width in enumerate(lengths):
                step += 1
                last = t + 11 if k == len(lengths) - 1 else step + 1
                blocks.append(Block((width + 32 * module + branch) * pixels, step, last))
        t += 11
    return blocks


@pytest.mark.parametrize("net", [resnet, densenet, inception])
def test_realistic_nets_are_within_a_tenth_of_the_lower_bound(net):
    blocks = net()
    offsets = pack(blocks)
    check_apart(blocks, offsets)
    assert peak(blocks, offsets) <= 1.1 * lower_bound(blocks)
