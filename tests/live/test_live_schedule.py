"""When live ticks are due: once per slot, never early; missed slots are counted and not repeated."""

from hypothesis import given
from hypothesis import strategies as st

from pitboss.core.instant import DAY_MS, HOUR_MS, MINUTE_MS
from pitboss.live.schedule import Due, TickSchedule, schedule

NOON = 1_779_883_200_000
EVERY = schedule(MINUTE_MS)

periods = st.sampled_from((1_000, 10_000, 60_000, 3_600_000))
jumps = st.one_of(
    st.integers(0, 3_000), st.integers(-5_000, 5_000), st.integers(-DAY_MS, DAY_MS), st.just(0), st.just(MINUTE_MS)
)


def test_a_run_begins_with_the_first_slot_from_now_on() -> None:
    assert EVERY.look(NOON + 1, EVERY.before(NOON + 1)) == Due(None, MINUTE_MS - 1)
    assert EVERY.look(NOON, EVERY.before(NOON)) == Due(NOON)


def test_a_tick_is_due_from_its_slot_until_the_grace_is_over() -> None:
    assert EVERY.look(NOON - 1, NOON - MINUTE_MS) == Due(None, 1)
    assert EVERY.look(NOON, NOON - MINUTE_MS) == Due(NOON)
    assert EVERY.look(NOON + 5_000, NOON - MINUTE_MS) == Due(NOON)
    assert EVERY.look(NOON + 5_001, NOON - MINUTE_MS) == Due(None, MINUTE_MS - 5_001, 1, NOON)


def test_an_hour_of_sleep_is_reported_and_only_the_newest_slot_ticks() -> None:
    assert EVERY.look(NOON + HOUR_MS + 10, NOON) == Due(NOON + HOUR_MS, 0, 59, NOON + HOUR_MS - MINUTE_MS)
    assert EVERY.look(NOON + HOUR_MS + 30_000, NOON) == Due(None, 30_000, 60, NOON + HOUR_MS)


def test_after_a_clock_was_set_back_nothing_is_due_before_it_has_caught_up() -> None:
    assert EVERY.look(NOON - HOUR_MS, NOON) == Due(None, HOUR_MS + MINUTE_MS, back_ms=HOUR_MS)


def test_a_short_period_leaves_a_quarter_of_itself_for_being_late() -> None:
    assert schedule(10_000) == TickSchedule(10_000, 2_500)
    assert schedule(HOUR_MS) == TickSchedule(HOUR_MS, 5_000)


@given(periods, st.integers(0, 2 * 10**12), st.lists(jumps, max_size=60), st.lists(st.integers(0, 90_000), min_size=1))
def test_every_slot_is_ticked_once_or_missed_once_whatever_the_clock_does(
    period: int, now: int, moves: list[int], works: list[int]
) -> None:
    plan = schedule(period)
    last = first = plan.before(now)
    ticked: list[int] = []
    missed = 0
    for place, move in enumerate(moves):
        due = plan.look(now, last)
        assert due.wait_ms >= 0
        if due.passed_at is not None:
            assert due.missed_slots > 0
            assert last < due.passed_at <= now
            missed, last = missed + due.missed_slots, due.passed_at
        else:
            assert due.missed_slots == 0
        if due.at is None:
            assert due.wait_ms > 0
            # a runner that waits exactly that long finds the next slot due
            assert plan.look(now + due.wait_ms, last).at == last // period * period + period
        else:
            assert due.at % period == 0
            assert 0 <= now - due.at <= plan.grace_ms
            ticked.append(due.at)
            last = due.at
            now += works[place % len(works)]
        now = max(0, now + move)
    assert ticked == sorted(set(ticked))
    assert (last - first) // period == len(ticked) + missed
