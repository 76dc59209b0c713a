"""A little Sui with the predict protocol on it: object versions, balances, epochs, at most one run for each digest.

It runs the very bytes that are signed, on the pure world of the venue, and believes no signature it has not checked. Its
faults: transactions that land later than they were sent, a lagging index, a coin that is locked by the first transaction
that names it. The network's own faults (lost requests and replies, crashes) come from `fault_injector`.
"""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

pytest.importorskip("pysui", reason="the extra `sui` is not installed")

from pitboss.core.errors import TransientError
from pitboss.core.instant import HOUR_MS, Instant
from pitboss.testing.prediction_services import PREDICT, PredictionServices
from pitboss.venues.predict.aborts import TOO_LITTLE_CASH, Abort
from pitboss.venues.predict.data.wire import oracle_state
from pitboss.venues.predict.state import QUOTE, Account, MarketTerms, PredictWorld, binary, open_world
from pitboss.venues.predict.sui.chain import CLOCK, ChainEvent, Coin, Effects, Shared, TransactionBasis, base58, full_id
from pitboss.venues.predict.sui.transaction import ProtocolObjects, digest_of, library
from pitboss.venues.predict.trade import WorldStep, mint, redeem
from venues.predict.scene import NOW, SPOT, with_open_market
from venues.predict.single_markets import push_price

PLACE = ProtocolObjects("0x" + "ab" * 32, "0x" + "01" * 32, "0x" + "02" * 32, "0x" + "e9" * 32 + "::dusdc::DUSDC")
ORACLE = "0x" + "03" * 32
SECRET = bytes(range(7, 39))
KEY = base64.b64encode(b"\0" + SECRET).decode()
TESTNET = "4c78adac"
GAS_USED = 2_000_000
AGENT = "0x" + "a6" * 32
NEW_MANAGER = "0x" + "4e" * 32


@dataclass(frozen=True)
class DecodedTransaction:
    """A transaction as the chain reads it."""

    digest: str
    sender: str
    coin: str
    version: int
    last_epoch: int
    inputs: tuple[tuple[str, Any], ...]
    commands: tuple[tuple[str, str, tuple[tuple[str, Any], ...]], ...]
    packages: frozenset[str]
    kinds: frozenset[str]


@lru_cache(4096)
def decode(tx: bytes) -> DecodedTransaction:
    """Read signed bytes back, strictly: they must be the one encoding of what they say."""
    bcs = library().bcs
    found = bcs.TransactionData.deserialize(tx)
    assert bytes(found.serialize()) == tx
    data = found.value
    (coin,) = data.GasData.Payment
    inputs: list[tuple[str, Any]] = []
    for one in data.TransactionKind.value.Inputs:
        if one.enum_name == "Pure":
            inputs.append(("pure", bytes(one.value)))
        else:
            reference = one.value.value
            inputs.append(("object", (full_id(reference.ObjectID.to_address_str()), reference.SequenceNumber)))
    commands, packages, kinds = [], set(), set()
    for command in data.TransactionKind.value.Command:
        value = command.value
        if command.enum_name == "SplitCoin":
            parts = (value.FromCoin, *value.Amount)
            commands.append(("", "SplitCoin", tuple((a.enum_name, a.value) for a in parts)))
        elif command.enum_name == "MoveCall":
            packages.add(value.Package.to_address_str())
            kinds |= {kind.type_tag_to_str() for kind in value.Type_Arguments}
            commands.append((value.Module, value.Function, tuple((a.enum_name, a.value) for a in value.Arguments)))
        else:
            commands.append(("", command.enum_name, ()))
    return DecodedTransaction(
        digest_of(tx),
        full_id(data.Sender.to_address_str()),
        full_id(coin.ObjectID.to_address_str()),
        int(coin.SequenceNumber),
        int(data.TransactionExpiration.value),
        tuple(inputs),
        tuple(commands),
        frozenset(packages),
        frozenset(kinds),
    )


