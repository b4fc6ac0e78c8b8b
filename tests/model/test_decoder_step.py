"""How the decoder's caches grow, what their masks show, and that they keep the sentences selected."""

from dataclasses import replace

import pytest
import torch

from endeavour.model.attention import HIDDEN
from endeavour.model.decoder_step import STEPS_AT_A_TIME
from endeavour.special import EOS, PAD
from random_models import drawn, tiny

CONFIG = replace(tiny(), width=16, encoder_layers=2, decoder_layers=3, feed_forward=24)
SOURCE = torch.tensor([[5, 6, 7, EOS], [8, EOS, PAD, PAD]])


@torch.no_grad()
def test_a_cache_has_room_for_a_few_steps_at_a_time() -> None:
    made, beam = drawn(CONFIG, (13, 13), alpha=0.1), 3
    cache = made.start(made.encode(SOURCE), beam_size=beam)
    for steps in range(1, 26):
        made.step(torch.full((2, beam), 5), cache)
        assert cache.length == steps
        slots = -(-steps // STEPS_AT_A_TIME) * STEPS_AT_A_TIME * beam
        assert cache.mask.shape == (2, 1, beam, slots)
        assert cache.mask.eq(0).sum(dim=-1).eq(steps).all(), "each hypothesis sees one slot of each step"
        for layer in cache.layers:
            assert layer.own.stored is not None
            assert layer.own.stored.shape == (2, 2, 4, slots, 4)
            assert layer.own.used == steps * beam
            assert not layer.own.stored[:, :, :, layer.own.used :].any()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@torch.no_grad()
def test_a_caches_mask_shows_each_hypothesis_its_own_slot(dtype: torch.dtype) -> None:
    made = drawn(CONFIG, (13, 13), alpha=0.1).to(dtype)
    cache = made.start(made.encode(SOURCE), beam_size=2)
    made.step(torch.full((2, 2), 5), cache)
    assert cache.mask.shape == (2, 1, 2, 2 * STEPS_AT_A_TIME)
    assert cache.mask.dtype == dtype
    assert (cache.mask[1, 0, :, :3] == 0).tolist() == [[True, False, False], [False, True, False]]
    assert set(cache.mask.flatten().tolist()) == {0.0, HIDDEN}


@torch.no_grad()
def test_a_cache_keeps_the_sentences_that_are_selected_in_their_order() -> None:
    made = drawn(CONFIG, (13, 13), alpha=0.1)
    cache, fresh = (made.start(made.encode(SOURCE), beam_size=2) for _ in range(2))
    kept = torch.tensor([1, 0, 1])
    fresh.select(kept)  # before the first step
    made.step(torch.tensor([[5, 6], [7, 8]]), cache)
    made.step(torch.tensor([[7, 8], [5, 6], [7, 8]]), fresh)
    cache.select(kept)
    one, other = (made.step(torch.full((3, 2), 9), each) for each in (cache, fresh))
    torch.testing.assert_close(one, other)
    alone = made.start(made.encode(SOURCE[kept]), beam_size=2)
    made.step(torch.tensor([[7, 8], [5, 6], [7, 8]]), alone)
    torch.testing.assert_close(made.step(torch.full((3, 2), 9), alone), one)
