"""The pure world of the coin venue: cash, one open bet, and what a bar does to them."""

from dataclasses import replace
from decimal import Decimal

from pitboss.core.instant import Instant
from pitboss.core.market import Bar
from pitboss.core.noun import noun
from pitboss.core.receipt import Receipt
from pitboss_coin.intents import Bet


@noun
class CoinWorld:
    """The account."""

    cash: Decimal
    bet: Bet | None = None
    bets: int = 0


def place(world: CoinWorld, bet: Bet, at: Instant) -> tuple[CoinWorld, tuple[Receipt, ...]]:
    """Take the stake."""
    after = CoinWorld(world.cash - bet.stake, bet, world.bets + 1)
    facts = {"side": bet.side, "stake": str(bet.stake), "reason": "bet"}
    return after, (Receipt("filled", at, "coin", f"b{after.bets}", facts),)


def flip(world: CoinWorld, bar: Bar) -> tuple[CoinWorld, tuple[Receipt, ...]]:
    """Settle the open bet, if there is one: heads if the bar closes above its open."""
    if world.bet is None:
        return world, ()
    won = (world.bet.side == "heads") == (bar.close > bar.open)
    paid = 2 * world.bet.stake if won else Decimal(0)
    receipt = Receipt("settled", bar.closed_at, "coin", f"b{world.bets}", {"won": won, "paid": str(paid)})
    return replace(world, cash=world.cash + paid, bet=None), (receipt,)


def equity(world: CoinWorld) -> Decimal:
    """Cash, and the stake of an open bet: a fair coin is worth its stake."""
    return world.cash + (world.bet.stake if world.bet else Decimal(0))
