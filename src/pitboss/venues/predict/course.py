"""The course of a predict backtest: price updates, the ticks between them, and the account that both act on.

An update is a price with the instant from which it is available and the volatility realised by then. A tick sees every
update up to its own instant. Prices do not change an account without positions, so such an account skips over them in
one step.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from pitboss.agent.decider import Plan, Planned
from pitboss.core.asof import Market
from pitboss.core.curve import Piece
from pitboss.core.errors import InvariantError
from pitboss.core.instant import DAY_MS, MINUTE_MS, Instant
from pitboss.core.leg import Leg
from pitboss.core.market import Floats, Ints, plain_ints
from pitboss.core.money import text
from pitboss.core.receipt import Receipt
from pitboss.core.state import State
from pitboss.sim.course import Course
from pitboss.venues.predict.desk import Desk, spend_with_reserves
from pitboss.venues.predict.execution import apply_update
from pitboss.venues.predict.portfolio import equity
from pitboss.venues.predict.ports import PredictPorts
from pitboss.venues.predict.schedule import FINEST_MS, TIERS
from pitboss.venues.predict.state import NO_ACCOUNT, QUOTE, ContractPosition, Oracle, contracts, open_world
from pitboss.venues.predict.svi import Svi
from pitboss.venues.predict.trade import WorldStep
from pitboss.venues.predict.world import advance, can_coast, coast, feed

VAULT = 1_000_000 * QUOTE
"""Balance of the vault, the counterparty of every contract; the default of the paper venue."""

PLACES = 6
"""Decimals of the quote unit."""

Surface = Callable[[Oracle, Instant], Svi | None]
"""Returns the recorded surface of a market available at an instant; None if there is none."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Updates:
    """Price updates: prices in billionths, oldest first, unique times. `volatility` is annual and uses no later data."""

    at: Ints
    spot: Ints
    volatility: Floats

    def __len__(self) -> int:
        return len(self.at)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PredictCourse(Course):
    """A range to replay on the predict venue, with the ports of its ticks."""

    ports: PredictPorts
    market: Market
    updates: Updates
    cash: int
    tiers: tuple[str, ...] = TIERS
    vault: int = VAULT
    surface: Surface | None = None
    least_spend: int | None = None
    """The minimum spend of a decider that mints whenever it can; None for a decider that may hold for other reasons."""
    step_ms: int = MINUTE_MS
    _columns: list[tuple[list[int], list[int], list[float]]] = field(default_factory=list, init=False, repr=False)
    _late: list[list[int]] = field(default_factory=list, init=False, repr=False)

    def tick_offsets(self) -> Sequence[int]:
        """Return the number of updates available at each tick."""
        return plain_ints(np.searchsorted(self.updates.at, self.tick_at, side="right"))

    def advance(self, world: Desk, start: int, stop: int, pause_before_change: bool = False) -> Leg:
        """Apply updates `start` to `stop`, with one equity point each."""
        at, spot, volatility = self._lists()
        desk, curve, receipts = world, _Points(self.step_ms), list[Receipt]()
        account_id, caps = self.ports.account_id, self.ports.caps
        index = start
        while index < stop:
            account = desk.world.accounts.get(account_id, NO_ACCOUNT)
            idle = not account.positions and not desk.waiting
            if pause_before_change and not idle and _changes(desk, account.positions.values(), at[index]):
                break
            first = index
            if idle:
                index = self._coasts(desk, at, index, stop)
            if index > first:
                update = coast(
                    desk.world,
                    self.ports.underlying,
                    at[first : index + 1],
                    spot[first : index + 1],
                    volatility[index],
                    self.tiers,
                )
            else:
                update = self._update(desk, at[index], spot[index], volatility[index])
            desk, happened = apply_update(desk, update, caps, at[index], account_id)
            if happened:
                receipts += happened
            account = desk.world.accounts.get(account_id, NO_ACCOUNT)
            if idle:
                curve.flat(at[first : index + 1], account.cash)
            else:
                curve.add(at[index], account.cash, equity(desk.world, account_id) - account.cash)
            index += 1
        return Leg(desk, tuple(receipts), curve.pieces, index)

    def finish(self, world: Desk, start: int) -> Leg:
        """Apply the updates after the last tick. Contracts that have not expired by the end are marked at their bid."""
        return self.advance(world, start, len(self.updates))

    def plan(self) -> Plan:
        """Return the plan of ticks at which the heuristic or the decisions file acts."""
        decider = self.ports.decider
        if isinstance(decider, Planned):
            return decider.plan(self.market, self.tick_at, (self.ports.underlying,), "1m")
        if self.least_spend is None:
            raise InvariantError(f"{decider.name} cannot plan its ticks")
        return BudgetPlan(self.tick_at.tolist(), self.ports, self.least_spend)

    def unchanged(self, before: State, after: State) -> bool:
        """Whether market, account and waiting orders are equal. Shown asks are ignored: only the rules read them."""
        old, new = before.world, after.world
        return old is new or (old.waiting == new.waiting and (old.world is new.world or old.world == new.world))

    def _lists(self) -> tuple[list[int], list[int], list[float]]:
        """Return the columns as lists of Python numbers, the only ones a world holds. Computed once."""
        if not self._columns:
            updates = self.updates
            self._columns.append((updates.at.tolist(), updates.spot.tolist(), updates.volatility.tolist()))
        return self._columns[0]

    def _coasts(self, desk: Desk, at: list[int], index: int, stop: int) -> int:
        """Return the last update to which an account without positions can skip in one step; `place` if it cannot skip."""
        world, underlying = desk.world, self.ports.underlying
        if self.surface is not None or not can_coast(world, underlying):
            return index
        if at[index] - world.feeds[underlying].at > FINEST_MS:
            return index
        holes = self._holes()
        hole = bisect_left(holes, index + 1)
        return min(stop, holes[hole] if hole < len(holes) else stop) - 1

    def _holes(self) -> list[int]:
        """Return the updates that follow a gap so long that a market may have been missed within it."""
        if not self._late:
            self._late.append((np.flatnonzero(np.diff(self.updates.at) > FINEST_MS) + 1).tolist())
        return self._late[0]

    def _update(self, desk: Desk, at: Instant, spot: int, volatility: float) -> WorldStep:
        underlying, surface = self.ports.underlying, self.surface
        if surface is None:
            return feed(desk.world, underlying, spot, at, volatility, tiers=self.tiers)
        return advance(desk.world, underlying, spot, at, lambda oracle: surface(oracle, at), tiers=self.tiers)


