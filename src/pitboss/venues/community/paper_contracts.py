"""Contracts in a scenario: what each function answers, as written down, without an EVM. Pure.

An answer holds from a number of transactions on the contract on, so that a scenario can show a balance that does not change
when it should. What is not written down returns nothing.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.core.noun import noun


@noun
class PaperAnswer:
    """The answer of a function once `after` transactions of the contract are mined: returned values, or a revert."""

    after: int = 0
    values: Sequence[Any] = ()
    revert: str | None = None
    gas: int = 50_000


@noun
class PaperContract:
    """The answers of a contract by full signature, each list sorted by `after`."""

    answers: Mapping[str, tuple[PaperAnswer, ...]]

    def answer(self, signature: str, transactions: int) -> PaperAnswer:
        """The answer of a function after so many transactions of the contract."""
        started = [answer for answer in self.answers.get(signature, ()) if answer.after <= transactions]
        return started[-1] if started else PaperAnswer()
