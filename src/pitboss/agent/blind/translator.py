"""`Translator`: the mapping between true and anonymised terms of one blind run, for names, dates, texts and decisions.

It knows no venue. A venue derives from it, or from `agent.blind.anonymiser.Anonymiser`, where its decisions or messages
hold values that have to be translated in another way.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

from pitboss.agent.blind.mapping import Alias
from pitboss.agent.blind.neutral_text import TextNeutraliser
from pitboss.agent.decider import Judge
from pitboss.core import codec
from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.noun import noun
from pitboss.core.past import Past, PastDecision
from pitboss.core.receipt import Receipt
from pitboss.core.state import LastDecision
from pitboss.core.verdict import Margin, Verdict, margin_fields

WEEK_MS = 7 * DAY_MS
REASONS = ("reason", "reasoning")
"""The fields of a proposal in which its author explains it."""


@dataclass(frozen=True, eq=True)
class Translator(ABC):
    """The mapping of one run. Equality compares the mapping only; the caches are not part of it."""

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
    def both_ways(self) -> dict[str, str]:
        """The mapping in both directions: a true symbol written by the model becomes a name that cannot be traded."""
        return {**self.names, **self.true_symbols}

    def name(self, symbol: str) -> str:
        """Map a true symbol to its name or a name to its true symbol; return any other text unchanged."""
        return self.both_ways.get(symbol, symbol)

    @classmethod
    def read(cls, plain: Mapping[str, Any]) -> Self:
        """Restore a translator from the form stored with a run (`plain`)."""
        aliases = tuple(codec.parse(Alias, alias) for alias in plain["aliases"])
        return cls(aliases, int(plain["weeks"]), bool(plain.get("strangers")))

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
        return _tokens(self.both_ways)

    def swap(self, text: str) -> str:
        """Return a text with every symbol and every name in it mapped."""
        return self._names_pattern.sub(lambda match: self.name(match[0]), text)

    # Decisions --------------------------------------------------------------------------------------------------------

    @abstractmethod
    def proposal(self, true: Any) -> Any:
        """Return a true proposal in the model's terms."""

    @abstractmethod
    def true_proposal(self, anonymised: Any) -> Any:
        """Return the model's proposal in true terms; the inverse of `proposal`."""

    def shown_proposal(self, true: Any) -> Any:
        """Return a proposal in the terms in which the model made it; names of coins in its texts are replaced."""
        proposal = self.proposal(true)
        if not isinstance(proposal, dict):
            return self.own(proposal) if isinstance(proposal, str) else proposal
        own = self.neutraliser.own
        neutral = {key: own(value) if isinstance(value, str) else value for key, value in proposal.items()}
        reasons = {key: self.own(proposal[key]) for key in REASONS if isinstance(proposal.get(key), str)}
        return {**neutral, **reasons}

    def decision_texts(self, proposal: str, detail: str, code: str) -> tuple[str, str]:
        """Return a recorded proposal and its verdict's detail, both anonymised."""
        if not proposal:
            return proposal, self.stored_detail(detail, code, "")
        true = codec.loads_exact(proposal)
        detail = self.stored_detail(detail, code, symbol_of(true))
        return codec.dumps(codec.number_fragments(self.shown_proposal(true))).decode(), detail

    def last(self, last: LastDecision) -> LastDecision:
        """Return the last decision in the terms in which the model made it."""
        proposal, detail = self.decision_texts(last.proposal, last.detail, last.code)
        return replace(last, tick_at=last.tick_at + self.shift_ms, proposal=proposal, detail=detail)

    # Verdicts ---------------------------------------------------------------------------------------------------------

    def judge(self, inner: Judge) -> Judge:
        """Wrap the engine's judge so that it takes proposals and returns verdicts in anonymised terms."""

        def judge(intent: Any) -> Verdict:
            proposal = self.true_proposal(intent)
            return self.verdict(inner(proposal), symbol_of(proposal))

        return judge

    def verdict(self, verdict: Verdict, symbol: str) -> Verdict:
        """Return a verdict about a true symbol in which only money and percentages are true values."""
        return replace(
            verdict,
            detail=self.stored_detail(verdict.detail, verdict.code or "", symbol),
            margins=tuple(self.margin(margin, symbol) for margin in verdict.margins),
        )

    def margin(self, margin: Margin, symbol: str) -> Margin:
        """Return a margin, anonymised; by default its numbers are money, counts and times."""
        del symbol
        limit, used = (self.swap(value) if isinstance(value, str) else value for value in (margin.limit, margin.used))
        return replace(margin, limit=limit, used=used)

    def stored_margin(self, margin: Mapping[str, Any], symbol: str) -> dict[str, Any]:
        """Return a margin of a record, anonymised."""
        del symbol
        return {key: self.swap(value) if isinstance(value, str) else value for key, value in margin.items()}

    @abstractmethod
    def stored_detail(self, detail: str, code: str, symbol: str) -> str:
        """Return a message of a rule of which only the text is left, anonymised."""

    # The past ---------------------------------------------------------------------------------------------------------

    @abstractmethod
    def receipt(self, receipt: Receipt) -> Receipt:
        """Return a receipt, anonymised."""

    def past(self, past: Past) -> Past:
        """Return the run's own past with queries and results in anonymised terms."""
        return AnonymisedPast(past, self)


