"""The HTML report: complete, safe with hostile text, self-contained, the same bytes for the same run."""

import base64
import hashlib
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.instant import DAY_MS, iso
from pitboss.report.markup import tag
from pitboss.report.series import downsample
from pitboss.report.shell import html_document
from pitboss.report.source import RunReport
from pitboss.venues.perp.meaning import METRICS, RULES
from pitboss.venues.perp.panels.page import compose

START = 1_740_787_200_000  # 2025-03-01T00:00:00Z
BAR = 300_000
HOSTILE = "</script><script>alert(1)</script><img src=x onerror='alert(2)'>\"'>&amp;</style>\u202e\x00"
SKILL = """pitboss: 1
name: btc-breakout
venue: perp
model: standin/analyst
schedule: {every: 4h}
strategy:
  mode: thesis
  leash: balanced
  thesis: Breakouts after quiet hours tend to run.
  avoid: Trading into scheduled events.
context:
  symbols: [BTC, ETH]
  bars_interval: 15m
risk:
  max_position_pct: 25
  max_leverage: 3
"""


def walk(seed: int, bars: int, first: float) -> list[tuple[int, float, float, float, float]]:
    """A plausible price: volatility in regimes, now and then a jump."""
    draw = np.random.default_rng(seed)
    calm = np.repeat(draw.choice([0.0007, 0.0012, 0.0026], size=bars // 500 + 1), 500)[:bars]
    jumps = (draw.random(bars) < 0.0006) * draw.normal(0, 0.02, bars)
    close = first * np.exp(np.cumsum(draw.normal(0.000002, 1, bars) * calm + jumps))
    open_ = np.concatenate(([first], close[:-1]))
    reach = np.abs(draw.normal(0, 1, (2, bars))) * calm * 0.7
    high, low = np.maximum(open_, close) * (1 + reach[0]), np.minimum(open_, close) * (1 - reach[1])
    at = START + BAR * np.arange(bars)
    return [tuple(row) for row in np.column_stack((at, open_, high, low, close)).tolist()]


def margins(code: str | None, size: float, equity: float) -> list[dict[str, Any]]:
    cap = equity * 0.25
    rows = [
        ("R3_POSITION_CAP", cap, size, cap - size, "USD"),
        ("R4_EXPOSURE_CAP", equity, size * 1.4, equity - size * 1.4, "USD"),
        ("R5_LEVERAGE_CAP", 3, 5 if code == "R5_LEVERAGE_CAP" else 2, -2 if code == "R5_LEVERAGE_CAP" else 1, "x"),
        ("R6_ORDER_SIZE", 10, size, size - 10, "USD"),
        ("R7_ORDER_RATE", 12, 1, 11, "orders"),
        ("R9_MARGIN", equity * 0.8, size / 2, equity * 0.8 - size / 2, "USD"),
        ("R10_STALE_DATA", 1800, 0, 1800, "s"),
        ("R11_PRICE_BAND", "5 %", "market", None, ""),
    ]
    return [
        {
            "code": name,
            "limit": str(limit),
            "used": str(used),
            "left": None if left is None else str(left),
            "unit": unit,
        }
        for name, limit, used, left, unit in rows
    ]


def decision_row(seq: int, at: int, outcome: str, **more: Any) -> dict[str, Any]:
    row: dict[str, Any] = dict.fromkeys(
        ("symbol", "size_usd", "leverage", "limit_price", "stop_loss", "take_profit", "confidence", "code")
    )
    row |= {"seq": seq, "tick_at": iso(at), "action": "no_op", "order_type": "market", "outcome": outcome, "detail": ""}
    row |= {
        "reason": "Range is narrow and volume thin; nothing to do.",
        "margins": [],
        "flags": [],
        "text": "",
        "steps": [],
    }
    return row | {"cost_usd": "0"} | more


def sample(days: int = 45, seed: int = 7, *, every: int = 48) -> RunReport:
    """A made-up run that looks like a real one: two symbols, stops, targets, refusals, a halt and a liquidation."""
    draw = np.random.default_rng(seed)
    bars = days * DAY_MS // BAR
    prices = {"BTC": walk(seed, bars, 84_000.0), "ETH": walk(seed + 1, bars, 2_200.0)}
    fills: list[dict[str, Any]] = []
    decisions: list[dict[str, Any]] = []
    trades: list[dict[str, Any]] = []
    cash, fees = 10_000.0, 0.0
    gain = np.zeros(bars + 1)
    free = {"BTC": 0, "ETH": 0}
    for seq, index in enumerate(range(0, bars, every)):
        at, symbol = START + index * BAR, "BTC" if draw.random() < 0.6 else "ETH"
        chance = draw.random()
        last = prices[symbol][index][1]
        step = {"text": f"{symbol} pushed out of its range on rising volume.", "calls": [
            {"name": "fetch_recent_bars", "arguments": {"symbol": symbol, "interval": "15m", "lookback": 20},
             "result": "time open high low close\n" + "\n".join(f"{last * (1 - 0.001 * k):.1f}" for k in range(8))}]}  # fmt: skip
        if chance < 0.8 or free[symbol] > index:
            decisions.append(decision_row(seq, at, "noop"))
            continue
        side, size = (1 if draw.random() < 0.6 else -1), float(draw.uniform(1_200, 2_400))
        common: dict[str, Any] = {
            "action": "open_long" if side > 0 else "open_short", "symbol": symbol, "size_usd": round(size, 2),
            "leverage": 2, "stop_loss": round(last * (1 - 0.014 * side), 1), "take_profit": round(last * (1 + 0.03 * side), 1),
            "reason": f"{symbol} left its six-hour range with twice the usual volume; risking 1.4 % for 3 %.",
            "confidence": 0.62, "steps": [step], "cost_usd": "0.0021", "text": step["text"],
        }  # fmt: skip
        if chance > 0.95:
            code = str(draw.choice(["R3_POSITION_CAP", "R3_POSITION_CAP", "R5_LEVERAGE_CAP", "R11_PRICE_BAND"]))
            asked = size * 1.9 if code == "R3_POSITION_CAP" else size
            common |= {"size_usd": round(asked, 2), "leverage": 5 if code == "R5_LEVERAGE_CAP" else 2}
            detail = "the stop lies on the winning side of the mark" if code == "R11_PRICE_BAND" else ""
            decisions.append(
                decision_row(seq, at, "refused", code=code, detail=detail, margins=margins(code, asked, cash), **common)
            )
            continue
        decisions.append(decision_row(seq, at, "allowed", margins=margins(None, size, cash), **common))
        coins = round(size / last, 5)
        buy, sell = ("buy", "sell") if side > 0 else ("sell", "buy")
        fee = 0.00045 * coins * last
        fills.append({"at": iso(at), "symbol": symbol, "side": buy, "size": str(coins), "price": str(last), "fee_usd": str(fee), "slippage_usd": "0.01", "penalty_usd": "0", "liquidity": "taker", "reason": "market"})  # fmt: skip
        end, leave, why = min(index + int(draw.integers(60, 900)), bars - 1), 0.0, "market"
        for probe in range(index, end + 1):
            _, _, high, low, close = prices[symbol][probe]
            stop, target = common["stop_loss"], common["take_profit"]
            if (low <= stop) if side > 0 else (high >= stop):
                end, leave, why = probe, stop, "stop"
                break
            if (high > target) if side > 0 else (low < target):
                end, leave, why = probe, target, "take_profit"
                break
            leave = close
        if len(trades) == 21:
            why = "liquidation"
        result = side * coins * (leave - last) - 2 * fee
        fees += 2 * fee
        gain[end + 1] += result
        free[symbol] = end + 1
        out = START + end * BAR
        fills.append({"at": iso(out), "symbol": symbol, "side": sell, "size": str(coins), "price": str(leave), "fee_usd": str(fee), "slippage_usd": "0", "penalty_usd": "0", "liquidity": "taker", "reason": why})  # fmt: skip
        trades.append({"symbol": symbol, "side": "long" if side > 0 else "short", "opened_at": iso(at), "closed_at": iso(out), "pnl_usd": str(result), "fees_usd": str(2 * fee), "funding_usd": "0.42", "exit_reason": why})  # fmt: skip
    curve = 10_000 + np.cumsum(gain)[1:] + np.cumsum(draw.normal(0, 0.9, bars))
    times = (START + BAR * np.arange(1, bars + 1)).tolist()
    held = 10_000 * np.mean([[bar[4] / rows[0][1] for bar in rows] for rows in prices.values()], axis=0)
    fills.sort(key=lambda fill: fill["at"])
    own, holding = float(curve[-1] / 100 - 100), float(held[-1] / 100 - 100)
    refused = [row["code"] for row in decisions if row["outcome"] == "refused"]
    proposals = sum(row["outcome"] != "noop" for row in decisions)
    wins = [float(row["pnl_usd"]) for row in trades if float(row["pnl_usd"]) > 0]
    metrics: dict[str, Any] = {
        "total_return_pct": own, "total_return_ci": [own - 9.2, own + 10.1], "cagr": own / 25, "sharpe": 0.61, "sharpe_ci": [-1.9, 3.2],
        "sortino": 0.94, "max_drawdown_pct": float((1 - curve / np.maximum.accumulate(curve)).max() * 100),
        "max_drawdown_duration_days": 21.4, "total_trades": len(trades), "win_rate": len(wins) / max(len(trades), 1),
        "profit_factor": 1.18, "avg_win_usd": 52.1, "avg_loss_usd": 31.7, "total_fees_usd": fees, "total_funding_usd": 7.81,
        "total_slippage_usd": 3.02, "total_penalties_usd": 4.1, "liquidations": 1, "deficit_usd": 0, "total_ai_cost_usd": 1.13,
        "cost_per_decision_usd": 0.0021, "total_ticks": len(decisions), "total_proposed_actions": proposals,
        "total_accepted_actions": proposals - len(refused), "rejections_by_rule": {code: refused.count(code) for code in refused},
        "noops_by_flag": {"asleep": 12, "no_decision": 3}, "exposure_time_pct": 47.2, "turnover": 15.3, "probabilistic_sharpe": 0.63,
    }  # fmt: skip
    base = {
        "total_return_pct": holding,
        "max_drawdown_pct": 24.8,
        "sharpe": 0.2,
        "total_fees_usd": 4.5,
        "win_rate": None,
    }
    return RunReport(
        document={
            "run_id": "01JQ8Z5T", "status": "complete", "digest": "3f" * 32, "skill_digest": "a1" * 32, "data_digest": "b7" * 32,
            "model": "standin/analyst", "from": iso(START), "to": iso(START + days * DAY_MS), "ticks": len(decisions),
            "metrics": metrics, "baselines": {"buy_and_hold": base, "cash": {"total_return_pct": 0.0, "sharpe": None}},
            "cost_usd": 1.13, "wall_s": 8.2, "report": None, "errors": [],
        },
        skill_name="btc-breakout", skill_text=SKILL, initial_usd=10_000.0,
        equity=list(zip(times, curve.tolist(), strict=True)),
        baseline_equity={"buy_and_hold": list(zip(times, held.tolist(), strict=True)), "cash": [(times[0], 1e4), (times[-1], 1e4)]},
        prices=prices, fills=fills, decisions=decisions, trades=trades,
        assumptions=("Fees are 4.5 bps for taking and 1.5 bps for making.", "An order decided at a tick fills no earlier than the next bar's open."),
        synthetic=True, standin=True, halts=[{"at": START + 40 * DAY_MS, "kind": "daily_loss", "detail": "5.1 % lost since 00:00"}], version="0.1.0",
        rule_meanings=RULES, metric_meanings=METRICS,
    )  # fmt: skip


class RenderedPage(HTMLParser):
    """A parsed page: the elements left open, attributes, scripts, and the text outside of them."""

    VOID = frozenset({"meta", "link", "input", "br", "hr"})

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.wrong: list[str] = []
        self.scripts: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.ids: list[str] = []
        self.words: list[str] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "script":
            self.scripts.append(data)
        elif self.open and self.open[-1] != "style":
            self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def report() -> RunReport:
    return sample()


@pytest.fixture(scope="module")
def page(report: RunReport) -> str:
    return html_document(compose(report))


def report_of_document(**document: Any) -> RunReport:
    """A run of which nothing is known but its document."""
    return RunReport(document=document, skill_name="s", skill_text="pitboss: 1", initial_usd=10_000.0, equity=[])


def test_every_element_is_closed_in_order_and_no_id_is_used_twice(page: str) -> None:
    outline = RenderedPage(page)
    assert outline.wrong == []
    assert outline.open == []
    assert len(outline.ids) == len(set(outline.ids))


def test_every_link_inside_the_page_leads_somewhere(page: str) -> None:
    outline = RenderedPage(page)
    targets = {value[1:] for _, name, value in outline.attributes if name == "href" and value.startswith("#")}
    assert targets - {""} <= set(outline.ids)


def test_the_same_run_gives_the_same_bytes(page: str) -> None:
    assert html_document(compose(sample())) == page


def test_the_page_fetches_nothing(page: str) -> None:
    assert not re.search(r"https?:|//[a-z]+\.|@import|url\((?!#)", page)
    for element, name, value in RenderedPage(page).attributes:
        if name in ("src", "href", "action", "srcset", "poster", "data"):
            assert value.startswith(("#", "data:")), (element, name, value)


def test_the_policy_allows_this_script_and_nothing_else(page: str) -> None:
    outline = RenderedPage(page)
    (script,) = outline.scripts
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = [value for _, name, value in outline.attributes if name == "content" and "default-src" in value]
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy
    assert "unsafe-eval" not in policy
    assert not [name for _, name, _ in outline.attributes if name.startswith("on")]
    assert "innerHTML" not in script


def test_hostile_text_is_escaped_everywhere(report: RunReport) -> None:
    row = {
        **report.decisions[0], "seq": 0, "outcome": "refused", "code": HOSTILE, "action": HOSTILE, "symbol": HOSTILE, "reason": HOSTILE,
        "detail": HOSTILE, "flags": [HOSTILE], "text": HOSTILE, "tick_at": HOSTILE,
        "margins": [{"code": HOSTILE, "limit": HOSTILE, "used": HOSTILE, "left": "-1", "unit": HOSTILE}],
        "steps": [{"text": HOSTILE + "2", "calls": [{"name": HOSTILE, "arguments": {HOSTILE: HOSTILE}, "result": HOSTILE}]}],
    }  # fmt: skip
    fill = {**report.fills[0], "symbol": HOSTILE, "side": HOSTILE, "reason": HOSTILE}
    metrics = {**report.metrics, "rejections_by_rule": {HOSTILE: 3}, "noops_by_flag": {HOSTILE: 1}, HOSTILE: HOSTILE}
    document = {
        **report.document, "run_id": HOSTILE, "status": HOSTILE, "model": HOSTILE, "digest": HOSTILE, "errors": [HOSTILE], "metrics": metrics,
        "baselines": {HOSTILE: {"sharpe": 1}},
    }  # fmt: skip
    page = html_document(
        compose(
            replace(
                report,
                document=document,
                skill_name=HOSTILE,
                skill_text=HOSTILE,
                decisions=[row],
                fills=[fill],
                trades=[{"symbol": HOSTILE, "side": HOSTILE, "exit_reason": HOSTILE}],
                assumptions=[HOSTILE],
                version=HOSTILE,
                halts=[{"at": START + DAY_MS, "kind": HOSTILE}],
                prices={HOSTILE: report.prices["BTC"]},
                baseline_equity={HOSTILE: report.equity},
            )
        )
    )
    outline = RenderedPage(page)
    assert page.count("<script") == page.count("</script") == len(outline.scripts) == 1
    assert page.count("</style") == 1
    assert not [name for _, name, _ in outline.attributes if name.startswith("on") or name == "src"]
    assert not {"img", "iframe", "object", "base"} & {element for element, _, _ in outline.attributes}
    assert "<script>alert(1)</script>" in outline.text
    assert "\u202e" not in page
    assert "\x00" not in page
    assert (outline.wrong, outline.open) == ([], [])


@given(st.text(alphabet=st.characters(), max_size=60))
@settings(max_examples=30)
def test_any_text_is_preserved_except_unprintable_characters(words: str) -> None:
    html = tag("p", words, title=words)
    outline = RenderedPage(html)
    html.encode()
    assert (outline.open, outline.wrong) == ([], [])
    assert [name for _, name, _ in outline.attributes] == ["title"]
    assert html.count("<") == 2


def test_labels_mark_a_generated_market_and_a_model_that_is_a_program(report: RunReport, page: str) -> None:
    assert "Synthetic market" in page
    assert "Not a language model" in page
    real = html_document(compose(replace(report, synthetic=False, standin=False)))
    assert "Synthetic market" not in real
    assert "Not a language model" not in real
    assert "training data of a language model" in real


def test_the_summary_states_the_significance_and_the_distance_to_holding(page: str) -> None:
    text = RenderedPage(page).text
    assert "It includes zero: this result is not distinguishable from chance." in text
    assert "the agent did worse by" in text


def page_text_with(report: RunReport, own: dict[str, Any], **baselines: dict[str, Any]) -> str:
    """The text of the page with other figures of the run and of its baselines."""
    metrics, old = {**report.metrics, **own}, report.document["baselines"]
    document = {**report.document, "metrics": metrics, "baselines": {**old, **baselines}}
    return RenderedPage(html_document(compose(replace(report, document=document)))).text


def test_differences_are_those_of_the_figures_shown(report: RunReport) -> None:
    text = page_text_with(
        report,
        {"total_return_pct": 2.524, "total_fees_usd": 0.014, "total_funding_usd": 0.014, "total_slippage_usd": 0.014, "total_penalties_usd": 0},
        buy_and_hold={"total_return_pct": -26.014},
        buy_and_hold_capped={"total_return_pct": -9.996},
    )  # fmt: skip
    assert "this run did better by 28.53 points" in text  # 2.52 less −26.01; the exact figures differ by 28.538
    assert "Buy and hold, within the caps −10.00% this run did better by 12.52 points" in text
    assert "the agent did better by 28.53 percentage points" in text
    assert "cost $0.03," in text  # three times $0.01


def test_a_sharpe_of_fewer_than_twenty_days_is_flagged(report: RunReport) -> None:
    short = page_text_with(report, {"sharpe": 2.42, "sharpe_ci": None}, buy_and_hold={"sharpe": -3.36})
    assert "2.42 <20 days : too few to mean anything" in short
    assert "2.42 (<20 days)" in short
    assert "−3.36 (<20 days)" in short
    assert "<20 days" not in RenderedPage(html_document(compose(report))).text
    assert "<20 days" not in page_text_with(report, {"sharpe": None, "sharpe_ci": None}, buy_and_hold={"sharpe": None})


def test_an_interval_above_zero_and_a_better_result_are_stated(report: RunReport) -> None:
    metrics = {**report.metrics, "total_return_pct": 60.0, "total_return_ci": [5.0, 130.0]}
    text = RenderedPage(html_document(compose(replace(report, document={**report.document, "metrics": metrics})))).text
    assert "entirely above zero" in text
    assert "the agent did better by" in text


def test_a_run_without_trades_says_so_and_shows_its_funnel(report: RunReport) -> None:
    metrics = {**report.metrics, "total_trades": 0, "win_rate": None, "total_proposed_actions": 2, "total_accepted_actions": 0,
               "rejections_by_rule": {"R8_HALTED": 2}, "total_return_pct": 0.0, "total_return_ci": None, "sharpe": None}  # fmt: skip
    quiet = replace(report, document={**report.document, "metrics": metrics}, fills=[], trades=[])
    text = RenderedPage(html_document(compose(quiet))).text
    assert "Nothing was traded. The funnel: 270 ticks, 258 asked, 2 proposals, 2 refused, 0 fills." in text
    assert "Every proposal was refused" in text
    assert RULES["R8_HALTED"].meaning in text


def test_the_cost_of_the_model_includes_unused_speculative_calls(report: RunReport) -> None:
    document = {
        **report.document,
        "cost_usd": 1.53,
        "wasted_usd": 0.40,
    }  # the metrics have the 1.13 of the answers that were used
    text = RenderedPage(html_document(compose(replace(report, document=document)))).text
    assert "$0.40 of it for unused speculative calls" in text
    assert "The model cost $1.53 ($0.40 of it for unused speculative calls)" in text
    assert "unused" not in RenderedPage(html_document(compose(report))).text


def test_unknown_numbers_are_dashes_and_never_nan_or_none(report: RunReport) -> None:
    keys = dict.fromkeys(report.metrics)
    for metrics in (keys, {}, dict.fromkeys(keys, math.nan)):
        document = {**report.document, "metrics": metrics, "baselines": {}, "cost_usd": None}
        text = RenderedPage(html_document(compose(replace(report, document=document)))).text
        assert not re.search(r"\b(nan|inf|None|null)\b", text)


@pytest.mark.parametrize("status", ["error", "cancelled"])
def test_a_partial_run_is_called_partial(report: RunReport, status: str) -> None:
    partial = replace(
        report,
        document={**report.document, "status": status, "errors": [{"message": "budget"}]},
        equity=report.equity[:900],
    )
    text = RenderedPage(html_document(compose(partial))).text
    assert "Partial run" in text
    assert "The run did not finish" in text
    assert "budget" in text


@pytest.mark.parametrize(
    "report",
    [
        report_of_document(),
        report_of_document(run_id="r", status="error", errors=["no data"], **{"from": "2025-03-01T00:00:00Z"}),
        replace(report_of_document(run_id="r"), equity=[(START, 10_000.0)], prices={"BTC": [(START, 1.0, 1.0, 1.0, 1.0)], "ETH": []}),
        replace(report_of_document(run_id="r"), equity=[(START, 0.0), (START + BAR, 0.0)], initial_usd=0.0),
    ],
    ids=["nothing", "failed at once", "one point", "no money"],
)  # fmt: skip
def test_a_run_with_almost_nothing_in_it_still_gives_a_page(report: RunReport) -> None:
    outline = RenderedPage(html_document(compose(report)))
    assert (outline.wrong, outline.open) == ([], [])
    assert "Nothing was traded" in outline.text


def test_every_kind_of_mark_has_its_own_shape_on_the_chart(page: str) -> None:
    for kind in ("enter_long", "enter_short", "exit", "stop", "take_profit", "liquidation", "refused"):
        assert page.count(f'id="m-{kind}"') == 1
        assert page.count(f'href="#m-{kind}"') >= 2, f"{kind} is in the legend and on a chart"


def test_a_refusal_shows_limit_request_and_excess(report: RunReport) -> None:
    row = decision_row(1, START, "refused", code="R3_POSITION_CAP", action="open_long", symbol="BTC", size_usd=4_000,
               margins=[{"code": "R3_POSITION_CAP", "limit": "2500", "used": "4000", "left": "-1500", "unit": "usd"}])  # fmt: skip
    text = RenderedPage(html_document(compose(replace(report, decisions=[row])))).text
    assert "limit $2,500.00, requested $4,000.00: $1,500.00 beyond" in text


def test_all_thirteen_rules_have_a_meaning() -> None:
    assert [code.partition("_")[0] for code in RULES] == [f"R{number}" for number in range(1, 14)]


def test_of_too_many_decisions_proposals_are_shown_and_the_omission_is_stated(report: RunReport) -> None:
    quiet = [decision_row(seq, START + seq * BAR, "noop", reason=f"reason {seq}") for seq in range(3_000)]
    loud = [{**row, "seq": 3_000 + index} for index, row in enumerate(report.decisions) if row["outcome"] != "noop"]
    page = html_document(compose(replace(report, decisions=[*quiet, *loud])))
    outline = RenderedPage(page)
    assert page.count("data-outcome=") == 2_000
    assert {f"d{row['seq']}" for row in loud} <= set(outline.ids)
    assert f"Shown are 2,000 of {3_000 + len(loud):,} decisions" in outline.text


def test_the_decisions_open_on_the_proposals_with_the_numbers_of_all_outcomes(report: RunReport) -> None:
    rows = [{**decision_row(1, START, "noop"), "times": 500, "until": iso(START + DAY_MS)}, decision_row(2, START, "allowed"), decision_row(3, START, "refused")]  # fmt: skip
    page = html_document(compose(replace(report, decisions=rows)))
    first, *rest = re.findall(r'<option value="(all|proposed|allowed|refused|noop)">([^<]*)', page)
    assert first == ("proposed", "Proposals (2)")
    assert rest == [("all", "All decisions (502)"), ("allowed", "Allowed (1)"), ("refused", "Refused (1)"), ("noop", "No-op (500)")]  # fmt: skip
    quiet = html_document(compose(replace(report, decisions=rows[:1])))
    assert re.findall(r'<option value="(all|proposed)">([^<]*)', quiet) == [("all", "All decisions (500)")]


def test_a_trade_has_its_prices_size_excursions_and_a_link_into_its_chart(report: RunReport) -> None:
    trade = {
        "symbol": "BTC", "side": "short", "opened_at": START, "closed_at": START + DAY_MS, "entry_price": "84000", "exit_price": "82000.5",
        "max_size": "0.05", "pnl_usd": "97.1", "best_pct": 3.5, "worst_pct": -1.25, "fees_usd": "1.2", "funding_usd": "-0.3", "exit_reason": "take_profit",
    }  # fmt: skip
    still_open = {**trade, "symbol": "XYZ", "closed_at": None, "exit_price": None, "exit_reason": ""}
    page = html_document(compose(replace(report, trades=[trade, still_open])))
    text = RenderedPage(page).text
    row = "BTC short 0.05 84,000.0 82,000.5 +$97.10 +2.31% +3.50% −1.25% $1.20 −$0.30 take profit"
    assert f"2025-03-01 00:00 2025-03-02 00:00 {row}" in text
    assert f'<a href="#price-BTC" data-range="{START} {START + DAY_MS}">' in page
    assert page.count("data-range=") == 1, "a symbol without a chart has no link"
    assert "BTC 1 100% +$97.10 +$97.10 +$97.10 1 d $1.20 −$0.30" in text  # its row of the table of symbols
    assert "All 2 100% +$194.20" in text
    assert text.count("still open") == 1


def test_equal_no_ops_in_a_row_are_shown_as_one(report: RunReport) -> None:
    rows = [decision_row(seq, START + seq * BAR, "noop") for seq in range(50)]
    text = RenderedPage(html_document(compose(replace(report, decisions=rows)))).text
    assert "Hold × 50" in text


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=400), st.integers(1, 40))
def test_downsampling_keeps_both_extremes_and_the_last_point(values: list[float], columns: int) -> None:
    at, series = np.arange(len(values), dtype=float), np.array(values)
    kept = downsample(at, series, 0.0, float(len(values)), columns)
    assert {series.min(), series.max(), series[-1]} <= set(series[kept])
    assert (np.diff(kept) > 0).all()
    assert len(kept) <= max(3 * columns, 2 * columns)


def test_a_year_of_bars_and_two_thousand_full_decisions_stay_within_three_megabytes() -> None:
    year = sample(days=365)
    full = next(row for row in year.decisions if row["outcome"] == "refused")
    steps = [
        {"text": "word " * 300, "calls": [{"name": "fetch_recent_bars", "arguments": {}, "result": "row " * 500}]}
    ] * 3
    rows = [{**full, "seq": seq, "steps": steps, "reason": f"{seq} " + "because " * 30} for seq in range(2_000)]
    heavy = replace(year, decisions=rows)
    assert len(heavy.equity) == 105_120
    page = html_document(compose(heavy))
    assert len(page.encode()) < 3_000_000
    assert "omitted to keep this file small" in page
