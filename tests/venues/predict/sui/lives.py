"""A process of the writer that can be killed and started again on the same chain and the same database."""

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
from venues.predict.scene import NOW, opened
from venues.predict.sui.fakechain import ORACLE, PLACE, SECRET, FakeChain
from venues.predict.sui.gremlin import Gremlin

TICK = NOW
STRIKE = 63_000 * FLOAT


class KeyHolder:
    """Signs what it is asked for, without a policy: the subject here is the writer. With the signing process: `test_sui_run`."""

    address = address_of(SECRET)

    async def sign(self, tx: bytes) -> str:
        return self.signature(tx)

    def signature(self, tx: bytes) -> str:
        return sign_bytes(tx, SECRET)


SIGNER = KeyHolder()
ADDRESS = SIGNER.address


async def no_pause(seconds: float) -> None:
    """Time does not pass by waiting here."""


def fresh_desk(cash: int = 100) -> Desk:
    """The agent's side at the beginning: as much cash as the manager has, and the one market."""
    return Desk(opened(open_world(1_000_000 * QUOTE, cash * QUOTE), ORACLE, NOW + 100 * HOUR_MS))


def mint_request(spend: int = 2 * QUOTE, side: str = "YES", tick_at: int = TICK, **more: Any) -> DeskOrder:
    """A mint as the engine lets it through, sized on the desk's own world."""
    contract = binary(ORACLE, side, STRIKE)  # pyright: ignore[reportArgumentType]
    trade = quote_spend(fresh_desk().world, contract, spend, NOW)
    return DeskOrder(
        ContractOrder("mint", contract, quantity_for(spend, trade.price), trade.price, spend), tick_at, **more
    )


def redeem_request(quantity: int, side: str = "YES", tick_at: int = TICK + MINUTE_MS) -> DeskOrder:
    contract = binary(ORACLE, side, STRIKE)  # pyright: ignore[reportArgumentType]
    return DeskOrder(ContractOrder("redeem", contract, quantity, 500_000_000), tick_at)


class Machine:
    """One chain and one database, on which processes come and go.

    A process here is a sender: what it knew is gone with it, what it committed stays. That of real processes, which the
    system ends, is `test_sui_processes`.
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
    def alive(self, gremlin: Gremlin | None = None, terms: WriterSettings | None = None) -> Iterator[PredictSui]:
        """A process, from its start to its end, however it ends."""
        gremlin = gremlin or Gremlin()
        self.born += 1
        outbox = gremlin.wrap(StoredOutbox(self.database, self.now), "outbox")
        chain, key = gremlin.wrap(self.chain, "chain"), gremlin.wrap(SIGNER, "signer")
        sender = OrderSender(chain, outbox, key, PLACE, terms or WriterSettings(), f"p{self.born}", self.now, no_pause)
        yield PredictSui(sender)

    def entries(self) -> list[OutboxEntry]:
        """Everything the outbox holds."""
        with self.database.read() as connection:
            found = rows.fetch_all(connection, rows.raw(schema.outbox))
        outbox = StoredOutbox(self.database, self.now)
        return [entry for name in sorted({row["order_id"] for row in found}) for entry in outbox.attempts(name)]


def run(ask: Any) -> Any:
    return asyncio.run(ask)


def settled(machine: Machine, desk: Desk, since: int, terms: WriterSettings | None = None) -> Desk:
    """The desk after a healthy process has had time to find everything out."""
    for _ in range(4):
        machine.clock[0] += 61_000
        machine.chain.heal()
        machine.chain.reads += machine.chain.lag
        with machine.alive(terms=terms) as broker:
            desk = run(broker.settle(desk, since, machine.now())).world
            if not broker.sender.outbox.pending(broker.sender.scope):
                return run(broker.settle(desk, since, machine.now())).world
        machine.chain.pass_epochs(1)
    raise AssertionError("the doubt never ended")


def agree(machine: Machine, desk: Desk, start: Desk) -> int:
    """Chain, outbox and desk tell one story; how many mints it has."""
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
