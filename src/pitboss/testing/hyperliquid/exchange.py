"""`FakeExchange`: the exchange in virtual time. Pure: time comes from the caller, chance from the seed, nothing leaves the process.

It answers every request truthfully and at once. Losing, delaying and falsifying is the work of `gateway.py`.
"""

import hashlib
from collections.abc import Callable, Mapping
from decimal import Decimal, localcontext
from typing import Any

from pitboss.core.instant import DAY_MS, Instant
from pitboss.core.money import CONTEXT
from pitboss.core.noun import noun
from pitboss.testing.hyperliquid import refusals
from pitboss.testing.hyperliquid.account import ApprovedAgent, FakeAccount
from pitboss.testing.hyperliquid.actions import carry_out, check_shape
from pitboss.testing.hyperliquid.agenda import Agenda
from pitboss.testing.hyperliquid.info import answer
from pitboss.testing.hyperliquid.market import CoinMarket
from pitboss.testing.hyperliquid.nonces import NonceBook
from pitboss.testing.hyperliquid.orders import MalformedRequest
from pitboss.testing.hyperliquid.price_path import PricePath, RandomWalkPrices
from pitboss.testing.hyperliquid.replies import err
from pitboss.testing.hyperliquid.request_limits import EXPIRED_COST, budget_refusal
from pitboss.testing.hyperliquid.rules import VenueRules
from pitboss.testing.hyperliquid.seeded import SeededNumbers
from pitboss.testing.hyperliquid.signatures import address_of_secret, signer_of
from pitboss.testing.hyperliquid.state import ActionReceived, ExchangeState
from pitboss.testing.hyperliquid.truth import Truth, truth_of
from pitboss.testing.hyperliquid.universe import LISTED, ListedPerp

START = 1_767_225_600_000
"""2026-01-01T00:00:00Z, where an exchange begins by default."""
AGENT_VALID_MS = 180 * DAY_MS
BODY_KEYS = frozenset({"action", "nonce", "signature", "vaultAddress", "expiresAfter"})


@noun
class ReadyAccount:
    """A funded account with an approved agent, whose key signs for it."""

    master_address: str
    master_private_key: str
    agent_address: str
    agent_private_key: str


def make_ready_account(seed: int, name: str = "0") -> ReadyAccount:
    """Keys that follow from a seed. They are worth nothing anywhere else."""
    master, agent = (
        "0x" + hashlib.sha256(f"pitboss fake exchange {seed} {name} {part}".encode()).hexdigest()
        for part in ("master", "agent")
    )
    return ReadyAccount(address_of_secret(master), master, address_of_secret(agent), agent)


