"""Translates names, texts, proposals and verdicts between true and anonymised terms.

Proposals are translated in both directions without losing a digit. Of true values, a translated verdict holds only
money, percentages and times of day. Market and account are in `venues.perp.blind.observation`;
`venues.perp.blind.anonymiser` combines both.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

from pitboss.agent.blind.mapping import Alias, scale
from pitboss.agent.blind.neutral_text import TextNeutraliser
from pitboss.agent.decider import Judge
from pitboss.core import codec
from pitboss.core.instant import DAY_MS
from pitboss.core.money import text
from pitboss.core.rule_message import Price, RuleMessage, Symbols
from pitboss.core.verdict import Margin, Verdict

WEEK_MS = 7 * DAY_MS
PRICES = ("limit_price", "stop_loss", "take_profit")
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_BAND = re.compile(rf"limit {_NUMBER} is more than (.+ %) beyond mark {_NUMBER}")
_SIDE = re.compile(rf"(stop_loss|take_profit) {_NUMBER} is not on the (losing|winning) side of {_NUMBER}")


@dataclass(frozen=True, eq=True)
class Translator:
    """The mapping between true and anonymised terms of one run.

    Equality compares the mapping only; the caches are not part of it.
    """

    aliases: tuple[Alias, ...]
    weeks: int
    author_saw_market: bool = False
    """Whether the run's texts may come from an author who saw the true market: a program or a decisions file."""

    # The mapping ------------------------------------------------------------------------------------------------------

    @property
    def shift_ms(self) -> int:
        """The milliseconds added to every instant."""
        return self.weeks * WEEK_MS

    @cached_property
    def by_symbol(self) -> dict[str, Alias]:
        """The aliases by true symbol."""
        return {alias.symbol: alias for alias in self.aliases}

    @cached_property
    def names(self) -> dict[str, str]:
        """The names that the model sees, by true symbol."""
        return {alias.symbol: alias.name for alias in self.aliases}

    @cached_property
    def true_symbols(self) -> dict[str, str]:
        """The true symbols, by the name that the model sees."""
        return {alias.name: alias.symbol for alias in self.aliases}

    @cached_property
    def _both_ways(self) -> dict[str, str]:
        """The mapping in both directions: a true symbol written by the model becomes a name that cannot be traded."""
        return {**self.names, **self.true_symbols}

    def name(self, symbol: str) -> str:
        """Map a true symbol to its name or a name to its true symbol; return any other text unchanged."""
        return self._both_ways.get(symbol, symbol)

    def plain(self) -> dict[str, Any]:
        """Return the form that is stored with a run."""
        aliases = [codec.plain(alias) for alias in self.aliases]
        return {"weeks": self.weeks, "aliases": aliases, "strangers": self.author_saw_market}

    # Texts ------------------------------------------------------------------------------------------------------------

    @cached_property
    def neutraliser(self) -> TextNeutraliser:
        """Replaces names, dates and amounts in texts."""
        return TextNeutraliser(self.names)

    def own(self, text: str) -> str:
        """Return a text of the run's author for the model: without coin names, or as news if the author saw the market."""
        return self.neutraliser.news(text) if self.author_saw_market else self.neutraliser.own(text)

    def reveal(self, text: str) -> str:
        """Return the model's text for a reader: the true symbol before every name, as in `BTC [ASSET-K]`."""
        symbols = {name.casefold(): symbol for name, symbol in self.true_symbols.items()}
        return self._aliases_pattern.sub(lambda match: f"{symbols[match[0].casefold()]} [{match[0]}]", text)

    @cached_property
    def _aliases_pattern(self) -> re.Pattern[str]:
        return _tokens(self.true_symbols, re.IGNORECASE)

    @cached_property
    def _names_pattern(self) -> re.Pattern[str]:
        return _tokens(self._both_ways)

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
        if symbol not in self._both_ways:
            return proposal
        prices = {key: scale(proposal[key], exponent) for key in PRICES if key in proposal} if exponent else {}
        return {**proposal, "symbol": self._both_ways[symbol], **prices}

    # Verdicts ---------------------------------------------------------------------------------------------------------

    def judge(self, inner: Judge) -> Judge:
        """Wrap the engine's judge so that it takes proposals and returns verdicts in anonymised terms."""

        def judge(intent: Any) -> Verdict:
            proposal = self.true_proposal(intent)
            return self.verdict(inner(proposal), symbol_of(proposal))

        return judge

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
        swapped = self._swap(before) + self.name(quoted) + self._swap(after)
        ordered = self._alias_list.sub(lambda match: ", ".join(sorted(match[0].split(", "))), swapped)
        return self.neutraliser.own(ordered)

    def _swap(self, detail: str) -> str:
        return self._names_pattern.sub(lambda match: self.name(match[0]), detail)


def symbol_of(proposal: Any) -> str:
    """Return the symbol of a proposal of any shape; empty if it has none."""
    symbol = proposal.get("symbol") if isinstance(proposal, dict) else None
    return symbol if isinstance(symbol, str) else ""


def _tokens(names: Iterable[str], flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that matches these names as whole words, the longest first."""
    longest_first = sorted(map(re.escape, names), key=len, reverse=True)
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(longest_first) or '(?!)'})(?![A-Za-z0-9])", flags)


def _scale_prices(detail: str, exponent: int) -> str | None:
    """Return the text of a message of the price rule with its prices scaled; None if it has another form."""

    def scaled(number: str) -> str:
        return text(scale(Decimal(number), exponent))

    if match := _BAND.fullmatch(detail):
        return f"limit {scaled(match[1])} is more than {match[2]} beyond mark {scaled(match[3])}"
    if match := _SIDE.fullmatch(detail):
        return f"{match[1]} {scaled(match[2])} is not on the {match[3]} side of {scaled(match[4])}"
    return None
