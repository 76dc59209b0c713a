"""Translates names, texts, proposals and verdicts between true and anonymised terms.

Proposals are translated in both directions without losing a digit. Of true values, a translated verdict holds only
money, percentages and times of day. Market and account are in `venues.perp.blind.observation`;
`venues.perp.blind.anonymiser` combines both.
"""

import re
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any

from pitboss.agent.blind.mapping import Alias, scale
from pitboss.agent.blind.neutral_text import Neutral
from pitboss.agent.decider import Judge
from pitboss.core import codec
from pitboss.core.instant import DAY_MS
from pitboss.core.money import text
from pitboss.core.verdict import Margin, Verdict

WEEK_MS = 7 * DAY_MS
PRICES = ("limit_price", "stop_loss", "take_profit")
_NUMBER = r"(-?\d+(?:\.\d+)?)"
_BAND = re.compile(rf"limit {_NUMBER} is more than (.+ %) beyond mark {_NUMBER}")
_SIDE = re.compile(rf"(stop_loss|take_profit) {_NUMBER} is not on the (losing|winning) side of {_NUMBER}")
_STRANGE = ("R13_VENUE",)


@dataclass(frozen=True, eq=True)
class Cover:
    """The mapping between true and anonymised terms of one run.

    Equality compares the mapping only; the caches are not part of it.
    """

    aliases: tuple[Alias, ...]
    weeks: int
    strangers: bool = False
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
    def _turned(self) -> dict[str, str]:
        """The mapping in both directions: a true symbol written by the model becomes a name that cannot be traded."""
        return {**self.names, **{alias.name: alias.symbol for alias in self.aliases}}

    def name(self, symbol: str) -> str:
        """Map a true symbol to its name or a name to its true symbol; return any other text unchanged."""
        return self._turned.get(symbol, symbol)

    def plain(self) -> dict[str, Any]:
        """Return the form that is stored with a run."""
        aliases = [codec.plain(alias) for alias in self.aliases]
        return {"weeks": self.weeks, "aliases": aliases, "strangers": self.strangers}

    # Texts ------------------------------------------------------------------------------------------------------------

    @cached_property
    def words(self) -> Neutral:
        """The translation of texts into neutral words."""
        return Neutral(self.names)

    def text(self, words: str) -> str:
        """Return text from outside the run without names, dates and amounts."""
        return self.words.news(words)

    def own(self, words: str) -> str:
        """Return a text of the run for the model: its own words, or fully neutral ones if `strangers` is set."""
        return self.words.news(words) if self.strangers else self.words.own(words)

    @cached_property
    def _shown(self) -> re.Pattern[str]:
        names = sorted((alias.name for alias in self.aliases), key=len, reverse=True)
        return re.compile(
            rf"(?<![A-Za-z0-9])(?:{'|'.join(map(re.escape, names)) or '(?!)'})(?![A-Za-z0-9])", re.IGNORECASE
        )

    def reveal(self, words: str) -> str:
        """Return the model's text for a reader: the true symbol before every name, as in `BTC [ASSET-K]`."""
        true = {alias.name.casefold(): alias.symbol for alias in self.aliases}
        return self._shown.sub(lambda found: f"{true[found[0].casefold()]} [{found[0]}]", words)

    @cached_property
    def _symbols(self) -> re.Pattern[str]:
        known = sorted(map(re.escape, self._turned), key=len, reverse=True)
        return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(known) or '(?!)'})(?![A-Za-z0-9])")

    @cached_property
    def _listing(self) -> re.Pattern[str]:
        one = "|".join(re.escape(alias.name) for alias in self.aliases) or "(?!)"
        return re.compile(rf"(?<=\()(?:{one})(?:, (?:{one}))+(?=\))")

    # Proposals --------------------------------------------------------------------------------------------------------

    def proposal(self, true: Any) -> Any:
        """Return a true proposal in the model's terms."""
        symbol = symbol_of(true)
        alias = self.by_symbol.get(symbol)
        return self._moved(true, symbol, 0 if alias is None else alias.price_power)

    def true_proposal(self, seen: Any) -> Any:
        """Return the model's proposal in true terms; the inverse of `proposal` for any value.

        A true symbol in the place of a name becomes a name, which the engine refuses like any other unknown symbol.
        """
        symbol = symbol_of(seen)
        alias = self.by_symbol.get(self.name(symbol)) if symbol not in self.by_symbol else None
        return self._moved(seen, symbol, 0 if alias is None else -alias.price_power)

    def _moved(self, proposal: Any, symbol: str, exponent: int) -> Any:
        if symbol not in self._turned:
            return proposal
        prices = {key: scale(proposal[key], exponent) for key in PRICES if key in proposal} if exponent else {}
        return {**proposal, "symbol": self._turned[symbol], **prices}

    # Verdicts ---------------------------------------------------------------------------------------------------------

    def judge(self, real: Judge) -> Judge:
        """Wrap the engine's judge so that it takes proposals and returns verdicts in anonymised terms."""

        def judged(intent: Any) -> Verdict:
            true = self.true_proposal(intent)
            return self.verdict(real(true), symbol_of(true))

        return judged

    def verdict(self, verdict: Verdict, symbol: str) -> Verdict:
        """Return a verdict about a true symbol in which only money and percentages are true values."""
        return replace(
            verdict,
            detail=self.detail(verdict.detail, verdict.code or "", symbol),
            margins=tuple(self.margin(margin, symbol) for margin in verdict.margins),
        )

    def margin(self, margin: Margin, symbol: str) -> Margin:
        """Return a margin with its prices scaled; all other units are money, counts and times."""
        alias = self.by_symbol.get(symbol)
        if margin.unit != "price" or alias is None:
            return margin
        limit, used, left = (scale(value, alias.price_power) for value in (margin.limit, margin.used, margin.left))
        return replace(margin, limit=limit, used=used, left=left)

    def detail(self, detail: str, code: str, symbol: str) -> str:
        """Return a rule's message in anonymised terms."""
        if not detail:
            return detail
        alias = self.by_symbol.get(symbol)
        if alias is not None and code == "R11_PRICE_BAND":
            told = _band(detail, alias.price_power)
            return self.words.news(detail) if told is None else told
        if code in _STRANGE or "failed:" in detail or "worked out:" in detail:
            return self.words.news(detail)
        turned = self._symbols.sub(lambda found: self._turned[found[0]], detail)
        ordered = self._listing.sub(lambda found: ", ".join(sorted(found[0].split(", "))), turned)
        return self.words.own(ordered)


def symbol_of(proposal: Any) -> str:
    """Return the symbol of a proposal of any shape; empty if it has none."""
    symbol = proposal.get("symbol") if isinstance(proposal, dict) else None
    return symbol if isinstance(symbol, str) else ""


def _band(detail: str, exponent: int) -> str | None:
    """Return the message of the price rule with its prices scaled; None if the message has another form."""

    def scaled(number: str) -> str:
        return text(scale(Decimal(number), exponent))

    if found := _BAND.fullmatch(detail):
        return f"limit {scaled(found[1])} is more than {found[2]} beyond mark {scaled(found[3])}"
    if found := _SIDE.fullmatch(detail):
        return f"{found[1]} {scaled(found[2])} is not on the {found[3]} side of {scaled(found[4])}"
    return None