@noun
class AnonymisedPast:
    """`core.past.Past` in anonymised terms, for the tools of the run's own agent."""

    inner: Past
    translator: Translator

    def decisions(self, before: Instant, count: int | None = None) -> Sequence[PastDecision]:
        """Return the newest `count` decisions made before `before`, newest first; all there are without a count."""
        return [self._decision(past) for past in self.inner.decisions(before - self.translator.shift_ms, count)]

    def _decision(self, past: PastDecision) -> PastDecision:
        proposal, detail = self.translator.decision_texts(past.proposal, past.detail, past.code)
        own_text = self.translator.own(past.text)
        return replace(past, at=past.at + self.translator.shift_ms, proposal=proposal, detail=detail, text=own_text)

    def receipts(self, before: Instant, count: int | None = None) -> Sequence[Receipt]:
        """Return the newest `count` receipts from before `before`, newest first; all without a count."""
        return list(map(self.translator.receipt, self.inner.receipts(before - self.translator.shift_ms, count)))

    def snapshot(self, at: Instant, before: Instant) -> dict[str, Any] | None:
        """Return the recorded proposals, verdicts and receipts of a tick.

        Positions, orders and the prompt are left out.
        """
        shift = self.translator.shift_ms
        body = self.inner.snapshot(at - shift, before - shift)
        if body is None:
            return None
        verdicts = [self._verdict(*pair) for pair in zip(body["proposals"], body["verdicts"], strict=True)]
        return {
            **{
                name: body[name]
                for name in ("seq", "steps", "text", "flags", "finish_reason", "extra", "prompt_sha256", "digest")
            },
            "tick_at": at,
            "proposals": list(map(self.translator.shown_proposal, body["proposals"])),
            "verdicts": verdicts,
            "receipts": [codec.plain(self.translator.receipt(Receipt(**row))) for row in body["receipts"]],
            "before": {**body["before"], "positions": {}, "orders": []},
            "after": {**body["after"], "positions": {}, "orders": []},
        }

    def _verdict(self, proposal: Any, verdict: Mapping[str, Any]) -> dict[str, Any]:
        symbol = symbol_of(proposal)
        margins = [self.translator.stored_margin(margin, symbol) for margin in margin_fields(verdict["margins"])]
        detail = self.translator.stored_detail(verdict["detail"], verdict["code"] or "", symbol)
        return {**verdict, "detail": detail, "margins": margins}

    def commands(self, before: Instant, count: int) -> Sequence[str]:
        """Return the operator's commands to the run, neutralised."""
        commands = self.inner.commands(before - self.translator.shift_ms, count)
        return [self.translator.neutraliser.news(command) for command in commands]


def symbol_of(proposal: Any) -> str:
    """Return the symbol of a proposal of any shape; empty if it has none."""
    symbol = proposal.get("symbol") if isinstance(proposal, dict) else None
    return symbol if isinstance(symbol, str) else ""


def _tokens(names: Iterable[str], flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that matches these names as whole words, the longest first."""
    longest_first = sorted(map(re.escape, names), key=len, reverse=True)
    return re.compile(rf"(?<![A-Za-z0-9])(?:{'|'.join(longest_first) or '(?!)'})(?![A-Za-z0-9])", flags)
