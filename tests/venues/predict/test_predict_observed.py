"""The paper account on the protocol's own markets: settlements, replicas that lag, halts, and what a manager redeemed."""

import asyncio
from dataclasses import replace

from pitboss.core.instant import HOUR_MS
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.data.wire import Health, IndexedFill, ManagerPosition
from pitboss.venues.predict.observed_world import observe_markets
from pitboss.venues.predict.state import ACCOUNT, QUOTE, MarketTerms, Vault
from pitboss.venues.predict.sui_source import ACCOUNT_MS, SuiSource, chain_desk
from pitboss.venues.predict.svi import FLOAT
from pitboss.venues.predict.trade import mint, preview
from venues.predict.scene import HOURLY, NOW, SPOT, venue, world_after, yes

END = NOW + HOUR_MS
CHAIN_VAULT = Vault(500_000 * QUOTE, {}, 40_000 * QUOTE, 90_000 * QUOTE)


def test_a_market_settles_at_the_protocols_price_and_pays_the_paper_position() -> None:
    world = world_after(mint(venue(), ACCOUNT, yes(), 3 * QUOTE, NOW))
    oracle = world.oracles[HOURLY]
    settled = replace(oracle, active=False, settlement=SPOT, settled_at=END)
    step = observe_markets(world, [settled], MarketTerms(), CHAIN_VAULT, END + 2_000)
    kinds = [(receipt.kind, receipt.facts.get("payout")) for receipt in step.receipts]
    assert kinds == [("settled", None), ("settled", 3)]
    assert step.receipts[0].facts["price"] == SPOT // 10**9
    assert step.world.accounts[ACCOUNT].positions == {}
    assert HOURLY not in step.world.oracles
    assert observe_markets(step.world, [settled], MarketTerms(), CHAIN_VAULT, END + 3_000).receipts == ()


def test_quotes_are_the_protocols_for_its_vault_with_the_paper_contracts_in_it() -> None:
    world = venue()
    oracle = world.oracles[HOURLY]
    idle = observe_markets(world, [oracle], MarketTerms(), Vault(500_000 * QUOTE), NOW).world
    busy = observe_markets(world, [oracle], MarketTerms(), CHAIN_VAULT, NOW).world
    wide = observe_markets(world, [oracle], MarketTerms(base_spread=40_000_000), CHAIN_VAULT, NOW).world
    asks = [preview(one, yes(), NOW).ask for one in (idle, busy, wide)]  # type: ignore[union-attr]
    assert asks[0] < asks[1] < asks[2]
    traded = world_after(mint(busy, ACCOUNT, yes(), 100 * QUOTE, NOW))
    again = observe_markets(traded, [oracle], MarketTerms(), CHAIN_VAULT, NOW + 1).world
    assert again.vault.total_mtm == CHAIN_VAULT.total_mtm + sum(book.mtm for book in traded.vault.books.values())


def test_an_older_report_of_a_market_changes_nothing_and_a_halt_outlives_every_report() -> None:
    world = venue()
    oracle = world.oracles[HOURLY]
    older = replace(oracle, spot=1, priced_at=NOW - 5_000)
    halted = replace(world, terms=replace(world.terms, halted=True))
    after = observe_markets(halted, [older], MarketTerms(), CHAIN_VAULT, NOW).world
    assert after.oracles[HOURLY] == oracle
    assert after.terms.halted
    assert preview(after, yes(), NOW) is not None


def test_what_others_redeemed_for_the_manager_is_paid_out_once() -> None:
    position = ManagerPosition(yes(), END, 4 * QUOTE, 2 * QUOTE, 0, None, "active")
    desk = chain_desk(50 * QUOTE, [position, replace(position, quantity=0)], NOW)
    assert len(desk.world.accounts[ACCOUNT].positions) == 1
    settled = replace(venue().oracles[HOURLY], active=False, settlement=SPOT, settled_at=END)
    step = observe_markets(desk.world, [settled], MarketTerms(), CHAIN_VAULT, END, pays_out=False)
    assert len(step.world.accounts[ACCOUNT].positions) == 1  # on the chain it has to be redeemed

    class Chain:
        class objects:
            manager = predict = "0x1"

        async def check(self, may_be_empty: bool) -> int:
            return 54 * QUOTE

    class RedeemedByOthers:
        async def health(self) -> Health:
            return Health(True, 1, 0, 0, END)

        async def positions(self, manager_id: str) -> tuple[ManagerPosition, ...]:
            return (replace(position, quantity=0, status="redeemed"),)

        async def redemptions(self, manager_id: str, oracle_id: str) -> tuple[IndexedFill, ...]:
            payout = 4 * QUOTE
            return (IndexedFill("redeem", END, yes(), END, 4 * QUOTE, FLOAT, payout, "0x1", "event", "tx", True),)

    broker = type("Broker", (), {"sender": Chain()})()
    source = SuiSource(None, RedeemedByOthers(), broker, PredictCaps(), lambda: END - ACCOUNT_MS)  # type: ignore[arg-type]
    after, receipts = asyncio.run(source._synchronised(replace(desk, world=step.world), END))
    assert after.world.accounts[ACCOUNT].positions == {}
    assert after.world.accounts[ACCOUNT].cash == 54 * QUOTE
    assert [(receipt.kind, receipt.facts["payout"]) for receipt in receipts] == [("settled", 4)]
