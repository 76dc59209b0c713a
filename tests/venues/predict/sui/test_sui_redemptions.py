"""Contracts that were sold or paid out outside pitboss: the account on the chain follows, and the receipts say which it was."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest

from data.sources.source_servers import FakeTime, closing
from data.sources.source_servers import serving_app as served
from pitboss.core.instant import MINUTE_MS, SECOND_MS
from pitboss.core.receipt import Receipt
from pitboss.testing.prediction_services import PREDICT, PredictionServices
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.data.indexer import Indexer
from pitboss.venues.predict.data.market_watch import MarketWatch
from pitboss.venues.predict.desk import Desk
from pitboss.venues.predict.state import QUOTE, ContractPosition, binary
from pitboss.venues.predict.sui_source import SuiSource, chain_desk
from pitboss.venues.predict.svi import FLOAT
from venues.predict.scene import NOW

MANAGER = f"0x{'ab' * 32}"
STRIKE = 63_000
BOUGHT_AT = NOW - 10 * MINUTE_MS


@dataclass
class Manager:
    """A manager on the chain with one position, bought with pitboss, and what the indexer reports of it."""

    services: PredictionServices
    url: str
    clock: list[int]
    market: str
    expiry_at: int
    balance: int = 100 * QUOTE

    def row(self, open_quantity: int) -> None:
        """Let the indexer report this much as open."""
        quantities = {"open_quantity": open_quantity, "open_cost_basis": open_quantity // 2}
        more = {"realized_pnl": 0, "mark_price": None, "status": "redeemed"}
        self.services.positions[MANAGER] = [self._contract() | quantities | more]

    def redeemed(self, quantity: int, payout: int, is_settled: bool, number: int = 1) -> None:
        """Redeem contracts with another program."""
        self.balance += payout
        event = {"event_digest": f"event{number}", "digest": f"tx{number}", "manager_id": MANAGER}
        trade = {"quantity": quantity, "payout": payout, "bid_price": payout * FLOAT // quantity}
        at = {"checkpoint_timestamp_ms": self.clock[0] - MINUTE_MS + number * SECOND_MS, "is_settled": is_settled}
        self.services.redemptions.insert(0, self._contract() | event | trade | at)

    def _contract(self) -> dict[str, Any]:
        return {"oracle_id": self.market, "expiry": self.expiry_at, "strike": STRIKE * FLOAT, "is_up": True}

    def desk(self, quantity: int) -> Desk:
        """The desk with the position, half a unit paid for each contract."""
        contract = binary(self.market, "YES", STRIKE * FLOAT)
        desk = chain_desk(self.balance, (), BOUGHT_AT)
        position = ContractPosition(contract, self.expiry_at, quantity, quantity // 2, BOUGHT_AT)
        account = replace(desk.world.accounts["agent"], positions={contract.key: position})
        return replace(desk, world=replace(desk.world, accounts={"agent": account}))

    def synchronised(self, desk: Desk, settled: bool = False) -> tuple[Desk, list[Receipt]]:
        """The desk after one look at the account, with the market open, or settled above the strike."""
        if settled:
            self.clock[0] = max(self.clock[0], self.expiry_at + MINUTE_MS)
        fetcher = FakeTime(self.clock[0]).fetcher()
        indexer = Indexer(fetcher, self.url, PREDICT)
        watch = MarketWatch(indexer, "BTC", ("1h",), lambda: self.clock[0])

        async def balance(may_be_empty: bool = False) -> int:
            return self.balance

        async def contents(names: Any) -> dict[str, Any]:
            return {}

        async def settle(world: Desk, since: int, at: int) -> Any:
            return SimpleNamespace(world=world, receipts=())

        objects = SimpleNamespace(manager=MANAGER, predict=PREDICT)
        broker: Any = SimpleNamespace(
            sender=SimpleNamespace(check=balance, contents=contents, objects=objects), settle=settle
        )
        source = SuiSource(watch, indexer, broker, PredictCaps(), lambda: self.clock[0])

        async def look() -> Any:
            watch.unsettled = frozenset({self.market})
            await watch.look()
            source._account_at = 0
            return await source.update(desk, self.clock[0] + SECOND_MS)

        update = asyncio.run(closing(fetcher, look()))
        assert source.trouble() == ""
        return update.world, list(update.receipts)


@pytest.fixture
def manager() -> Iterator[Manager]:
    clock = [NOW]
    services = PredictionServices(now=lambda: clock[0], tiers=("1h",), price=lambda second: 68_000.0)
    expiry_at = next(at for at in services.expiries() if at > NOW)
    with served(services.app()) as url:
        yield Manager(services, url, clock, services.oracle_id(expiry_at), expiry_at)


def own(receipts: list[Receipt]) -> list[tuple[str, str, str, str]]:
    """The receipts of the account: kind, action, quantity, payout."""
    return [
        (one.kind, str(one.facts["action"]), f"{one.facts['quantity']:.0f}", str(one.facts["payout"]))
        for one in receipts
        if one.facts.get("account") == "agent"
    ]


def positions(desk: Desk) -> list[int]:
    return [position.quantity for position in desk.world.accounts["agent"].positions.values()]


def test_a_payout_that_another_account_requested_is_a_payout(manager: Manager) -> None:
    desk = manager.desk(4 * QUOTE)
    manager.clock[0] = manager.expiry_at + MINUTE_MS
    manager.row(0)
    manager.redeemed(4 * QUOTE, 4 * QUOTE, is_settled=True)
    after, receipts = manager.synchronised(desk, settled=True)
    assert own(receipts) == [("settled", "redeem", "4", "4.000000")]
    assert positions(after) == []
    assert after.world.accounts["agent"].cash == manager.balance == 104 * QUOTE


def test_a_position_sold_outside_before_settlement_gets_no_payout(manager: Manager) -> None:
    desk = manager.desk(4 * QUOTE)
    manager.row(0)
    manager.redeemed(4 * QUOTE, 3 * QUOTE, is_settled=False)
    after, receipts = manager.synchronised(desk, settled=True)
    assert own(receipts) == [("filled", "redeem", "4", "3.000000")]
    assert positions(after) == []
    assert after.world.accounts["agent"].cash == manager.balance == 103 * QUOTE


def test_a_position_sold_outside_leaves_the_account_before_its_market_settles(manager: Manager) -> None:
    desk = manager.desk(4 * QUOTE)
    manager.row(1 * QUOTE)
    manager.redeemed(2 * QUOTE, 1_200_000, is_settled=False, number=1)
    manager.redeemed(1 * QUOTE, 500_000, is_settled=False, number=2)
    after, receipts = manager.synchronised(desk)
    assert own(receipts) == [("filled", "redeem", "2", "1.200000"), ("filled", "redeem", "1", "0.500000")]
    assert [one.facts["digest"] for one in receipts] == ["tx1", "tx2"]
    assert [str(one.facts["basis"]) for one in receipts] == ["1.000000", "0.500000"]
    assert positions(after) == [1 * QUOTE]
    again, receipts = manager.synchronised(after)
    assert (positions(again), own(receipts)) == ([1 * QUOTE], [])


def test_of_a_position_that_was_partly_sold_only_the_rest_is_paid_out(manager: Manager) -> None:
    desk = manager.desk(4 * QUOTE)
    manager.row(0)
    manager.redeemed(3 * QUOTE, 2 * QUOTE, is_settled=False, number=1)
    manager.redeemed(1 * QUOTE, 1 * QUOTE, is_settled=True, number=2)
    after, receipts = manager.synchronised(desk, settled=True)
    assert own(receipts) == [("filled", "redeem", "3", "2.000000"), ("settled", "redeem", "1", "1.000000")]
    assert positions(after) == []


def test_contracts_that_the_indexer_has_not_seen_yet_stay(manager: Manager) -> None:
    manager.row(0)
    manager.redeemed(4 * QUOTE, 3 * QUOTE, is_settled=False)  # of an earlier position at this strike
    manager.balance = 100 * QUOTE
    desk = manager.desk(4 * QUOTE)
    ((key, position),) = desk.world.accounts["agent"].positions.items()
    account = replace(desk.world.accounts["agent"], positions={key: replace(position, opened_at=NOW)})
    desk = replace(desk, world=replace(desk.world, accounts={"agent": account}))
    after, receipts = manager.synchronised(desk)
    assert (positions(after), own(receipts)) == ([4 * QUOTE], [])


def test_a_position_stays_until_its_redemption_is_listed(manager: Manager) -> None:
    desk = manager.desk(4 * QUOTE)
    manager.row(0)
    manager.redeemed(1 * QUOTE, 700_000, is_settled=False)
    after, receipts = manager.synchronised(desk)
    assert (positions(after), own(receipts)) == ([4 * QUOTE], [])
