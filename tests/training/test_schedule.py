"""Learning rates at the points that define the schedules."""

import pytest

from endeavour.training.schedule import learning_rate


def rate(update: int, schedule: str) -> float:
    return learning_rate(
        update, schedule=schedule, peak=1e-3, warmup_updates=100, max_updates=1100, final=1e-5
    )


@pytest.mark.parametrize("schedule", ["inverse_sqrt", "cosine"])
def test_rises_linearly_to_the_peak_and_falls_after_it(schedule: str) -> None:
    assert rate(50, schedule) == pytest.approx(0.5e-3)
    assert rate(100, schedule) == pytest.approx(1e-3)
    rates = [rate(update, schedule) for update in range(100, 1101, 50)]
    assert rates == sorted(rates, reverse=True)


def test_inverse_square_root_halves_after_four_times_the_warmup() -> None:
    assert rate(400, "inverse_sqrt") == pytest.approx(0.5e-3)


def test_vaswani_formula() -> None:
    """d^-1/2 · min(n^-1/2, n · w^-3/2) is this schedule with the peak (d · w)^-1/2."""
    for update in (1, 10, 100, 1000):
        formula = 512**-0.5 * min(update**-0.5, update * 100**-1.5)
        ours = learning_rate(
            update,
            schedule="inverse_sqrt",
            peak=(512 * 100) ** -0.5,
            warmup_updates=100,
            max_updates=None,
            final=0.0,
        )
        assert ours == pytest.approx(formula)


def test_cosine_ends_at_its_final_rate() -> None:
    assert rate(600, "cosine") == pytest.approx((1e-3 + 1e-5) / 2)
    assert rate(1100, "cosine") == pytest.approx(1e-5)
    assert rate(5000, "cosine") == pytest.approx(1e-5)
