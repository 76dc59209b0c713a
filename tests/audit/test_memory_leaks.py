"""Memories that know the future, planted on purpose: the audit must find each of them, and none in the honest one."""

from dataclasses import dataclass, replace

import pytest
from grounds import FEW, audited, leaking

from pitboss.core.asof import View
from pitboss.core.instant import HOUR_MS
from pitboss.core.money import decimal
from pitboss.venues.perp import memory
from pitboss.venues.perp.audit.lookahead import RERUN, AuditSetup
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.reflection import TradeReflector
from pitboss.venues.perp.trade_memory import ClosedTrade
from pitboss.venues.perp.trades import Trade


def with_reflector(ground: AuditSetup, reflector: TradeReflector) -> AuditSetup:
    ports = replace(ground.course.ports, reflector=reflector)
    return replace(ground, course=replace(ground.course, ports=ports))


def reflector_of(ground: AuditSetup) -> TradeReflector:
    found = ground.course.ports.reflector
    assert found is not None
    return found


def test_an_honest_memory_is_filled_and_compared(ground: AuditSetup) -> None:
    result = audited(ground, 60)
    assert leaking(result) == set()
    for name in ("lessons", "trade_history", "risk_state"):
        assert result.counts[f"section {name}"].compared >= 20, name
    assert result.counts["memory"].compared == result.counts["reflection"].compared == 120
    trades = [trade for moment in ground.replayed.ticks[-1:] for trade in moment.before.memory.trades]
    assert any(trade.mfe_pct for trade in trades)
    assert ground.replayed.ticks[-1].before.memory.notes is not None


@dataclass(frozen=True, slots=True)
class Prophetic(TradeReflector):
    """Shows a trade that will only close in the next bar."""

    def prompt(self, observation: Observation) -> tuple[str, str]:
        symbol, interval = observation.skill.context.sorted_symbols[0], observation.skill.context.bars_interval
        bars, closed = observation.view.series(symbol, interval)
        at = observation.at
        if closed < len(bars):
            exit_price = decimal(float(bars.close[closed]))
            entry = decimal(float(bars.close[closed - 1]))
            result = exit_price - entry
            new = ClosedTrade(symbol, "long", at - HOUR_MS, at - 1, result, "market", entry, exit_price)
            kept = observation.memory
            changed = replace(kept, trades=(*kept.trades, new), closed=kept.closed + 1)
            observation = replace(observation, memory=changed)
        return TradeReflector.prompt(self, observation)


def test_a_reflection_that_includes_a_trade_closed_after_the_tick_is_found(ground: AuditSetup) -> None:
    honest = reflector_of(ground)
    leaky = Prophetic(honest.model, honest.context, honest.every, honest.settings, honest.forcing)
    assert "reflection" in leaking(audited(with_reflector(ground, leaky), FEW))


@dataclass(frozen=True, slots=True)
class Early(TradeReflector):
    """Writes its lessons from what it will know in an hour, where they are due."""

    def prompt(self, observation: Observation) -> tuple[str, str]:
        system, user = TradeReflector.prompt(self, observation)
        symbol = observation.skill.context.sorted_symbols[0]
        bars, closed = observation.view.series(symbol, "5m")
        later = float(bars.close[min(len(bars) - 1, closed + 11)])
        return system, f"{user}\n- {symbol} long chop: 01-01 00:00 1h 1 1 {later:.2f} 0% 0% market"


def test_lessons_from_the_future_are_found_in_what_the_agent_is_shown(ground: AuditSetup) -> None:
    honest = reflector_of(ground)
    leaky = with_reflector(ground, Early(honest.model, honest.context, 1, honest.settings, honest.forcing))
    found = leaking(audited(leaky, 2 * FEW))
    assert {"reflection", "memory", "user message", "section lessons", RERUN} <= found


def test_excursions_from_bars_after_the_tick_are_found(ground: AuditSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    def to_the_end(view: View, interval: str, trade: Trade) -> tuple[float, float]:
        bars, _ = view.series(trade.symbol, interval)
        first = int(bars.open_at.searchsorted(trade.opened_at))
        entry = float(trade.entry_price)
        return 100 * (float(bars.high[first:].max()) / entry - 1), 100 * (1 - float(bars.low[first:].min()) / entry)

    monkeypatch.setattr(memory, "excursions", to_the_end)
    assert {"memory", "reflection", RERUN, "section trade_history", "user message"} <= leaking(audited(ground, FEW))


def test_a_regime_at_entry_from_bars_of_a_later_time_is_found(
    ground: AuditSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        memory,
        "_regime",
        lambda view, settings, symbol, at: str(float(view.series(symbol, settings.interval)[0].close[-1])),
    )
    assert {"memory", RERUN} & leaking(audited(ground, FEW))
