"""Every kind of look-ahead, planted on purpose: an audit that cannot find these proves nothing when it finds none."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from grounds import FEW, audited, leaking, with_tool, with_view

from pitboss.agent.decider import Judge
from pitboss.core.asof import Market, View
from pitboss.core.instant import DAY_MS, HOUR_MS
from pitboss.core.intent import Decision
from pitboss.core.market import Bars, CalendarEvent, NewsItem, Points
from pitboss.core.past import Recording
from pitboss.core.ports import ToolSpec
from pitboss.tools.define import ToolContext
from pitboss.venues.perp import regime
from pitboss.venues.perp.audit.evidence import MemoryRecordings, past_of
from pitboss.venues.perp.audit.lookahead import KEPT_MARKETS, RERUN, AuditSetup
from pitboss.venues.perp.audit.rebuild import RecordedMcpTool
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.sections import Memo, sections
from pitboss.venues.perp.tools.get_top_traders import SERVER, TOOL_NAME


class FormingBar(View):
    """Off by one: the bar that is still forming counts as closed."""

    def series(self, symbol: str, interval: str) -> tuple[Bars, int]:
        bars, closed = super().series(symbol, interval)
        return bars, min(len(bars), closed + 1)


class NewsByPublication(View):
    """News as soon as it is dated, not when it arrived."""

    def news(self, hours: float, until: int | None = None) -> list[NewsItem]:
        moment = self.at if until is None else until
        dated = [item for item in self._market.news if moment - hours * HOUR_MS < item.published_at <= moment]
        return sorted(dated, key=lambda item: -item.published_at)


class EventsBySchedule(View):
    """Events whether or not anybody had heard of them."""

    def events(self, hours: float) -> list[CalendarEvent]:
        until = self.at + round(hours * HOUR_MS)
        return [event for event in self._market.events if self.at <= event.scheduled_at <= until]


class NextHourOfPoints(View):
    """Values of the coming hour."""

    def points(self, kind: str, symbol: str, lookback: int, until: int | None = None) -> Points | None:
        return View(self._market, self.at + HOUR_MS).points(kind, symbol, lookback)


class NewsCounted(View):
    """News is counted before it has come."""

    def news_count(self) -> int:
        return len(self._market.news)


@pytest.mark.parametrize(
    ("view", "seen"),
    [
        (FormingBar, {"user message", "section market", "regime tag", "wake conditions", "tool fetch_recent_bars"}),
        (NewsByPublication, {"user message", "section news"}),
        (EventsBySchedule, {"user message", "section events"}),
        (NextHourOfPoints, {"tool get_funding_rate", "tool get_open_interest"}),
        (NewsCounted, {"wake conditions"}),
    ],
)
def test_a_leaky_view_is_found_wherever_it_shows(ground: AuditSetup, view: type[View], seen: set[str]) -> None:
    result = audited(with_view(ground, view), FEW)
    assert seen <= leaking(result)
    assert result.leaks[0].original != result.leaks[0].altered


async def last_of_everything(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Reaches behind the view."""
    del arguments
    market = context.observation.view._market
    return str(market.bars["BTC", "5m"].close[-1])


