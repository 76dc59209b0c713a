"""Every kind of look-ahead, planted on purpose: the audit finds each."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_audits import HONEST_REPLY, SYMBOLS, run_audit, skill, tool_without_arguments, trades_often

from pitboss.audit import setup as preparation
from pitboss.audit.lookahead import KEPT_MARKETS
from pitboss.audit.record_facts import DECISION, EVENTS, PROMPT, STATE
from pitboss.core.asof import Market, View
from pitboss.core.instant import DAY_MS, HOUR_MS
from pitboss.core.intent import Decision
from pitboss.core.market import Bars, CalendarEvent, NewsItem, Points
from pitboss.data.lake import Lake
from pitboss.sim.past import RunPast
from pitboss.tools.define import ToolContext
from pitboss.venues.perp import regime
from pitboss.venues.perp.course import PerpCourse
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.sections import Memo, sections
from pitboss.venues.perp.signals import SignalPolicy
from pitboss.venues.perp.standin.analyst import Analyst
from pitboss.venues.perp.tools.get_top_traders import SERVER, TOOL_NAME

# The run itself: its policy, its loader, its replay, its view ----------------------------------------------------------


def test_a_policy_that_reads_the_bar_that_is_still_forming_is_found(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """At every tick it follows the signal of the bar that closes after the tick, in its plan and when it is asked."""

    def ahead(self: SignalPolicy, bars: Bars) -> Any:
        column = self._signal(bars)
        return np.append(column[1:], column[-1:])

    monkeypatch.setattr(SignalPolicy, "_column", ahead)
    found = run_audit(home, skill("policy/momentum"), cuts=2)
    assert {example.run for example in found.result.examples} == {"policy/momentum"}
    assert found.leaks & {DECISION, "the run", "holds"}


def test_a_policy_that_reads_it_only_when_it_is_asked_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = SignalPolicy.decide

    async def peeking(self: SignalPolicy, observation: Observation, judge: Any) -> Decision:
        bars = observation.view._market.bars["BTC", "1h"]
        last = bars.close[min(len(bars) - 1, int(bars.open_at.searchsorted(observation.at)))]
        decision = await honest(self, observation, judge)
        return Decision(tuple({**intent, "reason": f"it closes at {last}"} for intent in decision.intents))

    monkeypatch.setattr(SignalPolicy, "decide", peeking)
    assert DECISION in run_audit(home, skill("policy/sma_cross"), cuts=2).leaks


def test_a_loader_that_shifts_closes_by_one_bar_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = Lake.bars

    def shifted(self: Lake, *args: Any, **more: Any) -> Bars | None:
        bars = honest(self, *args, **more)
        return bars and replace(bars, close=np.append(bars.close[1:], bars.close[-1:]))

    monkeypatch.setattr(Lake, "bars", shifted)
    found = run_audit(home, skill("policy/hold"), cuts=2)
    assert {STATE, PROMPT} <= found.leaks
    assert {example.run for example in found.result.examples} == {"policy/hold", "standin/analyst"}


def test_a_replay_that_is_one_bar_ahead_of_its_ticks_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = PerpCourse.tick_offsets

    def ahead(self: PerpCourse) -> list[int]:
        return [min(len(self.tape), offset + 1) for offset in honest(self)]

    monkeypatch.setattr(PerpCourse, "tick_offsets", ahead)
    found = run_audit(home, skill("policy/buy_and_hold"), cuts=2)
    assert EVENTS in found.leaks
    assert {example.run for example in found.result.examples} == {"policy/buy_and_hold", "standin/analyst"}


def test_a_view_that_is_one_bar_ahead_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Market, "view", lambda self, at: View(self, at + HOUR_MS))
    found = run_audit(home, cuts=2)
    assert {PROMPT, "section Market context"} <= found.leaks


# Views -----------------------------------------------------------------------------------------------------------------


def forming_bar(self: View, symbol: str, interval: str) -> tuple[Bars, int]:
    """Off by one: the bar that is still forming counts as closed."""
    bars = self._market.bars[symbol, interval]
    return bars, min(len(bars), int(bars.open_at.searchsorted(self.at - bars.interval_ms, side="right")) + 1)


def news_by_publication(self: View, hours: float, until: int | None = None) -> list[NewsItem]:
    """News as soon as it is dated, not when it arrived."""
    moment = self.at if until is None else until
    dated = [item for item in self._market.news if moment - hours * HOUR_MS < item.published_at <= moment]
    return sorted(dated, key=lambda item: -item.published_at)


def events_by_schedule(self: View, hours: float) -> list[CalendarEvent]:
    """Events, whether or not they were already known at the time."""
    until = self.at + round(hours * HOUR_MS)
    return [event for event in self._market.events if self.at <= event.scheduled_at <= until]


def next_hour_of_points(self: View, kind: str, symbol: str, lookback: int, until: int | None = None) -> Points | None:
    """Values of the coming hour."""
    return HONEST_POINTS(View(self._market, self.at + HOUR_MS), kind, symbol, lookback)


def count_all_news(self: View) -> int:
    """Counts news before it is available."""
    return len(self._market.news)


HONEST_POINTS = View.points
WAKING = {"schedule": {"every": "1h", "wake_when": ["new_news"]}}


@pytest.mark.parametrize(
    ("method", "view", "facts", "more"),
    [
        ("series", forming_bar, {PROMPT, "section Market context", "tool fetch_recent_bars"}, {}),
        ("news", news_by_publication, {PROMPT, "section News"}, {}),
        ("events", events_by_schedule, {PROMPT, "section Upcoming events"}, {}),
        ("points", next_hour_of_points, {"tool get_funding_rate", "tool get_open_interest"}, {}),
        ("news_count", count_all_news, {STATE}, WAKING),
    ],
)
def test_a_leaky_view_is_found_wherever_it_shows(
    home: Path, monkeypatch: pytest.MonkeyPatch, method: str, view: Any, facts: set[str], more: dict[str, Any]
) -> None:
    monkeypatch.setattr(View, method, view)
    found = run_audit(home, skill(**more))
    assert facts <= found.leaks
    assert found.result.examples[0].original != found.result.examples[0].altered


# Tools -----------------------------------------------------------------------------------------------------------------


async def last_of_everything(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Reaches behind the view."""
    del arguments
    return str(context.observation.view._market.bars["BTC", "5m"].close[-1])