class FakeExchange:
    """One exchange with one ready account; `open_account` adds others."""

    def __init__(
        self,
        seed: int = 0,
        perps: tuple[ListedPerp, ...] = LISTED,
        start: Instant = START,
        rules: VenueRules | None = None,
        paths: Mapping[str, PricePath] | None = None,
        deposit: Decimal = Decimal(10_000),
    ) -> None:
        self.seed = seed
        rules = rules or VenueRules()
        paths_by_coin = paths or {}
        with localcontext(CONTEXT):
            markets = {
                perp.name: CoinMarket(
                    perp, paths_by_coin.get(perp.name) or RandomWalkPrices(perp, seed), seed, start, rules
                )
                for perp in perps
            }
        self.state = ExchangeState(start, rules, markets, SeededNumbers(seed, "exchange"))
        self.agenda = Agenda(self.state)
        self.nonces = NonceBook()
        self._actions = 0
        self.ready = make_ready_account(seed)
        self.open_account(self.ready, deposit)

    @property
    def now(self) -> Instant:
        """The exchange's own time."""
        return self.state.now

    def open_account(self, keys: ReadyAccount, deposit: Decimal) -> FakeAccount:
        """Open an account with a deposit and an agent."""
        account = FakeAccount(keys.master_address, deposit)
        self.state.accounts[account.address] = account
        self.approve_agent(account.address, keys.agent_address, "pitboss")
        return account

    def approve_agent(self, account: str, agent: str, name: str, valid_until: Instant | None = None) -> None:
        """Approve an agent, for 180 days by default. One of the same name is deregistered and its nonces are forgotten."""
        owner = self.state.accounts[account.lower()]
        for other in [one for one in owner.agents.values() if one.name == name]:
            self.revoke_agent(account, other.address)
        until = self.now + AGENT_VALID_MS if valid_until is None else valid_until
        owner.agents[agent.lower()] = ApprovedAgent(name, agent.lower(), until)
        self.state.agents[agent.lower()] = owner.address

    def revoke_agent(self, account: str, agent: str) -> None:
        """Deregister an agent."""
        self.state.accounts[account.lower()].agents.pop(agent.lower(), None)
        self.nonces.prune(agent.lower())

    def account(self) -> FakeAccount:
        """The ready account."""
        return self.state.accounts[self.ready.master_address]

    def market(self, coin: str) -> CoinMarket:
        """The market of a coin."""
        return self.state.markets[coin]

    def advance(self, to: Instant) -> None:
        """Let time pass up to an instant."""
        if to > self.state.now:
            with localcontext(CONTEXT):
                self.agenda.advance(to)

    def set_price(self, coin: str, price: Decimal | None) -> None:
        """Hold a coin at a price from now on, with all that follows at once; None gives it back to its path."""
        self.market(coin).forced_price = price
        self.do_now(self.agenda.step)

    def do_now(self, work: Callable[[], None]) -> None:
        """Do something to the exchange in its own arithmetic."""
        with localcontext(CONTEXT):
            work()

    def info(self, body: dict[str, Any]) -> Any:
        """Answer an info request; MalformedRequest where it cannot be read."""
        with localcontext(CONTEXT):
            return answer(self.state, body)

    def exchange(self, body: dict[str, Any]) -> dict[str, Any]:
        """Carry out a signed request at this moment; MalformedRequest where it cannot be read."""
        action, nonce = body.get("action"), body.get("nonce")
        expires_after, vault = body.get("expiresAfter"), body.get("vaultAddress")
        if not set(body) <= BODY_KEYS or not isinstance(action, dict) or not isinstance(action.get("type"), str):
            raise MalformedRequest("a request has action, nonce and signature")
        if not isinstance(nonce, int) or isinstance(nonce, bool) or not isinstance(body.get("signature"), dict):
            raise MalformedRequest("a request has action, nonce and signature")
        if expires_after is not None and (not isinstance(expires_after, int) or isinstance(expires_after, bool)):
            raise MalformedRequest("expiresAfter is milliseconds")
        check_shape(action)
        signer = self._signer(body)
        with localcontext(CONTEXT):
            reply = self._judge(signer, action, nonce, expires_after, vault)
        outcome = "ok" if reply["status"] == "ok" else str(reply["response"])
        received = ActionReceived(self.now, signer, str(action["type"]), nonce, expires_after, outcome)
        self.state.received.append(received)
        return reply

    def _signer(self, body: dict[str, Any]) -> str:
        every = self.state.rules.verify_every
        self._actions += 1
        if not every or self._actions % every:
            return self.ready.agent_address
        try:
            return signer_of(body, self.state.rules.is_mainnet)
        except ValueError as error:
            raise MalformedRequest(str(error)) from None

    def account_of_signer(self, signer: str) -> FakeAccount | None:
        """The account that an address may sign for: its own, or that of which it is an approved agent that is valid now."""
        own = self.state.accounts.get(signer)
        if own is not None:
            return own
        owner = self.state.accounts.get(self.state.agents.get(signer, ""))
        agent = owner.agents.get(signer) if owner else None
        if agent is None or agent.valid_until <= self.now:
            return None
        return owner

    def _judge(
        self, signer: str, action: dict[str, Any], nonce: int, expires_after: Instant | None, vault: Any
    ) -> dict[str, Any]:
        account = self.account_of_signer(signer)
        if account is None:
            return err(refusals.UNKNOWN_SIGNER.format(address=signer))
        if vault is not None:
            return err(refusals.UNKNOWN_VAULT.format(address=vault))
        if expires_after is not None and expires_after < self.now:
            account.requests_used += EXPIRED_COST
            return err(refusals.EXPIRED)
        if refusal := self.nonces.refusal(signer, nonce, self.now):
            return err(refusal)
        if refusal := budget_refusal(account, action, self.now):
            return err(refusal)
        return carry_out(self.state, account, action)

    def truth(self, address: str | None = None) -> Truth:
        """What really happened to an account: the ready one unless an address is paths_by_coin."""
        return truth_of(self.state, (address or self.ready.master_address).lower())