@dataclass
class ExecutedTransaction:
    """An executed transaction, its effects, and when the index shows it."""

    effects: Effects
    coin: str
    version: int
    next_version: int
    visible_at: int


@dataclass
class FakeChain:
    """The chain. `now` is the test's clock in a list, so that a test can turn it."""

    owner: str
    clock: list[Instant] = field(default_factory=lambda: [NOW])
    deposit: int = 100 * QUOTE
    gas_coins: int = 2
    lag: int = 0
    """Reads that do not see yet what was run before them."""
    locking: bool = False
    """Whether a coin's version belongs to the first transaction that names it until the epoch is over."""
    chain_id: str = TESTNET
    gas: int = 10**9
    spot: int = SPOT
    services: PredictionServices | None = None
    """Whose markets these are, if they are not the one of the tests; then the clock is theirs, too."""
    paused: bool = False
    agent_active: bool = True
    wallet: tuple[int, ...] = (30 * QUOTE, 12 * QUOTE)
    """Balances of the owner's quote coins."""

    def __post_init__(self) -> None:
        world = with_open_market(open_world(1_000_000 * QUOTE, 0, MarketTerms()), ORACLE, NOW + 100 * HOUR_MS)
        self.world = replace(world, accounts={PLACE.manager: Account(self.deposit)})
        self.versions = {"0x" + f"{9 - n}" * 64: 10 + n for n in range(self.gas_coins)}
        self.runs: list[ExecutedTransaction] = []
        self.late: list[bytes] = []
        self.locks: dict[tuple[str, int], str] = {}
        self.managers = 0
        self.epoch_now = 7
        self.reads = 0
        self.sends: list[bytes] = []

    # ---- the port

    async def contents(self, ids: Sequence[str]) -> dict[str, dict[str, Any]]:
        self._read()
        fields = {PREDICT: {"trading_paused": self.paused}, PLACE.predict: {"trading_paused": self.paused}}
        fields[AGENT] = {"is_active": self.agent_active}
        return {name: fields[name] for name in ids if name in fields}

    async def coins(self, owner: str, coin_type: str) -> tuple[Coin, ...]:
        self._read()
        if owner != self.owner or coin_type != PLACE.quote_type:
            return ()
        return tuple(
            Coin(wallet_id(number), 3, base58(b"%032d" % number), balance) for number, balance in enumerate(self.wallet)
        )

    async def read_basis(self, ids: Sequence[str], owner: str) -> TransactionBasis:
        self._read()
        known = {PLACE.predict, PLACE.manager, CLOCK, ORACLE, PREDICT}
        if self.services is not None:
            known |= {row["oracle_id"] for row in self.services.oracles()}
        shared = {name: Shared(name, 5) for name in ids if name in known}
        coins = [
            Coin(name, self._version(name), base58(b"%032d" % self._version(name)), self.gas) for name in self.versions
        ]
        return TransactionBasis(
            self.chain_id, self.epoch_now, 1000, shared, tuple(coins) if owner == self.owner else ()
        )

    async def simulate(self, tx: bytes) -> Effects:
        self._read()
        found = decode(tx)
        self._check(found)
        _, effects = self._apply(found)
        return effects

    async def execute(self, tx: bytes, signature: str) -> Effects:
        found = decode(tx)
        self._signed(tx, signature, found.sender)
        self.sends.append(tx)
        return self.land(tx)

    async def outcome(self, digest: str) -> Effects | None:
        self._read()
        return next((run.effects for run in self._visible() if run.effects.digest == digest), None)

    async def consumer(self, object_id: str, version: int) -> str | None:
        self._read()
        return next((r.effects.digest for r in self._visible() if (r.coin, r.version) == (object_id, version)), None)

    async def epoch(self) -> int:
        self._read()
        return self.epoch_now

    # ---- what a test does to it

    def land(self, tx: bytes) -> Effects:
        """Run a transaction, or tell what it did when it was run."""
        found = decode(tx)
        for run in self.runs:
            if run.effects.digest == found.digest:
                return run.effects
        self._check(found)
        if self.locking and self.locks.setdefault((found.coin, found.version), found.digest) != found.digest:
            raise TransientError("the coin is locked by another transaction")
        self.world, effects = self._apply(found)
        if effects.ok:
            self.wallet = self.wallet_after
        after = self.versions[found.coin] = max(self.versions.values()) + 1
        self.runs.append(ExecutedTransaction(effects, found.coin, found.version, after, self.reads + self.lag))
        return effects

    def delay(self, tx: bytes, signature: str) -> None:
        """The transaction is on its way and will land when `heal` lets it."""
        found = decode(tx)
        self._signed(tx, signature, found.sender)
        if self.locking:
            self.locks.setdefault((found.coin, found.version), found.digest)
        self.late.append(tx)

    def heal(self) -> None:
        """Everything on its way lands now, if it still can."""
        late, self.late = self.late, []
        for tx in late:
            try:
                self.land(tx)
            except TransientError:
                continue

    def pass_epochs(self, count: int) -> None:
        """What was on its way dies with its epoch; locks are gone. An epoch lasts a day, and no index lags as long as that."""
        self.epoch_now += count
        self.locks.clear()
        self.reads = max([self.reads, *(run.visible_at for run in self.runs)])

    @property
    def mints(self) -> list[Effects]:
        """Every mint that went through."""
        return [run.effects for run in self.runs if any(event.name == "PositionMinted" for event in run.effects.events)]

    @property
    def account(self) -> Account:
        return self.world.accounts[PLACE.manager]

    # ---- how it works

    def _read(self) -> None:
        self.reads += 1

    def _visible(self) -> list[ExecutedTransaction]:
        return [run for run in self.runs if run.visible_at <= self.reads]

    def _version(self, coin: str) -> int:
        unseen = [run.version for run in self.runs if run.coin == coin and run.visible_at > self.reads]
        return min(unseen, default=self.versions[coin])

    def _check(self, found: DecodedTransaction) -> None:
        if found.last_epoch < self.epoch_now:
            raise TransientError("the transaction has expired")
        if self.versions.get(found.coin) != found.version:
            raise TransientError(f"object {found.coin} version {found.version} is unavailable for consumption")
        if not found.packages <= {PLACE.package} or not found.kinds <= {PLACE.quote_type}:
            raise TransientError("there is no such package")
        if self.gas < GAS_USED:
            raise TransientError("the gas coin is too small")

    def _signed(self, tx: bytes, signature: str, sender: str) -> None:
        raw = base64.b64decode(signature)
        assert (raw[0], len(raw)) == (0, 97)
        assert "0x" + hashlib.blake2b(b"\0" + raw[65:], digest_size=32).hexdigest() == sender == self.owner
        message = hashlib.blake2b(b"\0\0\0" + tx, digest_size=32).digest()
        Ed25519PublicKey.from_public_bytes(raw[65:]).verify(raw[1:65], message)

    def _apply(self, found: DecodedTransaction) -> tuple[PredictWorld, Effects]:
        """The world after the commands, or the same world and why they did nothing."""
        now = self.clock[0] if self.services is None else self.services.now()
        world = push_price(self.world, ORACLE, self.spot, self.spot, self.clock[0]).world
        if self.services is not None:
            world = _with_markets(world, self.services)
        wallet = list(self.wallet)
        results: list[Any] = []
        events: list[ChainEvent] = []
        outputs: list[tuple[bytes, ...]] = []

        def argument(one: tuple[str, Any]) -> Any:
            kind, value = one
            return found.inputs[value][1] if kind == "Input" else results[value]

        def number(one: tuple[str, Any]) -> int:
            raw = argument(one)
            assert len(raw) == 8
            return int.from_bytes(raw, "little")

        for module, function, given in found.commands:
            account = world.accounts[PLACE.manager]
            result: Any = None
            if function == "SplitCoin":
                coin, amount = argument(given[0])[0], number(given[1])
                index = next(place for place in range(len(wallet)) if wallet_id(place) == coin)
                if wallet[index] < amount:
                    return self.world, Effects(found.digest, False, (), "balance", 2, "not enough")
                wallet[index] -= amount
                results.append(amount)
                outputs.append(())
                continue
            if function == "MergeCoins":
                wallet[0], wallet[1:] = sum(wallet), [0] * (len(wallet) - 1)
                results.append(None)
                outputs.append(())
                continue
            output: tuple[bytes, ...] = ()
            abort: Abort | None = None
            name = f"{module}::{function}"
            if name == "predict_manager::balance":
                output = (account.cash.to_bytes(8, "little"),)
            elif name == "predict_manager::withdraw":
                result = number(given[1])
                abort = TOO_LITTLE_CASH if result > account.cash else None
                world = _holding(world, replace(account, cash=account.cash - result))
            elif name == "predict::create_manager":
                fields = {"manager_id": NEW_MANAGER, "owner": self.owner}
                events.append(ChainEvent("PredictManagerCreated", fields))
            elif name == "predict_manager::deposit":
                world = _holding(world, replace(account, cash=account.cash + argument(given[1])))
            elif name == "market_key::new":
                oracle, up = argument(given[0]), argument(given[3])
                result = ("0x" + oracle.hex(), number(given[1]), number(given[2]), up == b"\1")
            elif name in ("predict::mint", "predict::redeem"):
                step = _traded(world, function, argument(given[2])[0], argument(given[3]), number(given[4]), now)
                world, abort = step.world, step.abort
                if abort is None:
                    events.append(_event(function, argument(given[3]), step))
            else:
                assert name == "::TransferObjects", name
            if abort is not None:
                return self.world, Effects(found.digest, False, (), abort.module, abort.code, abort.reason)
            results.append(result)
            outputs.append(output)
        self.wallet_after = tuple(wallet)
        return world, Effects(found.digest, True, tuple(events), outputs=tuple(outputs))


