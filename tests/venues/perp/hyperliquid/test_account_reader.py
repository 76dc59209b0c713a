"""Reading the exchange's replies about an account: every fill of a long history, and no unusable number."""

import asyncio
from decimal import Decimal
from typing import Any

import pytest

from pitboss.venues.perp.hyperliquid.account_reader import MOST_FILLS, AccountReader
from pitboss.venues.perp.hyperliquid.strict_json import UnreadableReply, amount_of

START = 1_767_225_600_000


def fill_row(number: int, coin: str) -> dict[str, Any]:
    return {
        "tid": number, "coin": coin, "side": "B", "sz": "1", "px": "2000", "time": START + number, "startPosition": "0",
        "fee": "0.1", "feeToken": "USDH" if ":" in coin else "USDC", "crossed": True, "oid": number,
    }  # fmt: skip


class PagedInfo:
    """Answers `userFillsByTime` with the oldest fills since an instant, as the exchange does; the account has nothing else."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    async def post(self, body: dict[str, Any], purpose: str = "read", timeout_s: float = 1.0) -> Any:
        del purpose, timeout_s
        if body["type"] == "clearinghouseState":
            margin = {"accountValue": "1", "totalMarginUsed": "0"}
            amounts = {"crossMaintenanceMarginUsed": "0", "withdrawable": "1"}
            return {"time": START, "marginSummary": margin, **amounts, "assetPositions": []}
        if body["type"] != "userFillsByTime":
            return []
        return [row for row in self.rows if row["time"] >= body["startTime"]][:MOST_FILLS]


class SilentClock:
    def observe(self, *times: int) -> None:
        del times


@pytest.mark.parametrize("first", ["ETH", "@107"])
@pytest.mark.parametrize("other", ["@107", "PURR/USDC", "xyz:GOLD"])
def test_fills_behind_thousands_of_other_markets_are_read(first: str, other: str) -> None:
    coins = [first, *[other] * (2 * MOST_FILLS), "ETH"]
    info: Any = PagedInfo([fill_row(number, coin) for number, coin in enumerate(coins)])
    clock: Any = SilentClock()
    account = asyncio.run(AccountReader(info, "0x1", clock, lambda: START).read(START, 0))
    assert [fill.id for fill in account.fills] == [number for number, coin in enumerate(coins) if coin == "ETH"]


@pytest.mark.parametrize("text", ["1e999999", "-1e-999999", "0e50", "inf", "x", ""])
def test_an_amount_that_cannot_be_computed_with_is_unreadable(text: str) -> None:
    with pytest.raises(UnreadableReply):
        amount_of({"value": text}, "value")
    assert amount_of({"value": "-1.5e-7"}, "value") == Decimal("-0.00000015")
