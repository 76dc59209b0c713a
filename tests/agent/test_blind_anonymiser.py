"""The anonymiser that every venue has: any value, by the names of its fields."""

from dataclasses import dataclass
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np

from pitboss.agent.blind.anonymiser import Anonymiser
from pitboss.core.instant import DAY_MS, HOUR_MS, day_of, iso, parse_instant
from pitboss.core.market import Bars
from pitboss.core.noun import noun
from pitboss.core.ports import ToolSpec
from pitboss.core.receipt import Receipt
from pitboss.core.state import LastDecision

AT = parse_instant("2026-02-22T10:00:00Z")


@noun
class Quote:
    """A value of some venue."""

    symbol: str
    at: int
    expires_at: int
    day: int
    strike: int
    mid: float
    stop: Decimal
    size: Decimal
    others: frozenset[str]
    note: str
    detail: str = ""
    code: str = ""


@dataclass(frozen=True, eq=True)
class SomeAnonymiser(Anonymiser):
    """That of its venue."""

    PRICES: ClassVar[frozenset[str]] = frozenset({"strike", "mid", "Quote.stop"})
    PRICE_RULES: ClassVar[frozenset[str]] = frozenset({"X1_PRICE"})


def anonymiser() -> SomeAnonymiser:
    request: Any = SimpleNamespace(blind=True, disguise=None, seed=5, is_program=False)
    made = SomeAnonymiser.of_request(request, ("BTC", "ETH"))
    assert isinstance(made, SomeAnonymiser)
    return made


def test_names_instants_days_and_prices_of_a_value_are_hidden_and_the_rest_stays() -> None:
    blind = anonymiser()
    true = Quote(
        "BTC", AT, AT + HOUR_MS, day_of(AT), 97_000, 97_000.5, Decimal("96999.25"), Decimal(3),
        frozenset({"ETH"}), "BTC looks strong", "strike 97000 is off the grid", "X1_PRICE",
    )  # fmt: skip
    shown, factor = blind.observation(true), 2**blind.price_power
    assert factor >= 64
    assert (shown.symbol, shown.others) == (blind.names["BTC"], frozenset({blind.names["ETH"]}))
    assert (shown.at - AT) == (shown.expires_at - true.expires_at) == (shown.day - true.day) * DAY_MS == blind.shift_ms
    assert (shown.strike, shown.mid) == (97_000 * factor, 97_000.5 * factor)
    assert (shown.stop, shown.size) == (Decimal("96999.25") * factor, 3)
    assert "BTC" not in shown.note
    assert shown.detail == "strike [number] is off the grid"
    assert blind.observation(true) is shown


def test_bars_receipts_and_the_last_decision_are_values_like_any_other() -> None:
    blind, factor = anonymiser(), 2 ** anonymiser().price_power
    column = np.array([100.0])
    bars = Bars("BTC", "1h", HOUR_MS, np.array([AT]), column, column, column, column, column)
    shown = blind.anonymise(bars)
    assert (shown.symbol, shown.open_at[0], shown.close[0]) == (blind.names["BTC"], AT + blind.shift_ms, 100.0 * factor)
    receipt = blind.receipt(Receipt("filled", AT, f"BTC-{iso(AT)}", "o1", {"strike": "97000", "cost": "2"}))
    assert receipt.symbol == f"{blind.names['BTC']}-{iso(AT + blind.shift_ms)}"
    assert receipt.facts == {"strike": str(97_000 * factor), "cost": "2"}
    last = blind.anonymise(LastDecision(AT, "refused", "", '{"strike":97000,"symbol":"BTC"}', "X2", "BTC is full"))
    name = blind.names["BTC"]
    assert last.proposal == f'{{"strike":{97_000 * factor},"symbol":"{name}"}}'
    assert last.detail == f"{name} is full"


def test_a_tool_is_offered_without_the_symbols_of_the_run() -> None:
    schema = {"type": "object", "properties": {"step": {"type": "number", "description": "As btc_book lists it."}}}
    spec = anonymiser().spec(ToolSpec("btc_book", "The order book of BTC.", schema))
    assert spec.name == "asset_book"
    assert "BTC" not in spec.description
    assert spec.schema["properties"]["step"] == {"type": "number", "description": "As asset_book lists it."}
