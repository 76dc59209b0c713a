"""How far to speculate: the window that follows from the probability of holds and the cap on waste.

Arithmetic only. `sim.speculator` sends the requests; `sim.speculation_budget` says what may still be wasted.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from copy import copy
from dataclasses import dataclass
from itertools import count, islice
from math import sqrt

MAX_WINDOW = 24
"""Most guesses of a window, however likely holds are, so that a provider is not flooded for a small gain."""

LIKELY = 0.4
"""Least probability that the last guess of a window is used."""

PRIOR_TICKS = 126.8
"""Most ticks that a prior counts as, however long the past that it comes from."""

PRIOR_FADES = 0.95
"""Factor on the weight of the prior for every tick that it did not expect."""

ALWAYS_ACTS, ACTING_RATE = 0.05, 0.9
"""The prior probability that an agent acts at nearly every tick, and the share of ticks at which such an agent acts."""

LEAST_ACTING, MOST_ACTING = 1e-6, 0.99
"""Bounds of that probability, so that an agent can change its behaviour."""

MEMORY = 0.998
"""Decay of a tick's weight per later tick: a change in behaviour is recognised within a few hundred ticks."""

PATTERN_ORDERS, PATTERN_SHARE = 2.5, 0.5
"""The count and share of orders at one distance from the previous order from which they are treated as a pattern."""

AT_ONCE = 0.7
"""The share of the remaining waste that one window may put at risk; when none is left, ticks run one by one."""

FARTHEST = 512
"""Larger distances are counted as this one."""


@dataclass(frozen=True, slots=True)
class HoldPrior:
    """How often an agent is expected to hold and to act before its first tick, as counts of ticks."""

    holds: float = 120.0
    orders: float = 6.8

    @property
    def ticks(self) -> float:
        """The weight of the prior."""
        return self.holds + self.orders

    def with_past(self, holds: int, orders: int) -> "HoldPrior":
        """The prior with ticks of earlier runs added, scaled to `PRIOR_TICKS` if it has become heavier."""
        ticks = self.ticks + holds + orders
        scale = min(1.0, PRIOR_TICKS / ticks)
        return HoldPrior((self.holds + holds) * scale, (self.orders + orders) * scale)


NO_PAST = HoldPrior()


class Holds:
    """Estimates the probability that a tick is a hold: the next tick then has the prompt that speculation expects.

    A tick is a hold if the account is unchanged and nothing was refused.

    Orders are not independent: some skills act at fixed times, some follow an order with another. So a distance from
    the previous order at which orders are frequent has an estimate of its own; all other ticks share one estimate,
    which does not change much with every order that happens to come early or late. Besides, the agent may be one that
    acts at nearly every tick: the first orders in a row make that likely long before the shared estimate follows.
    """

    def __init__(self, prior: HoldPrior = NO_PAST) -> None:
        self._expected, self._prior = prior, 1.0
        self._acting = ALWAYS_ACTS
        self._now, self._age = 1.0, 0
        self._ticks = self._ordered = 0.0
        self._ticks_at: dict[int, float] = defaultdict(float)
        self._orders: dict[int, float] = defaultdict(float)

    def add(self, is_hold: bool) -> None:
        """Add one more tick at which the model was called."""
        self._now /= MEMORY  # raising the weight of new ticks is equivalent to lowering that of all earlier ones
        if self._now > 1e9:
            self._fold()
        share = self._share(self._ordered, self._ticks)
        self._acting = _acting_after(self._acting, share, is_hold)
        self._ticks_at[self._age] += self._now
        self._ticks += self._now
        if is_hold:
            self._age = min(self._age + 1, FARTHEST)
        else:
            self._orders[self._age] += self._now
            self._ordered += self._now
            self._age = 0
        if is_hold != (self._expected.holds >= self._expected.orders):
            self._prior *= PRIOR_FADES

    def _fold(self) -> None:
        for weights in (self._ticks_at, self._orders):
            for age in weights:
                weights[age] /= self._now
        self._ticks, self._ordered, self._now = self._ticks / self._now, self._ordered / self._now, 1.0

    def after(self, holds: int) -> "Holds":
        """The estimate after `holds` further holds, which are known but not replayed yet.

        So the window does not depend on how far the replay happens to have come.
        """
        later = copy(self)
        later._ticks_at, later._orders = self._ticks_at.copy(), self._orders.copy()
        for _ in range(holds):
            later.add(True)
        return later

    def rates(self) -> Iterator[float]:
        """The probability of a hold at the next tick, at the one after it if that held, and so on."""
        ticks_at, least = self._ticks_at, PATTERN_ORDERS * self._now
        patterns = {
            age: orders / ticks_at[age]
            for age, orders in self._orders.items()
            if orders >= least and orders >= PATTERN_SHARE * ticks_at[age]
        }
        orders = self._ordered - sum(self._orders[age] for age in patterns)
        share = self._share(orders, self._ticks - sum(ticks_at[age] for age in patterns))
        acting = self._acting
        for age in count(self._age):
            order_rate = patterns.get(min(age, FARTHEST), share)
            yield 1 - (1 - acting) * order_rate - acting * ACTING_RATE
            acting = _acting_after(acting, order_rate, True)

    def _share(self, orders: float, ticks: float) -> float:
        """The share of orders among these weighted ticks and those of the prior."""
        expected, weight = self._expected, self._prior
        return (weight * expected.orders + orders / self._now) / (weight * expected.ticks + ticks / self._now)


def _acting_after(acting: float, order_rate: float, is_hold: bool) -> float:
    """The probability of an agent that acts at nearly every tick after one more tick, by Bayes' rule.

    `order_rate` is the probability of an order for an agent of the other kind.
    """
    if is_hold:
        by_acting, by_other = acting * (1 - ACTING_RATE), (1 - acting) * (1 - order_rate)
    else:
        by_acting, by_other = acting * ACTING_RATE, (1 - acting) * order_rate
    return min(MOST_ACTING, max(LEAST_ACTING, by_acting / (by_acting + by_other)))


def best_window(hold_rates: Iterable[float], room: float, ahead: int) -> int:
    """The window that can be sustained for `ahead` ticks if `room` guesses may still be wasted.

    A tick followed by `k` guesses wastes, on average, those after the first order. The expected waste of such windows
    until the end must fit into the room, and with one standard deviation added come closest to it: windows of constant
    size are faster than large ones first and none once the room is used up. For the same reason no window may use up
    all of the room. Guesses that are unlikely to be used are not made.
    """
    most = max(0, min(MAX_WINDOW, round(AT_ONCE * room)))
    used, likely, wasted, squared, needed = 1.0, 1.0, 0.0, 0.0, 0.0
    for window, rate in enumerate(islice(hold_rates, most)):
        likely *= rate
        used += likely
        # a window longer by one wastes one more guess if an order came before its end
        squared += 2 * wasted + 1 - likely
        wasted += 1 - likely
        windows = max(1.0, ahead / used)
        expected, spread = windows * wasted, sqrt(windows * max(0.0, squared - wasted * wasted))
        if likely < LIKELY or expected > room + 1e-9:
            return window
        if expected + spread > room + 1e-9:
            return window + (expected + spread - room < room - needed)
        needed = expected + spread
    return most
