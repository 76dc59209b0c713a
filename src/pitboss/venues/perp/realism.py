"""The fill-realism settings of a run: each setting, its value, and whether it is off.

They are read from the request, so that a stored run gives the same result as a new one. The number of fills priced by
order books comes from the receipts.
"""

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from pitboss.core.instant import HOUR_MS, MINUTE_MS, SECOND_MS
from pitboss.core.money import text
from pitboss.core.receipt import Receipt
from pitboss.venues.perp.request import PerpRequest

SettingState = Literal["off", "default", "conservative", "as asked"]
"""`default`: a plain number that every run has; `conservative`: a fixed rule that errs against the run."""


def settings(request: PerpRequest) -> dict[str, dict[str, str]]:
    """Return every setting under its stable name: `value` in words, `state`, and what it is `about`."""
    defaults = PerpRequest(skill={}, from_at=0, to_at=0)

    def setting(about: str, value: str, state: SettingState) -> dict[str, str]:
        return {"about": about, "value": value, "state": state}

    def changed(*names: str) -> SettingState:
        same = all(getattr(request, name) == getattr(defaults, name) for name in names)
        return "default" if same else "as asked"

    linear = f"{text(request.slippage_bps_per_million)} bps for each million USD"
    book = f"walks an order book not older than {duration_text(request.book_max_age_ms)}, else {linear}"
    by_book = request.slippage == "book"
    volume_pct, latency_ms = request.max_volume_pct, request.decision_latency_ms
    news = request.news_latency or (duration_text(request.news_latency_ms) if request.news_latency_ms else "")
    return {
        "fill_price": setting("Price of a market order", "the next bar's open, not the price seen", "conservative"),
        "slippage": setting(
            "Slippage of takers",
            book if by_book else linear,
            "as asked" if by_book else changed("slippage_bps_per_million"),
        ),
        "volume_share": setting(
            "Size of fills",
            "any size fills" if volume_pct is None else f"at most {text(volume_pct)} % of a bar's volume",
            "off" if volume_pct is None else "as asked",
        ),
        "decision_latency": setting(
            "Decision latency",
            duration_text(latency_ms) if latency_ms else "none beyond the next bar",
            "as asked" if latency_ms else "off",
        ),
        "news_latency": setting("News latency", news or "none", "as asked" if news else "off"),
        "path": setting("Path inside a bar", "the adverse side comes first", "conservative"),
        "resting": setting("Resting orders", "fill only if the price goes through them", "conservative"),
        "fees": setting(
            "Fees",
            f"{text(request.taker_bps)} bps taking, {text(request.maker_bps)} bps making",
            changed("taker_bps", "maker_bps"),
        ),
        "liquidation": setting("Liquidation penalty", f"{text(request.penalty_bps)} bps", changed("penalty_bps")),
    }


def slippage_text(request: PerpRequest, receipts: Iterable[Receipt]) -> str:
    """Describe a taker's slippage, with the number of fills priced by an order book."""
    k = text(request.slippage_bps_per_million)
    if request.slippage != "book":
        return f"A market order pays slippage of {k} basis points for each million dollars of its value."
    # limit fills are left out: without a book they fill at the open and would be counted only where there is one
    fills = (receipt for receipt in receipts if receipt.kind == "filled" and receipt.facts["reason"] != "limit")
    count = Counter(str(fill.facts.get("slippage", "")) for fill in fills)
    walked, linear = count["book"] + count["beyond_book"], count["linear"]
    deep = f" ({count['beyond_book']} of them went deeper than it was recorded)" if count["beyond_book"] else ""
    return (
        f"A taker walks the newest imported order book that is not older than {duration_text(request.book_max_age_ms)} when the "
        f"bar opens; without one it pays {k} basis points for each million dollars. {walked} of {walked + linear} fills of "
        f"market orders and stops walked a book{deep}, {linear} found none."
    )


def fill_size_text(request: PerpRequest) -> str:
    """Describe how much of an order fills."""
    if request.max_volume_pct is None:
        book = "" if request.slippage == "book" else "There is no order book: "
        return f"{book}{'o' if book else 'O'}ther traders do not react, and any size fills."
    return (
        f"The fills of a symbol take at most {text(request.max_volume_pct)} % of a bar's volume. The rest of a market order "
        "is cancelled; limits, stops, take-profits and liquidations go on in later bars. Other traders do not react."
    )


def duration_text(ms: int) -> str:
    """Format a duration as it is typed on the command line."""
    for unit, name in ((HOUR_MS, "h"), (MINUTE_MS, "m"), (SECOND_MS, "s")):
        if ms and ms % unit == 0:
            return f"{ms // unit}{name}"
    return f"{ms / SECOND_MS:g}s"
