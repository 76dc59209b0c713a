"""Messages of rules that carry the values they were formatted from.

A message is stored, compared and hashed as its text alone; the values exist in memory only. Code that shows a message in
other terms, such as a blind run, formats `template` again from changed values and does not parse the text.
"""

from collections.abc import Mapping
from decimal import Decimal

from pitboss.core.money import text
from pitboss.core.noun import noun


class RuleMessage(str):
    """The text of a rule's objection with its format string and values; create it with `rule_message`."""

    __slots__ = ("template", "values")
    template: str
    values: Mapping[str, object]

    def __new__(cls, content: str, template: str = "", values: Mapping[str, object] | None = None) -> "RuleMessage":
        message = super().__new__(cls, content)
        message.template, message.values = template, values or {}
        return message


def rule_message(template: str, **values: object) -> RuleMessage:
    """Format a rule's objection. Prices and symbols are passed as `Price` and `Symbols`, text from a model as `str`."""
    return RuleMessage(template.format_map(values), template, values)


@noun
class ExactNumber:
    """A number that a message shows with all its digits."""

    value: Decimal

    def __str__(self) -> str:
        return text(self.value)


@noun
class Price(ExactNumber):
    """A price of the symbol that the proposal names."""


@noun
class Symbols:
    """One or more symbols, as the venue names them."""

    names: tuple[str, ...]

    def __str__(self) -> str:
        return ", ".join(self.names)
