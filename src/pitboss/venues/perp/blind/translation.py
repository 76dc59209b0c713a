"""Translates proposals, verdicts and receipts of the perp venue between true and anonymised terms.

Proposals are translated in both directions without losing a digit. Of true values, a translated verdict holds only
money, percentages and times of day. Names and texts are in `agent.blind.translator`, market and account in
`venues.perp.blind.observation`; `venues.perp.blind.anonymiser` combines them.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

from pitboss.agent.blind import translator
from pitboss.agent.blind.mapping import scale
from pitboss.agent.blind.translator import symbol_of
from pitboss.core.money import exact, text
from pitboss.core.receipt import Receipt
from pitboss.core.rule_message import Price, RuleMessage, Symbols
from pitboss.core.verdict import Margin, Verdict

PRICES = ("limit_price", "stop_loss", "take_profit")
PRICE_FACTS = frozenset({"price", "limit", "stop", "take_profit"})
SIZE_FACTS = frozenset({"size", "left"})
"""The facts of a receipt that are prices and sizes; every other fact is money, a rate, a count or text."""
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_BAND = re.compile(rf"limit {_NUMBER} is more than (.+ %) beyond mark {_NUMBER}")
_SIDE = re.compile(rf"(stop_loss|take_profit) {_NUMBER} is not on the (losing|winning) side of {_NUMBER}")


@dataclass(frozen=True, eq=True)
class PerpTranslator(translator.Translator):
    """The mapping between true and anonymised terms of one run of the perp venue."""

    @cached_property
    def _alias_list(self) -> re.Pattern[str]:
        alias = "|".join(map(re.escape, self.true_symbols)) or "(?!)"
        return re.compile(rf"(?<=\()(?:{alias})(?:, (?:{alias}))+(?=\))")

    # Proposals --------------------------------------------------------------------------------------------------------

    def proposal(self, true: Any) -> Any:
        """Return a true proposal in the model's terms."""
        symbol = symbol_of(true)
        alias = self.by_symbol.get(symbol)
        return self._translate(true, symbol, 0 if alias is None else alias.price_power)

    def true_proposal(self, anonymised: Any) -> Any:
        """Return the model's proposal in true terms; the inverse of `proposal` for any value.

        A true symbol in the place of a name becomes a name, which the engine refuses like any other unknown symbol.
        """
        symbol = symbol_of(anonymised)
        alias = self.by_symbol.get(self.name(symbol)) if symbol not in self.by_symbol else None
        return self._translate(anonymised, symbol, 0 if alias is None else -alias.price_power)

    def _translate(self, proposal: Any, symbol: str, exponent: int) -> Any:
        if symbol not in self.both_ways:
            return proposal
        prices = {key: scale(proposal[key], exponent) for key in PRICES if key in proposal} if exponent else {}
        return {**proposal, "symbol": self.both_ways[symbol], **prices}

    # Verdicts ---------------------------------------------------------------------------------------------------------

    def verdict(self, verdict: Verdict, symbol: str) -> Verdict:
        """Return a verdict about a true symbol in which only money and percentages are true values."""
        detail, code = verdict.detail, verdict.code or ""
        anonymised = (
            self.message(detail, symbol)
            if isinstance(detail, RuleMessage)
            else self.stored_detail(detail, code, symbol)
        )
        return replace(
            verdict,
            detail=anonymised,
            margins=tuple(self.margin(margin, symbol) for margin in verdict.margins),
        )

    def margin(self, margin: Margin, symbol: str) -> Margin:
        """Return a margin with its prices scaled; all other units are money, counts and times."""
        alias = self.by_symbol.get(symbol)
        if margin.unit != "price" or alias is None:
            return margin
        limit, used, left = (scale(value, alias.price_power) for value in (margin.limit, margin.used, margin.left))
        return replace(margin, limit=limit, used=used, left=left)

    def message(self, message: RuleMessage, symbol: str) -> str:
        """Return a rule's message about a true symbol, formatted from anonymised values."""
        alias = self.by_symbol.get(symbol)
        exponent = 0 if alias is None else alias.price_power
        values = {name: self._value(value, exponent) for name, value in message.values.items()}
        anonymised = message.template.format_map(values)
        has_prices = any(isinstance(value, Price) for value in message.values.values())
        return anonymised if has_prices else self.neutraliser.own(anonymised)  # messages about prices quote no text

    def _value(self, value: object, exponent: int) -> object:
        if isinstance(value, Price):
            return Price(scale(value.value, exponent))
        if isinstance(value, Symbols):
            names = tuple(map(self.name, value.names))
            return Symbols(tuple(sorted(names)) if self._has_only_aliases(names) else names)
        return value

    def _has_only_aliases(self, names: tuple[str, ...]) -> bool:
        """Whether sorting hides the order of the true symbols; a list with other names keeps its order."""
        return all(name in self.true_symbols for name in names)

    def stored_detail(self, detail: str, code: str, symbol: str) -> str:
        """Return a message of which only the text is left, anonymised.

        Records and states store messages as text, so the past of a run can only be translated by parsing it. Texts of
        the venue and of exceptions have no known form and are neutralised as news is.
        """
        if not detail:
            return detail
        alias = self.by_symbol.get(symbol)
        if alias is not None and code == "R11_PRICE_BAND":
            scaled = _scale_prices(detail, alias.price_power)
            return self.neutraliser.news(detail) if scaled is None else scaled
        if code == "R13_VENUE" or "failed:" in detail or "worked out:" in detail:
            return self.neutraliser.news(detail)
        if code == "R1_SHAPE" or detail.startswith("no working order "):
            return self.neutraliser.own(detail)  # quotes the model and no symbol of the run
        before, quoted, after = detail.partition(symbol) if symbol else (detail, "", "")
        swapped = self.swap(before) + self.name(quoted) + self.swap(after)
        ordered = self._alias_list.sub(lambda match: ", ".join(sorted(match[0].split(", "))), swapped)
        return self.neutraliser.own(ordered)

    def stored_margin(self, margin: Mapping[str, Any], symbol: str) -> dict[str, Any]:
        """Return a margin of a record with its prices scaled."""
        alias = self.by_symbol.get(symbol)
        if margin.get("unit") != "price" or alias is None:
            return dict(margin)
        amounts = {
            name: _scaled(margin[name], alias.price)
            for name in ("limit", "used", "left")
            if margin.get(name) is not None
        }
        return {**margin, **amounts}

    # Receipts ---------------------------------------------------------------------------------------------------------

    @exact
    def receipt(self, receipt: Receipt) -> Receipt:
        """Return a receipt with its prices and sizes scaled."""
        alias = self.by_symbol.get(receipt.symbol)
        at = receipt.at + self.shift_ms
        if alias is None:
            return replace(receipt, at=at)
        facts = {
            name: _scaled(value, alias.price if name in PRICE_FACTS else alias.size)
            if name in PRICE_FACTS or name in SIZE_FACTS
            else value
            for name, value in receipt.facts.items()
        }
        return replace(receipt, at=at, symbol=alias.name, facts=facts)


@exact
def _scaled(value: Any, factor: Decimal) -> Any:
    """Scale an amount; text stays text, because stored records hold amounts as text."""
    return text(Decimal(value) * factor) if isinstance(value, str) else value * factor


def _scale_prices(detail: str, exponent: int) -> str | None:
    """Return the text of a message of the price rule with its prices scaled; None if it has another form."""

    def scaled(number: str) -> str:
        return text(scale(Decimal(number), exponent))

    if match := _BAND.fullmatch(detail):
        return f"limit {scaled(match[1])} is more than {match[2]} beyond mark {scaled(match[3])}"
    if match := _SIDE.fullmatch(detail):
        return f"{match[1]} {scaled(match[2])} is not on the {match[3]} side of {scaled(match[4])}"
    return None
