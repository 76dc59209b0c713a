"""The real thing: no difference, and everything that was compared is counted by name."""

from dataclasses import replace
from pathlib import Path

import pytest
from grounds import SHARED, audited, ground_of, leaking, with_tool

from pitboss.core.errors import ToolFailed
from pitboss.core.instant import parse_instant
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.venues.perp.assembly import tools as builtin_tools
from pitboss.venues.perp.audit.lookahead import AuditSetup, LookaheadResult
from pitboss.venues.perp.audit.setup import AuditRequest
from pitboss.venues.perp.sections import sections

needs_data = pytest.mark.skipif(not SHARED.exists(), reason="needs the market data in ../shared/data")
UNWRITTEN = {"section notes"}
"""Nothing fills this one where every server answers: it is named, not passed over."""


def clean(result: LookaheadResult, cuts: int) -> None:
    """No difference, and nothing was left out that could have been compared."""
    assert leaking(result) == set()
    assert result.differences == 0
    assert result.cuts == cuts
    assert set(result.not_covered) == UNWRITTEN | {"tool propose_order"}


def test_a_generated_market_shows_nothing_of_its_future(ground: AuditSetup) -> None:
    result = audited(ground)
    clean(result, 100)
    assert result.counts["user message"].compared == 200
    tools = {f"tool {name}" for name in builtin_tools()} - {"tool propose_order"}
    assert tools <= set(result.counts)
    assert all(result.counts[name].compared >= 8 for name in tools)
    assert sum(name.startswith("section ") for name in result.counts) == len(sections()) - len(UNWRITTEN)


def test_the_same_seed_makes_the_same_cuts(ground: AuditSetup) -> None:
    one, other = audited(ground, 10, 5), audited(ground, 10, 5)
    assert one.counts == other.counts


def test_a_tool_that_only_fails_is_named_as_not_covered(ground: AuditSetup) -> None:
    async def refuses(context: object, arguments: object) -> str:
        raise ToolFailed("never")

    result = audited(with_tool(replace(ground, tools={}), refuses), 5)
    assert result.differences == 0
    assert result.not_covered["tool leaky"] == "every call of it failed"


def test_a_tool_whose_turn_did_not_come_is_named_as_not_covered(ground: AuditSetup) -> None:
    result = audited(ground, 1)
    asked = [what for what in result.counts if what.startswith("tool ")]
    assert len(asked) == 1
    assert len([what for what in result.not_covered if what.startswith("tool ")]) == len(ground.tools)


# Real data ------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def binance(tmp_path_factory: pytest.TempPathFactory) -> AuditSetup:
    """Ten days of 2023 with every headline up to then."""
    home, source = tmp_path_factory.mktemp("binance"), SHARED / "binance_2023_2024"
    lake = Lake(home / "lake")
    import_paths(lake, sorted(source.glob("*/BTC.parquet")) + sorted(source.glob("*/ETH.parquet")), venue="binance")
    import_paths(lake, [SHARED / "news"], venue="binance")
    return ground_of(home, _wish("binance", "2023-03-06", "2023-03-16"))


@pytest.fixture(scope="session")
def hyperliquid(tmp_path_factory: pytest.TempPathFactory) -> AuditSetup:
    """Weeks of 2025 around a meeting."""
    home, source = tmp_path_factory.mktemp("hyperliquid"), SHARED / "hyperliquid"
    lake = Lake(home / "lake")
    files = [path for symbol in ("BTC", "ETH") for path in sorted(source.rglob(f"{symbol}.parquet"))]
    import_paths(lake, files)
    # announced within the range, so that there are ticks before and after it
    import_paths(lake, [SHARED / "events"], known_at=parse_instant("2025-07-27T09:00:00Z"))
    return ground_of(home, _wish("hyperliquid", "2025-07-26", "2025-08-03"))


def _wish(venue: str, first: str, end: str) -> AuditRequest:
    return AuditRequest(
        symbols=("BTC", "ETH"), venue=venue, from_at=parse_instant(first), to_at=parse_instant(end), seed=2
    )


@needs_data
def test_binance_with_news_shows_nothing_of_its_future(binance: AuditSetup) -> None:
    assert binance.evidence.market.news
    result = audited(binance)
    assert result.differences == 0
    assert {"section news", "tool get_news_for_window"} <= set(result.counts)


@needs_data
def test_hyperliquid_with_meetings_shows_nothing_of_its_future(hyperliquid: AuditSetup) -> None:
    assert hyperliquid.evidence.market.events
    result = audited(hyperliquid)
    assert result.differences == 0
    assert "section events" in result.counts


@pytest.mark.proof
@pytest.mark.timeout(7200)
def test_ten_thousand_cuts_of_a_generated_market_differ_nowhere(ground: AuditSetup) -> None:
    clean(audited(ground, 10_000, 11), 10_000)


@needs_data
@pytest.mark.proof
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("name", ["binance", "hyperliquid"])
def test_ten_thousand_cuts_of_real_data_differ_nowhere(name: str, request: pytest.FixtureRequest) -> None:
    result = audited(request.getfixturevalue(name), 10_000, 11)
    assert (result.differences, result.cuts) == (0, 10_000)


def test_without_any_data_it_says_what_to_do(tmp_path: Path) -> None:
    from pitboss.core.errors import UserError

    with pytest.raises(UserError, match="no data here"):
        ground_of(tmp_path, AuditRequest())