async def listed(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Symbols that have bars at any time, the future included."""
    del arguments
    bars = context.observation.view._market.bars
    return " ".join(sorted(symbol for symbol, interval in bars if interval == "5m" and len(bars[symbol, interval])))


async def later_decisions(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Asks the past about tomorrow."""
    del arguments
    return "\n".join(str(one) for one in context.past.decisions(context.observation.at + DAY_MS, 5))


async def later_receipts(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Asks what happens next."""
    del arguments
    return "\n".join(str(one) for one in context.past.receipts(context.observation.at + DAY_MS, 5))


async def later_recording(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Takes an answer that was recorded later."""
    del arguments
    return str(context.recordings.latest(SERVER, TOOL_NAME, '{"count":2}', context.observation.at + 9 * DAY_MS))


@pytest.mark.parametrize("look", [last_of_everything, listed, later_decisions, later_receipts, later_recording])
def test_a_leaky_tool_is_found_and_nothing_else_is_blamed(ground: AuditSetup, look: Any) -> None:
    assert leaking(audited(with_tool(ground, look), FEW)) == {"tool leaky"}


def test_a_symbol_that_is_listed_before_its_first_bar_is_found(ground: AuditSetup) -> None:
    """Listing look-ahead: the series is part of the run, but at these ticks nothing of it has happened yet."""
    whole, ticks = ground.evidence.market, ground.course.tick_at
    bars = whole.bars["BTC", "5m"]
    begins = int(bars.open_at.searchsorted(ticks[len(ticks) // 2]))
    late = Market(
        {**dict(whole.bars), ("LATE", "5m"): replace(bars.slice(begins, len(bars)), symbol="LATE")},
        whole.points,
        whole.news,
        whole.events,
    )

    async def offered(context: ToolContext, arguments: Mapping[str, Any]) -> str:
        del arguments
        bars = context.observation.view._market.bars
        return "yes" if len(bars["LATE", "5m"]) else "no"

    async def honest(context: ToolContext, arguments: Mapping[str, Any]) -> str:
        del arguments
        return "yes" if len(context.observation.view.bars("LATE", "5m", 1)) else "no"

    later = replace(ground, evidence=replace(ground.evidence, market=late))
    assert leaking(audited(with_tool(later, offered), FEW)) == {"tool leaky"}
    assert leaking(audited(with_tool(later, honest), FEW)) == set()


def test_a_tool_that_keeps_the_first_market_it_sees_is_found_though_it_always_answers_the_same(
    ground: AuditSetup,
) -> None:
    kept: list[Market] = []

    async def faithful(context: ToolContext, arguments: Mapping[str, Any]) -> str:
        del arguments
        if not kept:
            kept.append(context.observation.view._market)
        return str(kept[0].bars["BTC", "5m"].close[-1])

    result = audited(with_tool(ground, faithful), FEW)
    assert leaking(result) == {KEPT_MARKETS}
    assert "leaky" in result.leaks[0].altered


def test_a_past_that_shows_a_later_decision_is_found(ground: AuditSetup) -> None:
    class Prophet:
        def __init__(self, inner: Any) -> None:
            self._inner = inner

        def decisions(self, before: int, count: int) -> Any:
            return self._inner.decisions(before + DAY_MS, count)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    leaky = replace(ground, past_of=lambda *parts: Prophet(past_of(*parts)))
    assert {"tool get_recent_decisions", "tool read_my_prior_decisions"} <= leaking(audited(leaky, FEW))


def test_a_section_that_reads_columns_beyond_the_closed_bars_is_found(
    ground: AuditSetup, monkeypatch: pytest.MonkeyPatch
) -> None:
    def tomorrow(observation: Observation, memo: Memo) -> str:
        bars, _ = observation.view.series(memo.symbols[0], memo.interval)
        return f"## Tomorrow\n{bars.close.max()}"

    honest = sections()
    for where in ("pitboss.venues.perp.context.sections", "pitboss.venues.perp.audit.rebuild.sections"):
        monkeypatch.setattr(where, lambda: (*honest, tomorrow))
    assert leaking(audited(ground, 10)) == {"user message", "section test_leaks"}


def test_a_regime_tag_that_looks_one_bar_ahead_is_found(ground: AuditSetup, monkeypatch: pytest.MonkeyPatch) -> None:
    honest = regime.atr
    monkeypatch.setattr(regime, "atr", lambda bars, closed: honest(bars, min(len(bars), closed + 1)))
    assert "regime tag" in leaking(audited(ground, 20))


def test_what_is_carried_from_tick_to_tick_is_checked_by_running_ticks_again(ground: AuditSetup) -> None:
    class Peeks:
        """Remembers in its reasons what will only happen later: as a reflection on a future trade would be."""

        name = "peeks"

        async def decide(self, observation: Observation, judge: Judge) -> Decision:
            del judge
            last = observation.view._market.bars["BTC", "5m"].close[-1]
            return Decision(({"action": "close", "symbol": "BTC", "reason": f"it will be {last}"},))

    ports = replace(ground.course.ports, decider=Peeks())
    assert RERUN in leaking(audited(replace(ground, course=replace(ground.course, ports=ports)), 5))


def test_recordings_of_mcp_servers_are_audited_and_a_later_one_is_found(ground: AuditSetup) -> None:
    class Careless(MemoryRecordings):
        def latest(self, server: str, tool: str, arguments: str, by: int) -> Recording | None:
            return super().latest(server, tool, arguments, by + 9 * DAY_MS)

    first = ground.replayed.ticks[0].at
    known = [
        Recording("srv", "look", '{"word":"a"}', first + place * HOUR_MS, f"answer {place}") for place in range(100)
    ]
    spec = ToolSpec("mcp_srv__look", "Looks.", {"type": "object"})
    tools = {**ground.tools, "mcp_srv__look": RecordedMcpTool("mcp_srv__look", "srv", "look", spec)}
    for kind, leaks in ((MemoryRecordings, set()), (Careless, {"tool mcp_srv__look"})):
        held = replace(ground.evidence, recordings=kind(known))
        result = audited(replace(ground, tools=tools, evidence=held), FEW)
        assert leaking(result) == leaks
        assert result.counts["tool mcp_srv__look"].failed < result.counts["tool mcp_srv__look"].compared
