"""`HyperliquidGuardian`: cancels the orders and closes the positions of a deployment whose process is silent, for the watchdog.

It has a connection, a rate budget and a key of its own. What is cancelled is what the exchange lists: the orders whose client
id belongs to the deployment, except reduce-only triggers, which protect. Cancels need no database once the ids are known.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from pitboss.bootstrap.trading_accounts import TradingAccount
from pitboss.bootstrap.workspace import Workspace
from pitboss.build import build
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import Instant
from pitboss.core.noun import noun
from pitboss.report.figures import plural
from pitboss.runs.account_guardian import GuardianReport
from pitboss.signer.hyperliquid.actions import cancel_action
from pitboss.signer.hyperliquid.client import HyperliquidSignerClient
from pitboss.signer.protocol import SigningRefusal
from pitboss.store.retry import Unreachable
from pitboss.venues.perp.assembly import terms_of
from pitboss.venues.perp.hyperliquid.account_reader import ReportedOrder
from pitboss.venues.perp.hyperliquid.live_account import AccountLine
from pitboss.venues.perp.hyperliquid.order_building import AccountSetup
from pitboss.venues.perp.hyperliquid.order_sender import CANCELS_AT_ONCE, EXPIRY_MS, ActionSigner, FencedSender
from pitboss.venues.perp.hyperliquid.order_store import OrderStore
from pitboss.venues.perp.hyperliquid.protection import Protector, believable_price
from pitboss.venues.perp.hyperliquid.reconcile import MarkSource
from pitboss.venues.perp.hyperliquid.universe import read_universe
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.skill import PerpSkill


@noun
class GuardedDeployment:
    """The deployment that is guarded: its id, its account, and the skill and request that say what it trades."""

    deployment_id: str
    account: TradingAccount
    skill: PerpSkill
    request: PerpRequest


class HyperliquidGuardian:
    """Implements `runs.account_guardian.AccountGuardian`."""

    def __init__(
        self,
        guarded: GuardedDeployment,
        line: AccountLine,
        store: OrderStore,
        signer: ActionSigner,
        signer_problem: "SignerCheck",
        now: Callable[[], Instant],
    ) -> None:
        self._guarded = guarded
        self._line = line
        self._store = store
        self._signer = signer
        self._signer_problem = signer_problem
        self._now = now
        self._cloids: set[str] = set()
        """The client ids of the deployment's orders that may be open, as last read, and of others that the exchange listed since."""

    async def problem(self) -> str:
        """Say why it could not act now; empty if it could. Reads the ids of the orders, so that they are known in an outage."""
        with suppress(Unreachable):
            self._cloids = {order.cloid for order in self._store.open_orders()}
        problem = await self._signer_problem.problem()
        if problem:
            return problem
        try:
            await self._line.reader.summary("resolve")
        except TransientError as error:
            return f"the exchange cannot be read: {error}"
        return ""

    # Cancelling -----------------------------------------------------------------------------------------------------

    async def cancel_orders(self) -> GuardianReport:
        """Cancel what the exchange lists of the deployment's orders, but not what protects its positions."""
        await self._line.clock.read()
        orders, kept = await self._cancellable()
        if not orders:
            return GuardianReport(0, 0, f"no orders to cancel, {plural(kept, 'stop stays', 'stops stay')}")
        problem = ""
        for start in range(0, len(orders), CANCELS_AT_ONCE):
            problem = await self._cancel(orders[start : start + CANCELS_AT_ONCE]) or problem
        left, kept = await self._cancellable()  # the answer to a cancel may be lost: only the list counts
        done = len({order.oid for order in orders} - {order.oid for order in left})
        detail = f"{plural(done, 'order')} cancelled, {plural(kept, 'stop stays', 'stops stay')}"
        return GuardianReport(done, len(left), f"{detail}; {len(left)} are left: {problem}" if left else detail)

    async def _cancellable(self) -> tuple[list[ReportedOrder], int]:
        """Return the deployment's open orders that do not protect, and how many do."""
        mine = [order for order in await self._line.reader.orders("reduce") if self._is_mine(order.cloid)]
        others = [order for order in mine if not (order.reduce_only and order.trigger is not None)]
        return others, len(mine) - len(others)

    def _is_mine(self, cloid: str) -> bool:
        if not cloid or cloid in self._cloids:
            return bool(cloid)
        with suppress(Unreachable):
            if self._store.get(cloid) is not None:
                self._cloids.add(cloid)
                return True
        return False

    async def _cancel(self, orders: Sequence[ReportedOrder]) -> str:
        """Send one cancel; return what went wrong. A cancel that is sent twice does no harm."""
        universe = read_universe(await self._line.info.post({"type": "meta"}, "reduce"))
        action = cancel_action([(universe[order.symbol].index, order.oid) for order in orders])
        expires_at = self._line.clock.estimate() + EXPIRY_MS
        request_id = f"w{orders[0].oid}.{expires_at}"
        payload = {
            "network": self._guarded.account.network,
            "action": action,
            "expires_after": expires_at,
            "vault": None,
            "verdict": None,
        }
        if not await self._line.exchange.wait("cancel", len(orders)):
            return "the rate budget is used up"
        try:
            signature = await self._signer.sign(request_id, payload)
        except TransientError as error:
            return str(error)
        if isinstance(signature, SigningRefusal):
            return f"the watchdog's signer refuses: {signature.code} {signature.message}"
        reply = await self._line.exchange.send(action, signature, "cancel", len(orders))
        return reply.text or next((answer.text for answer in reply.orders if answer.answer != "resting"), "")

    # Closing --------------------------------------------------------------------------------------------------------

    async def flatten(self) -> GuardianReport:
        """Close the positions in the deployment's symbols. Each order only reduces, so a second one opens nothing.

        The orders are stored as the deployment's own, so that its process finds its account explained. Its stops stay: an
        account that is reported flat by mistake must not lose them, and on a flat account they do nothing.
        """
        await self._line.clock.read()
        account = await self._line.reader.summary("reduce")
        symbols = self._guarded.skill.context.sorted_symbols
        positions = [account.positions[symbol] for symbol in symbols if symbol in account.positions]
        if not positions:
            return GuardianReport(0, 0, "no positions to close")
        universe = read_universe(await self._line.info.post({"type": "meta"}, "reduce"))
        terms = terms_of(self._guarded.request, self._guarded.skill, {each: universe[each].asset for each in symbols})
        setup = AccountSetup(self._guarded.deployment_id, symbols, universe, terms)
        network = self._guarded.account.network
        line = self._line
        sender = FencedSender(network, self._store, self._signer, line.exchange, line.reader, line.clock, self._now)
        protector = Protector(setup, sender, self._now)
        try:
            marks = await MarkSource(line.info, setup, self._now).read(symbols, "reduce")
        except TransientError:
            marks = {}
        note = ""
        for position in positions:
            side, price = (-1 if position.size > 0 else 1), believable_price(position, marks.get(position.symbol))
            order = await protector.close(position.symbol, side, abs(position.size), price)
            note = order.fence.note or note
        after = (await line.reader.summary("reduce")).positions
        left = [each.symbol for each in positions if each.symbol in after]
        detail = f"{len(positions) - len(left)} of {len(positions)} positions closed"
        return GuardianReport(len(positions) - len(left), len(left), f"{detail}; {note}" if left and note else detail)


class SignerCheck:
    """Checks the watchdog's signing process: it signs for this account, with another key than the trading one, and opens nothing."""

    def __init__(self, workspace: Workspace, account: TradingAccount) -> None:
        self._account = account
        self._client = HyperliquidSignerClient(account.watchdog_socket(workspace.home))
        self._trading = HyperliquidSignerClient(account.signer_socket(workspace.home))

    async def problem(self) -> str:
        """Say what is wrong with it; empty if nothing is."""
        try:
            state = await self._client.describe()
        except (TransientError, UserError) as error:
            return f"the watchdog's signer does not answer: {error}"
        if state.account.lower() != self._account.address.lower() or state.network != self._account.network:
            return f"the watchdog's signer signs for {state.account} on {state.network}"
        if state.order_notional_usd.strip("0."):
            return "the watchdog's signer may open positions: set the caps of its policy to 0"
        if state.build != build():
            return f"the watchdog's signer is build {state.build or 'unknown'}, and the watchdog is {build()}"
        with suppress(TransientError, UserError):  # the trading signer may be what has failed
            if (await self._trading.describe()).address == state.address:
                return "the watchdog's signer holds the key of the trading one: their nonces would collide"
        return ""
