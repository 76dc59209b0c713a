"""Blind runs of the predict venue: which of its values are prices, and how asks shown to the model are recorded.

Strikes, spots and the grid are multiplied by one power of two, so every contract has the same price as in the true
world, to the last digit. Probabilities, money and numbers of contracts are unchanged.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from pitboss.agent.blind.anonymiser import Anonymiser
from pitboss.core.instant import Instant
from pitboss.venues.predict.desk import Fill
from pitboss.venues.predict.observation import PredictObservation, Shown, Tape
from pitboss.venues.predict.state import Contract


@dataclass(frozen=True, eq=True)
class PredictAnonymiser(Anonymiser):
    """The anonymiser of a run of the predict venue."""

    PRICES: ClassVar[frozenset[str]] = frozenset(
        {"spot", "forward", "settlement", "min_strike", "Grid.tick", "strike", "lowest", "highest", "lower", "higher"}
    )
    PRICE_RULES: ClassVar[frozenset[str]] = frozenset({"B2_MARKET", "B5_NOT_QUOTED", "B15_VENUE"})

    def build_observation(self, true: PredictObservation) -> PredictObservation:
        """Build the observation that the model sees; what it shows is recorded in the true one."""
        return replace(
            self.anonymise(true),
            tape=self._tape(true.tape),
            shown=TranslatedShown(true.shown, self),
            price_scale=1 << self.price_power,
        )

    def _tape(self, true: Tape) -> Tape:
        def tape(market_id: str, at: Instant) -> Sequence[Fill]:
            return self.anonymise(tuple(true(self.word(market_id, -self.shift_ms), at - self.shift_ms)))

        return tape

    def true_contract(self, contract: Contract) -> Contract:
        """Return the true contract of one that the model was shown."""
        lower, higher = (
            None if strike is None else strike >> self.price_power for strike in (contract.lower, contract.higher)
        )
        return Contract(self.word(contract.market_id, -self.shift_ms), lower, higher)


class TranslatedShown(Shown):
    """Records the asks that a blind model was shown under the true contracts, which the rules compare."""

    __slots__ = ("_anonymiser", "_true")

    def __init__(self, true: Shown, anonymiser: PredictAnonymiser) -> None:
        Shown.__init__(self)
        self._true, self._anonymiser = true, anonymiser

    def note(self, contract: Contract, ask: int) -> None:
        """Record an ask shown to the model."""
        self._true.note(self._anonymiser.true_contract(contract), ask)