def first_state(course: PredictCourse) -> State:
    """Return the state of a fresh account before its first update."""
    return State(Desk(open_world(course.vault, course.cash, account=course.ports.account_id)))


def updates_of(at: Ints, spot: Ints, volatility: Floats, first_tick: Instant, to_at: Instant) -> Updates:
    """Select the updates of a run: from the newest one at its first tick to the end."""
    first = max(0, int(np.searchsorted(at, first_tick, side="right")) - 1)
    last = int(np.searchsorted(at, to_at, side="right"))
    return Updates(at[first:last], spot[first:last], volatility[first:last])


@dataclass(frozen=True, slots=True)
class BudgetPlan:
    """Plan of a heuristic that mints whenever it can.

    It skips ticks while a budget is exhausted, until the day ends or for good.
    """

    tick_at: list[Instant]
    ports: PredictPorts
    least: int

    def next_tick(self, index: int, world: Desk) -> int:
        """Return the first tick at or after `index` with something left to spend, provided the account does not change."""
        count = len(self.tick_at)
        if index >= count:
            return count
        at, caps = self.tick_at[index], self.ports.caps
        spent = spend_with_reserves(world, at)
        account = world.world.accounts.get(self.ports.account_id, NO_ACCOUNT)
        forever = min(caps.max_spend_per_tick, caps.max_spend_per_day, caps.max_total_spend - spent.total, account.cash)
        if forever < self.least:
            return count
        if caps.max_spend_per_day - spent.today_at(at) < self.least:
            return bisect_left(self.tick_at, (at // DAY_MS + 1) * DAY_MS, index)
        return index


def _changes(desk: Desk, positions: Iterable[ContractPosition], at: Instant) -> bool:
    """Whether the next update pays out a position or executes a waiting order."""
    return bool(desk.waiting) or any(position.expiry_at <= at for position in positions)


class _Points:
    """Builds an equity curve from pieces of evenly spaced points."""

    def __init__(self, step_ms: int) -> None:
        self.pieces: list[Piece] = []
        self._step = step_ms
        self._next: Instant = -1
        self._cash: int | None = None
        self._text = ""

    def flat(self, at: list[Instant], cash: int) -> None:
        """Add the same amount at each of these instants: no position is open."""
        last = self.pieces[-1] if self.pieces else None
        if last is not None and len(last) == 4 and self._cash == cash and at[0] == self._next:
            first, earlier = last[0], last[3]
        else:
            first, earlier = at[0], 0
            last = None
        if at[-1] - at[0] != (len(at) - 1) * self._step:
            self._flat_with_gaps(at, cash)
            return
        piece = (first, self._step, self._cash_text(cash), earlier + len(at))
        if last is None:
            self.pieces.append(piece)
        else:
            self.pieces[-1] = piece
        self._next = at[-1] + self._step

    def _flat_with_gaps(self, at: list[Instant], cash: int) -> None:
        for instant in at:
            self.flat([instant], cash)

    def add(self, at: Instant, cash: int, value: int) -> None:
        """Add one point: cash, and the value of the positions."""
        last = self.pieces[-1] if self.pieces else None
        if last is not None and len(last) == 5 and self._cash == cash and at == self._next:
            last[4].append(value)
        else:
            self.pieces.append((at, self._step, self._cash_text(cash), PLACES, [value]))
        self._next = at + self._step

    def _cash_text(self, cash: int) -> str:
        if cash != self._cash:
            self._cash, self._text = cash, text(contracts(cash))
        return self._text
