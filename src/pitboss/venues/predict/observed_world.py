"""The paper world brought up to the protocol's own markets, as its indexer reports them.

Markets, settings and vault are the protocol's; the account and its contracts are on paper. The paper contracts are
added to the vault's liability, so a quote is the protocol's for a vault that had sold them. Pure.
"""

from collections.abc import Iterable
from dataclasses import replace

from pitboss.core.instant import Instant
from pitboss.core.receipt import Receipt
from pitboss.venues.predict.state import MarketTerms, Oracle, PredictWorld, Vault, usd
from pitboss.venues.predict.trade import WorldStep
from pitboss.venues.predict.world import sweep


def observe_markets(
    world: PredictWorld,
    oracles: Iterable[Oracle],
    terms: MarketTerms,
    vault: Vault,
    at: Instant,
    pays_out: bool = True,
) -> WorldStep:
    """Return the world with these markets and the receipts of those that have settled since.

    A market that is missing stays while it is unsettled or a position is open in it. `pays_out` is True for an account on
    paper: its contracts are added to the vault, and paid out when their market settles. On the chain the vault has them
    already, and they are redeemed.
    """
    open_names = {
        position.contract.market_id for account in world.accounts.values() for position in account.positions.values()
    }
    markets = {
        name: oracle for name, oracle in world.oracles.items() if oracle.settlement is None or name in open_names
    }
    receipts: list[Receipt] = []
    for oracle in oracles:
        before = world.oracles.get(oracle.id)
        if before is not None and (before.settlement is not None or _is_older(oracle, before)):
            continue
        if oracle.settlement is not None:
            if before is None and oracle.id not in open_names:
                continue  # settled before this account ever saw it
            receipts.append(Receipt("settled", at, oracle.id, "", {"price": usd(oracle.settlement)}))
            oracle = replace(before or oracle, active=False, settlement=oracle.settlement, settled_at=oracle.settled_at)
        markets[oracle.id] = oracle
    observed = replace(
        world,
        oracles=markets,
        terms=replace(terms, halted=world.terms.halted),
        vault=_with_paper_contracts(vault, world.vault) if pays_out else vault,
    )
    if not pays_out:
        return WorldStep(observed, tuple(receipts))
    paid = sweep(observed, at)
    return WorldStep(paid.world, (*receipts, *paid.receipts))


def _is_older(oracle: Oracle, before: Oracle) -> bool:
    """Whether a report about an unsettled market is older than the stored one: a replica may lag behind another."""
    return oracle.settlement is None and (oracle.priced_at or 0) < (before.priced_at or 0)


def _with_paper_contracts(vault: Vault, paper: Vault) -> Vault:
    books = paper.books.values()
    return Vault(
        vault.balance,
        paper.books,
        vault.total_mtm + sum(book.mtm for book in books),
        vault.total_max_payout + sum(book.max_payout for book in books),
    )
