"""Look-ahead in listings: a universe chosen with later knowledge is found, and a correct one gives no finding."""

from collections.abc import Mapping
from pathlib import Path
from shutil import copytree
from typing import Any

import polars as pl
import pytest
from small_audits import FROM, run_audit, skill, tool_without_arguments

from pitboss.audit import setup as preparation
from pitboss.audit.record_facts import PROMPT
from pitboss.core.asof import View
from pitboss.core.instant import HOUR_MS, Instant
from pitboss.data.lake import Lake
from pitboss.data.series import TIME, series
from pitboss.tools.define import ToolContext

MIDDLE = FROM + 18 * HOUR_MS
THREE: dict[str, Any] = skill(
    context={"symbols": ["BTC", "ETH", "SOL"], "bars_interval": "1h", "bars_lookback": 20, "higher_timeframes": []}
)


@pytest.fixture(scope="module")
def home_with_listings(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One symbol that comes in the middle of the ticks, one that goes there, announced twelve hours before."""
    folder = tmp_path_factory.mktemp("listed")
    copytree(home / "lake", folder / "lake")
    lake = Lake(folder / "lake")
    rows = {
        "symbol": ["ETH", "SOL"],
        "listed_at": [MIDDLE, None],
        "delisted_at": [None, MIDDLE + 6 * HOUR_MS],
        "known_at": [None, MIDDLE - 6 * HOUR_MS],
    }
    times = {name: pl.Series(rows[name], dtype=pl.Int64).cast(TIME) for name in rows if name != "symbol"}
    frame = pl.DataFrame({"symbol": rows["symbol"], **times}, schema=dict(series("listings").columns))
    lake.put("listings", "demo", None, None, frame)
    for path in (folder / "lake").glob("*/venue=demo/**/symbol=ETH/*/part.parquet"):
        time = "open_at" if "bars" in path.parts else "at"
        pl.read_parquet(path).filter(pl.col(time) >= pl.lit(MIDDLE - 5 * 60_000).cast(TIME)).write_parquet(path)
    return folder


def is_never_delisted(self: View, symbol: str) -> bool:
    """A universe of the symbols that are never delisted."""
    listing = self._market.listings.get(symbol)
    return listing is None or listing.delisted_at is None


def is_listed_in_an_hour(self: View, symbol: str) -> bool:
    """A symbol counts as listed an hour before it is."""
    return HONEST(View(self._market, self.at + HOUR_MS), symbol)


def unannounced_delisting(self: View, symbol: str) -> Instant | None:
    """The end of a listing, also before it is announced."""
    listing = self._market.listings.get(symbol)
    return None if listing is None else listing.delisted_at


HONEST = View.listed


@pytest.mark.parametrize(
    ("method", "view"),
    [("listed", is_never_delisted), ("listed", is_listed_in_an_hour), ("ends_at", unannounced_delisting)],
)
def test_a_universe_chosen_by_who_is_listed_later_is_found(
    home_with_listings: Path, monkeypatch: pytest.MonkeyPatch, method: str, view: Any
) -> None:
    monkeypatch.setattr(View, method, view)
    assert {PROMPT, "section Market context"} <= run_audit(home_with_listings, THREE).leaks


def test_an_honest_view_of_listings_shows_no_difference_and_what_is_left_out_is_named(home_with_listings: Path) -> None:
    found = run_audit(home_with_listings, THREE, 4)
    assert found.leaks == set()
    # before its first bar a symbol is not in the data at all, so that no run could have been made then
    assert "no bars of ETH" in found.result.not_covered["cuts with the future deleted"]


def test_a_tool_that_knows_when_a_symbol_will_be_listed_is_found(
    home_with_listings: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def coming(context: ToolContext, arguments: Mapping[str, Any]) -> str:
        del arguments
        market = context.observation.view._market
        return f"{market.listings['SOL'].delisted_at} {market.bars['ETH', '5m'].open_at[0]}"

    monkeypatch.setattr(preparation, "load_tool", lambda path: tool_without_arguments(coming))
    assert run_audit(home_with_listings, THREE, tools=("leaky",), tool_files=(Path("leaky.py"),)).leaks == {
        "tool leaky"
    }