async def count_all_bars(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """The number of all bars, future ones included."""
    del arguments
    return str(len(context.observation.view._market.bars["ETH", "5m"]))


async def later_decisions(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Asks for decisions after the present."""
    del arguments
    return "\n".join(str(one) for one in context.past.decisions(context.observation.at + DAY_MS, 5))


async def later_receipts(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Asks for receipts after the present."""
    del arguments
    return "\n".join(str(one) for one in context.past.receipts(context.observation.at + DAY_MS, 5))


async def later_recording(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Returns a reply that was recorded later."""
    del arguments
    return str(context.recordings.latest(SERVER, TOOL_NAME, '{"count":2}', context.observation.at + 9 * DAY_MS))


def test_leaky_tools_are_found_and_nothing_else_is_blamed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    looks = (last_of_everything, count_all_bars, later_decisions, later_receipts, later_recording)
    tools = {Path(f"{look.__name__}.py"): tool_without_arguments(look, look.__name__) for look in looks}
    monkeypatch.setattr(preparation, "load_tool", tools.__getitem__)
    monkeypatch.setattr(Analyst, "complete", trades_often)
    names = tuple(look.__name__ for look in looks)
    found = run_audit(home, tools=(*names, "get_portfolio"), tool_files=tuple(tools))
    assert found.leaks == {f"tool {name}" for name in names}


def test_a_tool_that_keeps_the_first_market_it_sees_is_found_though_it_always_answers_the_same(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Market] = []

    async def faithful(context: ToolContext, arguments: Mapping[str, Any]) -> str:
        del arguments
        if not kept:
            kept.append(context.observation.view._market)
        return str(kept[0].bars["BTC", "5m"].close[-1])

    monkeypatch.setattr(preparation, "load_tool", lambda path: tool_without_arguments(faithful))
    found = run_audit(home, tools=("leaky",), tool_files=(Path("leaky.py"),), cuts=2)
    assert found.leaks == {KEPT_MARKETS}
    assert "leaky" in found.result.examples[0].altered


def test_a_past_that_shows_a_later_decision_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = RunPast.decisions
    monkeypatch.setattr(RunPast, "decisions", lambda self, before, count: honest(self, before + DAY_MS, count))
    tools = ("get_recent_decisions", "read_my_prior_decisions")
    assert {f"tool {name}" for name in tools} <= run_audit(home, tools=tools).leaks


# What the agent is shown and carries on ----------------------------------------------------------------------------------


def test_a_section_that_reads_columns_beyond_the_closed_bars_is_found(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tomorrow(observation: Observation, memo: Memo) -> str:
        bars, _ = observation.view.series(memo.symbols[0], memo.interval)
        return f"## Tomorrow\n{bars.close.max()}"

    honest = sections()
    monkeypatch.setattr("pitboss.venues.perp.context.sections", lambda: (*honest, tomorrow))
    assert run_audit(home, cuts=2).leaks >= {PROMPT, "section Tomorrow"}


def test_a_regime_tag_that_looks_one_bar_ahead_is_found(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = regime.atr
    monkeypatch.setattr(regime, "atr", lambda bars, closed: honest(bars, min(len(bars), closed + 1)))
    waking = {"schedule": {"every": "1h", "wake_when": [{"move_atr": 1}]}}
    assert run_audit(home, skill(**waking), cuts=2).leaks


def test_what_a_model_is_told_of_the_future_shows_in_the_state_that_it_carries_on(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A decider that remembers in its reasons what will only happen later."""
    honest = Lake.bars
    last: list[float] = []

    def noted(self: Lake, *args: Any, **more: Any) -> Bars | None:
        bars = honest(self, *args, **more)
        if bars is not None and bars.interval == "5m":
            last[:] = [float(bars.close[-1])]
        return bars

    async def peeks(self: Analyst, request: Any) -> Any:
        reply = await HONEST_REPLY(self, request)
        return replace(reply, text=f"it will be {last[0]}")

    monkeypatch.setattr(Lake, "bars", noted)
    monkeypatch.setattr(Analyst, "complete", peeks)
    assert DECISION in run_audit(home, cuts=2).leaks


def test_the_symbols_of_the_skill_are_those_that_are_copied(home: Path) -> None:
    found = run_audit(home, cuts=1)
    assert found.leaks == set()
    assert found.setup.runs[0].prepared.skill.context.sorted_symbols == SYMBOLS