def wallet_id(number: int) -> str:
    """The id of one of the owner's quote coins."""
    return f"0x{number + 1:x}" + "d" * 63


def _with_markets(world: PredictWorld, services: PredictionServices) -> PredictWorld:
    now = services.now()
    rows = [row for row in services.oracles() if row["status"] == "active" or row["oracle_id"] in world.oracles]
    states = [services.reply(f"/oracles/{row['oracle_id']}/state", {}) for row in rows]
    oracles = {state["oracle"]["oracle_id"]: oracle_state(state, state["oracle"]["oracle_id"], now) for state in states}
    return replace(world, oracles={**world.oracles, **oracles})


def _holding(world: PredictWorld, account: Account) -> PredictWorld:
    return replace(world, accounts={**world.accounts, PLACE.manager: account})


def _traded(world: PredictWorld, action: str, oracle: str, key: Any, quantity: int, at: Instant) -> WorldStep:
    assert full_id(oracle) == key[0]
    assert world.oracles[key[0]].expiry_at == key[1]
    contract = binary(key[0], "YES" if key[3] else "NO", key[2])
    return (mint if action == "mint" else redeem)(world, PLACE.manager, contract, quantity, at)


def _event(action: str, key: Any, step: WorldStep) -> ChainEvent:
    facts = step.receipts[0].facts
    fields = {
        "manager_id": PLACE.manager,
        "oracle_id": key[0],
        "strike": str(key[2]),
        "is_up": key[3],
        "quantity": str(int(facts["quantity"] * QUOTE)),
    }
    if action == "mint":
        more = {"cost": str(int(facts["cost"] * QUOTE)), "ask_price": str(int(facts["price"] * 10**9))}
        return ChainEvent("PositionMinted", fields | more)
    more = {"payout": str(int(facts["payout"] * QUOTE)), "bid_price": str(int(facts["price"] * 10**9))}
    return ChainEvent("PositionRedeemed", fields | more | {"is_settled": step.receipts[0].kind == "settled"})
