"""The text around patterns: what confirms one, what ends it, and that chance is named."""

import numpy as np

from pitboss.core.asof import Market
from pitboss.core.market import Bars
from venues.perp.analysis.test_patterns import DRAWINGS, inverted_bars
from venues.perp.scene import START
from venues.perp.tools.demo_market import call


def tool_lines(bars: Bars, lookback: int = 500) -> list[str]:
    moved = Bars(
        "BTC", "1h", bars.interval_ms, bars.open_at + START, bars.open, bars.high, bars.low, bars.close, bars.volume
    )
    asked = {"symbol": "BTC", "interval": "1h", "lookback": lookback}
    at = int(moved.open_at[-1]) + moved.interval_ms
    return call("analyze_chart_pattern", asked, Market({("BTC", "1h"): moved}), at).splitlines()


def line(lines: list[str], start: str) -> str:
    return next(each for each in lines if each.startswith(start))


def test_a_double_top_is_shown_with_its_dates_and_what_would_confirm_or_end_it() -> None:
    text = line(tool_lines(DRAWINGS["double top"]), "- double top")
    assert text.startswith("- double top, bearish, forming: confidence 0.99, fit 1.00")
    assert "(chance draws one on 55% of charts); 06-01 20:00 to 06-02 16:00; " in text
    assert "confirmed by a close below 106.1" in text
    assert "void above 110.5" in text


def test_its_mirror_image_is_shown_the_other_way_round() -> None:
    text = line(tool_lines(inverted_bars(DRAWINGS["double top"])), "- double bottom")
    assert "bullish, forming" in text
    assert "confirmed by a close above" in text
    assert "void below" in text


def test_a_triangle_that_points_nowhere_has_two_ways_out() -> None:
    text = line(tool_lines(DRAWINGS["symmetrical triangle"]), "- symmetrical triangle")
    assert "either way, forming" in text
    assert "leaves it above" in text


def test_a_chart_too_short_or_still_is_said_to_be_that() -> None:
    short = DRAWINGS["double top"].slice(0, 19)
    assert tool_lines(short)[0].endswith("too few bars to tell a pattern, 20 are needed")
    still = np.full(40, 9.0)
    flat = Bars("BTC", "1h", 3_600_000, 3_600_000 * np.arange(40), still, still, still, still, still)
    assert tool_lines(flat)[0].endswith("the price does not move, there is no pattern")


def test_every_part_is_there() -> None:
    lines = tool_lines(DRAWINGS["head and shoulders"])
    for start in (
        "trend: ",
        "swings, newest first: ",
        "patterns (confidence: ",
        "resistance: ",
        "support: ",
        "candles",
    ):
        assert line(lines, start)
