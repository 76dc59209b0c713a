"""`Machine`: a fake chain and a database on which senders can be killed and started again."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from pitboss.core.instant import HOUR_MS, MINUTE_MS
from pitboss.signer.sui.keys import address_of, sign_bytes
from pitboss.store import schema
from pitboss.store import sealed_rows as rows
from pitboss.store.database import Database
from pitboss.store.outbox import OutboxEntry, StoredOutbox
from pitboss.venues.predict.desk import Desk, DeskOrder
from pitboss.venues.predict.orders import ContractOrder
from pitboss.venues.predict.quote import quantity_for
from pitboss.venues.predict.state import QUOTE, binary, open_world
from pitboss.venues.predict.sui.broker import PredictSui
from pitboss.venues.predict.sui.order_sender import OrderSender, WriterSettings
from pitboss.venues.predict.svi import FLOAT
from pitboss.venues.predict.trade import quote_spend
from venues.predict.scene import NOW, with_open_market
from venues.predict.sui.fake_chain import ORACLE, PLACE, SECRET, FakeChain
from venues.predict.sui.fault_injector import FaultInjector

TICK = NOW
STRIKE = 63_000 * FLOAT


class UncheckedSigner:
    """Signs every request, without a policy. `test_sui_run` has the signing process."""

    address = address_of(SECRET)

    async def sign(self, tx: bytes) -> str:
        return self.signature(tx)

    def signature(self, tx: bytes) -> str:
        return sign_bytes(tx, SECRET)


SIGNER = UncheckedSigner()
ADDRESS = SIGNER.address


async def no_pause(seconds: float) -> None:
    """Return at once."""


def fresh_desk(cash: int = 100) -> Desk:
    """The desk at the start: the cash of the manager, and the one market."""
    return Desk(with_open_market(open_world(1_000_000 * QUOTE, cash * QUOTE), ORACLE, NOW + 100 * HOUR_MS))


def mint_request(spend: int = 2 * QUOTE, side: str = "YES", tick_at: int = TICK, **more: Any) -> DeskOrder:
    """A mint as the engine allows it, sized on the desk's own world."""
    contract = binary(ORACLE, side, STRIKE)  # pyright: ignore[reportArgumentType]
    trade = quote_spend(fresh_desk().world, contract, spend, NOW)
    return DeskOrder(
        ContractOrder("mint", contract, quantity_for(spend, trade.price), trade.price, spend), tick_at, **more
    )


def redeem_request(quantity: int, side: str = "YES", tick_at: int = TICK + MINUTE_MS) -> DeskOrder:
    contract = binary(ORACLE, side, STRIKE)  # pyright: ignore[reportArgumentType]
    return DeskOrder(ContractOrder("redeem", contract, quantity, 500_000_000), tick_at)


class Machine:
    """One chain and one database for several senders, one after the other.

    A killed sender loses its memory and keeps what it committed. `test_sui_processes` kills real processes.
    """

    def __init__(self, database: Database, **chain: Any) -> None:
        self.database = database
        with database.write() as connection:
            connection.execute(schema.outbox.delete())
        self.chain = FakeChain(ADDRESS, **chain)
        self.clock = self.chain.clock
        self.born = 0

    def now(self) -> int:
        return self.clock[0]

    @contextmanager
    def process(
        self, injector: FaultInjector | None = None, terms: WriterSettings | None = None
    ) -> Iterator[PredictSui]:
        """A new sender on the chain and the database."""
        injector = injector or FaultInjector()
        self.born += 1
        outbox = injector.wrap(StoredOutbox(self.database, self.now), "outbox")
        chain, key = injector.wrap(self.chain, "chain"), injector.wrap(SIGNER, "signer")
        sender = OrderSender(chain, outbox, key, PLACE, terms or WriterSettings(), f"p{self.born}", self.now, no_pause)
        yield PredictSui(sender)

    def entries(self) -> list[OutboxEntry]:
        """All entries of the outbox."""
        with self.database.read() as connection:
            found = rows.fetch_all(connection, rows.raw(schema.outbox))
        outbox = StoredOutbox(self.database, self.now)
        return [entry for name in sorted({row["order_id"] for row in found}) for entry in outbox.attempts(name)]


def run(ask: Any) -> Any:
    return asyncio.run(ask)


def settle_all(machine: Machine, desk: Desk, since: int, terms: WriterSettings | None = None) -> Desk:
    """The desk after a sender without faults has resolved all pending entries."""
    for _ in range(4):
        machine.clock[0] += 61_000
        machine.chain.heal()
        machine.chain.reads += machine.chain.lag
        with machine.process(terms=terms) as broker:
            desk = run(broker.settle(desk, since, machine.now())).world
            if not broker.sender.outbox.pending(broker.sender.scope):
                return run(broker.settle(desk, since, machine.now())).world
        machine.chain.pass_epochs(1)
    raise AssertionError("entries are still pending")


def count_consistent_mints(machine: Machine, desk: Desk, start: Desk) -> int:
    """Assert that chain, outbox and desk agree; returns the number of mints."""
    chain, entries = machine.chain, machine.entries()
    landed = [entry for entry in entries if entry.state == "landed"]
    assert {entry.state for entry in entries} <= {"landed", "failed", "void"}
    assert sorted(entry.digest for entry in landed) == sorted(
        run.effects.digest for run in chain.runs if run.effects.ok and run.effects.events
    )
    assert not desk.waiting
    ours, theirs = desk.world.accounts["agent"], chain.account
    assert ours.cash == theirs.cash
    assert {key: held.quantity for key, held in ours.positions.items()} == {
        key: held.quantity for key, held in theirs.positions.items()
    }
    paid = sum(int(event.fields["cost"]) for effects in chain.mints for event in effects.events)
    assert desk.spent.total == paid
    before, after = start.world, desk.world
    assert after.vault.balance + ours.cash == before.vault.balance + before.accounts["agent"].cash
    return len(chain.mints)


def with_cash(desk: Desk, cash: int) -> Desk:
    world = desk.world
    account = replace(world.accounts["agent"], cash=cash)
    return replace(desk, world=replace(world, accounts={**world.accounts, "agent": account}))
