"""`## Market context`: for each symbol its regime, its bars, and the bars of the higher timeframes.

This is the longest section and the one that changes least: each row is formatted once, when its bar has closed, and a
window is a join of rows. Only closed bars are read.
"""

from collections.abc import Sequence

from pitboss.core.instant import iso
from pitboss.core.market import Bars
from pitboss.prompt.render import bar_header, bar_rows
from pitboss.venues.perp import regime
from pitboss.venues.perp.observation import Observation
from pitboss.venues.perp.sections import HIGHER_BARS, Memo

PLACE = 20

_TITLE = "## Market context\nClosed bars only, oldest first; the time of a bar is its open."
_SLACK = 512
"""Rows kept before the window, so that going back a little costs nothing; memory use stays flat over a long run."""
_BLOCKS = 64
"""Blocks cached per symbol: after an order, ticks that were already rendered ahead of it are rendered again."""


class FormattedRows:
    """Formatted rows of one set of bars: a contiguous range that begins at bar `start`."""

    __slots__ = ("bars", "lines", "start")

    def __init__(self, bars: Bars) -> None:
        self.bars = bars
        self.start = 0
        self.lines: list[str] = []

    def window(self, closed: int, lookback: int) -> str:
        """Return the newest `lookback` rows of the first `closed` bars, joined."""
        first = max(0, closed - lookback)
        stop = self.start + len(self.lines)
        if not self.start <= first <= stop:
            self.start = stop = first
            self.lines = []
        if closed > stop:
            bars, new = self.bars, slice(stop, closed)
            columns = (bars.open_at, bars.open, bars.high, bars.low, bars.close, bars.volume)
            self.lines += bar_rows(*(column[new].tolist() for column in columns))
            unused = first - self.start - _SLACK
            if unused > _SLACK:
                del self.lines[:unused]
                self.start += unused
        return "\n".join(self.lines[first - self.start : closed - self.start])


class _SymbolCache:
    """The cached blocks of one symbol, by number of closed bars, and the columns they were made from."""

    __slots__ = ("columns", "rows", "texts")

    def __init__(self) -> None:
        self.rows: dict[str, FormattedRows] = {}
        self.columns: list[Bars | None] = []
        self.texts: dict[tuple[int, ...], str] = {}


def render(observation: Observation, memo: Memo) -> str:
    """Return the section; it is always present."""
    view = observation.view
    caches: dict[str, _SymbolCache] = memo.cache.setdefault("market", {})
    blocks = [_TITLE]
    for symbol in memo.symbols:
        series = [
            view.series(symbol, interval) if view.has_bars(symbol, interval) else None
            for interval in (memo.interval, *memo.higher)
        ]
        if not view.listed(symbol):  # show no data, neither from before nor from after the listing
            blocks.append(f"### {symbol}\n{'no longer listed' if view.was_delisted(symbol) else 'not listed yet'}")
            continue
        text = _cached_block(symbol, series, memo, caches.get(symbol) or caches.setdefault(symbol, _SymbolCache()))
        ends_at = view.ends_at(symbol)
        blocks.append(text if ends_at is None else f"{text}\nthe venue stops listing it at {iso(ends_at)}")
    return "\n".join(blocks)


def _cached_block(symbol: str, series: Sequence[tuple[Bars, int] | None], memo: Memo, cache: _SymbolCache) -> str:
    """Return a symbol's block, rendered once for each number of closed bars."""
    columns = [column and column[0] for column in series]
    if columns != cache.columns:  # columns compare by identity, so another market never matches
        cache.columns, cache.texts = columns, {}
    closed = tuple([column[1] if column else -1 for column in series])
    text = cache.texts.get(closed)
    if text is None:
        text = _block(symbol, series, memo, cache.rows)
        if len(cache.texts) >= _BLOCKS:
            del cache.texts[next(iter(cache.texts))]
        cache.texts[closed] = text
    return text


def _block(symbol: str, series: Sequence[tuple[Bars, int] | None], memo: Memo, rows: dict[str, FormattedRows]) -> str:
    base = series[0]
    tag = regime.tag(*base, memo.lookback) if base else regime.UNKNOWN
    lines = [f"### {symbol}", f"regime ({memo.interval}): {tag}"]
    most = memo.lookback
    for interval, column in zip((memo.interval, *memo.higher), series, strict=True):
        if column is None:
            lines.append(f"{interval} bars: not in this run")
        elif column[1] == 0:
            lines.append(f"{interval} bars: none closed yet")
        else:
            bars, closed = column
            formatted = rows.get(interval)
            if formatted is None or formatted.bars is not bars:
                formatted = rows[interval] = FormattedRows(bars)
            lines += (f"{interval} bars, last {min(closed, most)}:", bar_header(), formatted.window(closed, most))
        most = min(memo.lookback, HIGHER_BARS)
    return "\n".join(lines)
