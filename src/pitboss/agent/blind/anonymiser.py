"""`Anonymiser`: shows the model of a blind run other symbol names, other dates and other prices, on any venue.

Engine, account, orders and records always hold true values. Only what goes to the model is anonymised and only what it
decides is translated back, so the same decisions give the same run, blind or not. Prices are multiplied by a power of
two, which changes no digit of a float, keeps integers integers and is undone exactly.

It works on values of any type by the names of their fields, which are the same in the whole project:

- an instant is `at` or ends in `_at`, a UTC day is `day`: both are shifted by the same number of weeks;
- a price is a field that the venue lists in `PRICES`;
- a word is a name or an id: symbols and times in it are replaced; other text is the model's own and is neutralised;
- `detail` is a message of the engine; one of a rule in `PRICE_RULES` quotes prices, so its numbers are removed.

A venue whose observation holds nothing else needs no anonymiser of its own.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, is_dataclass, replace
from decimal import Decimal
from functools import cached_property
from typing import Any, ClassVar

from pydantic import BaseModel

from pitboss.agent.blind.mapping import draw_mapping, scale
from pitboss.agent.blind.market import IdentityMemo, bars_of, market_of, points_of
from pitboss.agent.blind.translator import Translator
from pitboss.core.asof import Market, View
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, iso, parse_instant
from pitboss.core.market import Bars, Points
from pitboss.core.money import text
from pitboss.core.ports import ToolSpec
from pitboss.core.receipt import Receipt
from pitboss.core.state import LastDecision

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_MOST_CACHED = 8_192


@dataclass(frozen=True, eq=True)
class Anonymiser(Translator):
    """Anonymises everything that the model of one run sees, with caches of the results."""

    PRICES: ClassVar[frozenset[str]] = frozenset()
    """The fields that hold a price of the run's symbols, as `field` or `Class.field`, decisions and receipts included."""
    PRICE_RULES: ClassVar[frozenset[str]] = frozenset()
    """The codes of the rules whose messages quote such prices."""

    @classmethod
    def of_request(cls, request: Any, symbols: Sequence[str]) -> "Anonymiser | None":
        """Return the anonymiser of a request, stored with it or drawn from its seed; None if it is not blind."""
        if not request.blind:
            return None
        if request.disguise is not None:
            return cls.read(request.disguise)
        aliases, weeks = draw_mapping(symbols, request.seed, {})
        power = abs(aliases[0].price_power)
        return cls(tuple(replace(alias, price_power=power) for alias in aliases), weeks, request.is_program)

    @cached_property
    def price_power(self) -> int:
        """The power of two by which prices are multiplied; the same for every symbol, and above zero."""
        return self.aliases[0].price_power

    # What the model sees ----------------------------------------------------------------------------------------------

    def observation(self, observation: Any) -> Any:
        """Return a tick as the model sees it; the same object for the same observation."""
        return self._observations(observation)

    @cached_property
    def _observations(self) -> IdentityMemo:
        return IdentityMemo(self.build_observation)

    def build_observation(self, true: Any) -> Any:
        """Build the observation that the model sees; a venue adds what is not a value."""
        return self.anonymise(true)

    @cached_property
    def _markets(self) -> IdentityMemo:
        return IdentityMemo(lambda market: market_of(self, market))

    @cached_property
    def _cache(self) -> dict[int, tuple[Any, Any]]:
        return {}

    def system(self, system: str) -> str:
        """Return the system prompt without names and dates."""
        return self.neutraliser.skill(system)

    def anonymise(self, value: Any, field: str = "", owner: str = "") -> Any:
        """Return a value with the same type in which names, instants and prices are anonymised."""
        if isinstance(value, str):
            return self._text(value, field)
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int | float | Decimal):
            return self._number(value, field, owner)
        if isinstance(value, View):
            return value.transformed(self._markets, value.at + self.shift_ms)
        if isinstance(value, Market):
            return self._markets(value)
        if isinstance(value, Bars | Points):
            alias, series = self.by_symbol.get(value.symbol), bars_of if isinstance(value, Bars) else points_of
            return value if alias is None else series(value, alias, self.shift_ms)  # pyright: ignore[reportArgumentType]
        if isinstance(value, LastDecision):
            return self.last(value)
        if isinstance(value, BaseModel) or (is_dataclass(value) and not isinstance(value, type)):
            return self._object(value)
        if isinstance(value, Mapping):
            return {self.anonymise(key): self.anonymise(item, str(key), owner) for key, item in value.items()}
        if isinstance(value, tuple | list | frozenset | set):
            return type(value)(self.anonymise(item, field, owner) for item in value)
        return value

    def _object(self, value: Any) -> Any:
        """Anonymise the fields of an object; a frozen one is recognised when it comes again."""
        cached = self._cache.get(id(value))
        if cached is not None and cached[0] is value:
            return cached[1]
        result = self._document(value) if isinstance(value, BaseModel) else self._dataclass(value)
        if len(self._cache) >= _MOST_CACHED:
            self._cache.clear()
        self._cache[id(value)] = value, result
        return result

    def _dataclass(self, value: Any) -> Any:
        owner, changes = type(value).__name__, dict[str, Any]()
        for each in fields(value):
            if each.init:
                before = getattr(value, each.name)
                if each.name == "detail" and isinstance(before, str):
                    after = self.stored_detail(before, getattr(value, "code", ""), "")
                else:
                    after = self.anonymise(before, each.name, owner)
                if after is not before:
                    changes[each.name] = after
        return replace(value, **changes) if changes else value

    def _document(self, skill: BaseModel) -> BaseModel:
        """Anonymise a skill: symbols are renamed, and names and dates in its author's texts are removed."""
        changes: dict[str, Any] = {}
        for name, field in type(skill).model_fields.items():
            before = getattr(skill, name)
            if isinstance(before, str):
                # A choice from a list names no symbol; its words are those of the program.
                after = self._author_text(before) if field.annotation in (str, str | None) else before
            elif isinstance(before, tuple | list) and all(isinstance(item, str) for item in before):
                after = type(before)(self.name(item) for item in before)
            else:
                after = self._document(before) if isinstance(before, BaseModel) else before
            if after is not before:
                changes[name] = after
        return skill.model_copy(update=changes) if changes else skill

    def _author_text(self, value: str) -> str:
        return self.name(value) if value in self.both_ways else self.neutraliser.skill(value)

    def _number(self, value: Any, field: str, owner: str) -> Any:
        if field == "at" or field.endswith("_at"):
            return value + self.shift_ms
        if field == "day":
            return value + 7 * self.weeks
        return self._scaled(value) if self.is_price(field, owner) else value

    def is_price(self, field: str, owner: str = "") -> bool:
        """Whether a field holds a price of the run's symbols."""
        return field in self.PRICES or f"{owner}.{field}" in self.PRICES

    def _scaled(self, value: Any) -> Any:
        if isinstance(value, int):
            return value << self.price_power
        return value * 2.0**self.price_power if isinstance(value, float) else scale(value, self.price_power)

    def _text(self, value: str, field: str) -> str:
        if self.is_price(field):  # a receipt holds amounts as text
            return text(scale(Decimal(value), self.price_power))
        return self.own(value) if " " in value.strip() else self.word(value, self.shift_ms)

    def word(self, value: str, shift: int) -> str:
        """Return a name or an id with its symbols mapped and its times shifted."""
        return _TIME.sub(lambda match: _shifted(match[0], shift), self.swap(value))

    # Decisions --------------------------------------------------------------------------------------------------------

    def proposal(self, true: Any) -> Any:
        """Return a true proposal in the model's terms."""
        return self._translate(true, self.shift_ms, self.price_power)

    def true_proposal(self, anonymised: Any) -> Any:
        """Return the model's proposal in true terms; the inverse of `proposal`."""
        return self._translate(anonymised, -self.shift_ms, -self.price_power)

    def _translate(self, proposal: Any, shift: int, power: int) -> Any:
        if not isinstance(proposal, dict):
            return proposal
        return {
            key: scale(value, power)
            if key in self.PRICES
            else self.word(value, shift)
            if isinstance(value, str) and " " not in value
            else value
            for key, value in proposal.items()
        }

    def stored_detail(self, detail: str, code: str, symbol: str) -> str:
        """Return a message of a rule, anonymised; its numbers are removed if they may be prices."""
        del symbol
        if code in self.PRICE_RULES or "failed:" in detail:
            return self.neutraliser.news(detail)
        return self.neutraliser.own(self.word(detail, self.shift_ms)) if detail else detail

    def receipt(self, receipt: Receipt) -> Receipt:
        """Return a receipt, anonymised."""
        return self._dataclass(receipt)

    # Tools ------------------------------------------------------------------------------------------------------------

    def spec(self, spec: ToolSpec) -> ToolSpec:
        """Return a tool's specification in which no symbol of the run is named, its own name included."""
        entry = self._specs.get(spec.name)
        if entry is None or entry[0] is not spec:
            shown = ToolSpec(self.tool_name(spec.name), self._in_spec(spec.description), self._in_schema(spec.schema))
            entry = self._specs[spec.name] = spec, shown
        return entry[1]

    @cached_property
    def _specs(self) -> dict[str, tuple[ToolSpec, ToolSpec]]:
        return {}

    def tool_name(self, name: str) -> str:
        """Return the name of a tool without symbols: `btc_candles` is `asset_candles`."""
        symbols = {symbol.casefold() for symbol in self.names}
        return "_".join("asset" if part in symbols else part for part in name.split("_"))

    def _in_spec(self, description: str) -> str:
        words = re.sub(r"\b[a-z0-9]+(?:_[a-z0-9]+)+\b", lambda match: self.tool_name(match[0]), description)
        return self.neutraliser.skill(words)

    def _in_schema(self, value: Any) -> Any:
        if isinstance(value, Mapping):
            return {
                key: self._in_spec(item) if key == "description" and isinstance(item, str) else self._in_schema(item)
                for key, item in value.items()
            }
        return [self._in_schema(item) for item in value] if isinstance(value, list | tuple) else value


def _shifted(time: str, shift: int) -> str:
    """Return an ISO time shifted; unchanged if it is none, or if it would leave the calendar."""
    with suppress(UserError, ValueError, OverflowError):
        moved: Instant = parse_instant(time) + shift
        return iso(moved)
    return time
