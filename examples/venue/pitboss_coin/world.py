"""The pure world of the coin venue: cash, one open bet, and what a bar does to them."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any, ClassVar

from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss.core.rulebook import Execution, Rule
from pitboss_coin.intents import Bet, read
from pitboss_coin.rules import RULES


@noun
class CoinWorld:
    """The account."""

    cash: Decimal
    bet: Bet | None = None
    bets: int = 0


def place(world: CoinWorld, bet: Bet, at: Instant) -> tuple[CoinWorld, tuple[Receipt, ...]]:
    """Take the stake."""
    order_id = f"b{world.bets + 1}"
    after = CoinWorld(world.cash - bet.stake, bet, world.bets + 1)
    facts = {"side": bet.side, "stake": str(bet.stake), "reason": "bet"}
    return after, (Receipt("filled", at, "coin", order_id, facts),)


def flip(world: CoinWorld, heads: bool, at: Instant) -> tuple[CoinWorld, tuple[Receipt, ...]]:
    """Settle the open bet, if there is one."""
    if world.bet is None:
        return world, ()
    won = (world.bet.side == "heads") == heads
    paid = 2 * world.bet.stake if won else Decimal(0)
    receipt = Receipt("settled", at, "coin", f"b{world.bets}", {"won": won, "paid": str(paid)})
    return replace(world, cash=world.cash + paid, bet=None), (receipt,)


def equity(world: CoinWorld) -> Decimal:
    """Cash, and the stake of an open bet: a fair coin is worth its stake."""
    return world.cash + (world.bet.stake if world.bet else Decimal(0))


@noun
class CoinCase:
    """A decision as the rules see it."""

    world: CoinWorld
    max_stake: Decimal
    bet: Bet | None
    problems: Sequence[str]


@noun
class CoinRuleBook:
    """C1 and C2 over one account."""

    world: CoinWorld
    max_stake: Decimal

    shape_code: ClassVar[str] = "C1_SHAPE"
    venue_code: ClassVar[str] = "C2_STAKE"

    def read(self, intent: Any) -> tuple[Bet | None, list[str]]:
        return read(intent)

    def is_hold(self, proposal: Bet) -> bool:
        return proposal.action == "hold"

    def rules_for(self, proposal: Bet | None) -> Sequence[Rule]:
        del proposal
        return RULES

    def case(self, proposal: Bet | None, problems: Sequence[str]) -> CoinCase:
        return CoinCase(self.world, self.max_stake, proposal, problems)

    def execution(self, case: CoinCase) -> Execution:
        return Execution(case.bet, opens=True)
