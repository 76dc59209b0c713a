"""Runs inside a peer's own environment: `python program.py PEER BARS.npz EQUITY POSITION_PCT FEE_BPS`.

Reads bars, prints `{"ready": …}`, then does the work once for every input line and prints one JSON line: seconds inside the
peer (imports and loading excluded, its statistics included), bars, trades, final equity. It imports nothing of pitboss,
which is not installed there.

The work: long a fixed share of equity while SMA(20) of closes is above SMA(50), else flat; orders fill at the next open.
"""

import gc
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

FAST, SLOW = 20, 50
Work = Callable[[], dict[str, Any]]


def average(closes: Any, length: int) -> Any:
    """A simple moving average; NaN until there are enough bars."""
    values = np.asarray(closes, dtype=float)
    sums = np.cumsum(np.insert(values, 0, 0.0))
    out = np.full(len(values), np.nan)
    out[length - 1 :] = (sums[length:] - sums[:-length]) / length
    return out


def frame_of(bars: dict[str, Any]) -> Any:
    """Bars as the pandas table that most peers take."""
    import pandas as pd  # pyright: ignore[reportMissingImports]

    names = ("open", "high", "low", "close", "volume")
    return pd.DataFrame(
        {name.capitalize(): bars[name] for name in names}, index=pd.to_datetime(bars["open_at"], unit="ms")
    )


def backtesting(bars: dict[str, Any], equity: float, share: float, fee: float) -> Work:
    """backtesting.py with the cheapest strategy for this work: two indicators and a comparison."""
    from backtesting import Backtest, Strategy  # pyright: ignore[reportMissingImports]

    class Cross(Strategy):
        def init(self) -> None:
            self.fast = self.I(average, self.data.Close, FAST)
            self.slow = self.I(average, self.data.Close, SLOW)

        def next(self) -> None:
            if self.fast[-1] > self.slow[-1]:
                if not self.position:
                    self.buy(size=share)
            elif self.position:
                self.position.close()

    test = Backtest(frame_of(bars), Cross, cash=equity, commission=fee, finalize_trades=True)

    def work() -> dict[str, Any]:
        stats = test.run()
        return {"trades": int(stats["# Trades"]), "final_equity": float(stats["Equity Final [$]"])}

    return work


def vectorbt(bars: dict[str, Any], equity: float, share: float, fee: float) -> Work:
    """vectorbt: signals as whole columns without a decision per bar; the speed of a vectorised engine."""
    import vectorbt as vbt  # pyright: ignore[reportMissingImports]

    frame = frame_of(bars)

    def work() -> dict[str, Any]:
        above = average(frame["Close"], FAST) > average(frame["Close"], SLOW)
        signal = np.insert(above[:-1], 0, False)  # decided at a close, filled at the next open
        portfolio = vbt.Portfolio.from_signals(
            frame["Open"],
            entries=signal,
            exits=~signal,
            size=share,
            size_type="percent",
            fees=fee,
            init_cash=equity,
            freq="5min",
        )
        portfolio.stats()
        return {"trades": int(portfolio.trades.count()), "final_equity": float(portfolio.final_value())}

    return work


def backtrader(bars: dict[str, Any], equity: float, share: float, fee: float) -> Work:
    """backtrader, bar by bar."""
    import backtrader as bt  # pyright: ignore[reportMissingImports]

    frame = frame_of(bars)

    class Cross(bt.Strategy):
        def __init__(self) -> None:
            self.fast = bt.indicators.SimpleMovingAverage(self.data.close, period=FAST)
            self.slow = bt.indicators.SimpleMovingAverage(self.data.close, period=SLOW)
            self.closed = 0

        def next(self) -> None:
            if self.fast[0] > self.slow[0]:
                if not self.position:
                    self.buy(size=int(self.broker.getvalue() * share / self.data.close[0]))
            elif self.position:
                self.close()
                self.closed += 1

    def work() -> dict[str, Any]:
        engine = bt.Cerebro(stdstats=False)
        engine.adddata(bt.feeds.PandasData(dataname=frame))
        engine.addstrategy(Cross)
        engine.broker.setcash(equity)
        engine.broker.setcommission(commission=fee)
        (strategy,) = engine.run()
        return {"trades": strategy.closed, "final_equity": float(engine.broker.getvalue())}

    return work


PEERS = {"backtesting": backtesting, "vectorbt": vectorbt, "backtrader": backtrader}


def main(peer: str, path: str, equity: str, position_pct: str, fee_bps: str) -> None:
    """Serve until the caller closes the input."""
    warnings.simplefilter("ignore")
    results, sys.stdout = sys.stdout, sys.stderr  # output of the peer must not mix with the results
    bars = dict(np.load(path))
    work = PEERS[peer](bars, float(equity), float(position_pct) / 100, float(fee_bps) / 10_000)
    print(json.dumps({"ready": peer}), file=results, flush=True)
    for _ in sys.stdin:
        gc.collect()
        start = time.perf_counter()
        result = work()
        result["seconds"] = time.perf_counter() - start
        result["bars"] = len(bars["close"])
        print(json.dumps(result), file=results, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
