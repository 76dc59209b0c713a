"""Look-ahead planted in the memory: the audit finds each kind, and nothing in a correct memory."""

from pathlib import Path
from typing import Any

import pytest
from small_audits import FROM, run_audit, skill, trades_often

from pitboss.audit.record_facts import PROMPT, REFLECTION, STATE
from pitboss.core.asof import View
from pitboss.core.instant import DAY_MS
from pitboss.venues.perp import memory
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.reflection import TradeReflector
from pitboss.venues.perp.standin.analyst import Analyst
from pitboss.venues.perp.trades import Trade

REFLECTS = skill(
    context={
        "symbols": ["BTC", "ETH"],
        "bars_interval": "1h",
        "bars_lookback": 20,
        "memory": {"enabled": True, "reflection_every": 1},
    },
)


@pytest.fixture(autouse=True)
def frequent_trading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Analyst, "complete", trades_often)


def test_an_honest_memory_is_filled_and_compared(home: Path) -> None:
    found = run_audit(home, REFLECTS, 4)
    assert found.leaks == set()
    for name in ("section Lessons", "section Trade history", "section Risk state", REFLECTION):
        assert found.result.counts[name].compared >= 4, name


def test_a_reflection_that_knows_how_the_next_bar_closes_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = TradeReflector.prompt

    def early(self: TradeReflector, observation: Observation) -> tuple[str, str]:
        system, user = honest(self, observation)
        bars, closed = observation.view.series("BTC", "5m")
        later = float(bars.close[min(len(bars) - 1, closed + 2)])
        return system, f"{user}\n- BTC long chop: 01-01 00:00 1h 1 1 {later:.2f} 0% 0% market"

    monkeypatch.setattr(TradeReflector, "prompt", early)
    assert REFLECTION in run_audit(home, REFLECTS, to_at=FROM + DAY_MS).leaks


def test_excursions_from_bars_after_the_tick_are_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def to_the_end(view: View, interval: str, trade: Trade) -> tuple[float, float]:
        bars, _ = view.series(trade.symbol, interval)
        first = int(bars.open_at.searchsorted(trade.opened_at))
        entry = float(trade.entry_price)
        return 100 * (float(bars.high[first:].max()) / entry - 1), 100 * (1 - float(bars.low[first:].min()) / entry)

    monkeypatch.setattr(memory, "excursions", to_the_end)
    assert {PROMPT, "section Trade history"} <= run_audit(home, REFLECTS).leaks


def test_a_regime_at_entry_from_bars_of_a_later_time_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def last_close(view: View, settings: Any, symbol: str, at: int) -> str:
        del at
        return str(float(view.series(symbol, settings.interval)[0].close[-1]))

    monkeypatch.setattr(memory, "_regime", last_close)
    assert {PROMPT, STATE} & run_audit(home, REFLECTS).leaks
