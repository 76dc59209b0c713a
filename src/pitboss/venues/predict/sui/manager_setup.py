"""`ManagerSetup`: makes a PredictManager and deposits into it. Each call is one transaction, simulated before it is sent.

Unlike orders these are commands of a user, who sees the result; they are not stored. If the result of a sent transaction
is not known in the end, the error names its digest, and nothing is sent a second time.
"""

import asyncio
from collections.abc import Awaitable, Callable

from pitboss.core.errors import TransientError, UserError
from pitboss.core.noun import noun
from pitboss.venues.predict.case import dusdc
from pitboss.venues.predict.sui.chain import CLOCK, Chain, Effects, TransactionBasis
from pitboss.venues.predict.sui.gas import gas_coin, network_problem
from pitboss.venues.predict.sui.order import failure_text
from pitboss.venues.predict.sui.order_sender import WriterSettings
from pitboss.venues.predict.sui.ports import Signs
from pitboss.venues.predict.sui.transaction import Fee, ProtocolObjects, build_create_manager, build_deposit, digest_of

LOOKS = 5
"""How often the chain is asked for the result of a transaction whose reply was lost."""


@noun
class SetupResult:
    """The result of a transaction: its digest, and the manager it concerns, empty if a dry run would create one."""

    digest: str
    manager_id: str
    sent: bool


class ManagerSetup:
    """Creates and funds the manager of one key."""

    def __init__(
        self,
        chain: Chain,
        signer: Signs,
        objects: ProtocolObjects,
        settings: WriterSettings,
        pause: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self._chain = chain
        self._signer = signer
        self._objects = objects
        self._settings = settings
        self._pause = pause

    async def create(self, send: bool) -> SetupResult:
        """Create a manager; with `send` False only simulate that."""
        basis, fee = await self._basis((self._objects.predict, CLOCK))
        effects = await self._run(build_create_manager(self._objects, basis, fee), send)
        for event in effects.events:
            if event.name == "PredictManagerCreated":
                return SetupResult(effects.digest, str(event.fields.get("manager_id", "")) if send else "", send)
        raise UserError("the transaction created no PredictManager", "check predict_package_id in the settings")

    async def deposit(self, amount: int, send: bool) -> SetupResult:
        """Deposit an amount of the quote coin into the manager; with `send` False only simulate that."""
        objects = self._objects
        basis, fee = await self._basis((objects.predict, objects.manager, CLOCK))
        if objects.manager not in basis.shared:
            raise UserError(
                f"there is no PredictManager {objects.manager} on {self._settings.network}",
                "`pitboss predict manager create` makes one",
            )
        owned = await self._chain.coins(self._signer.address, objects.quote_type)
        coins = sorted(owned, key=lambda coin: (-coin.balance, coin.id))
        total, needed = 0, 0
        while total < amount and needed < len(coins):
            total, needed = total + coins[needed].balance, needed + 1
        if total < amount:
            raise UserError(
                f"{self._signer.address} has {dusdc(total)} of the quote coin, and {dusdc(amount)} is to be deposited",
                "deposit less, or send it more first",
            )
        effects = await self._run(build_deposit(objects, basis, tuple(coins[:needed]), amount, fee), send)
        return SetupResult(effects.digest, objects.manager, send)

    async def _basis(self, ids: tuple[str, ...]) -> tuple[TransactionBasis, Fee]:
        address, settings = self._signer.address, self._settings
        basis = await self._chain.read_basis(ids, address)
        coin = gas_coin(basis, address, settings.network, settings.gas_budget, lambda keys: ())
        problem = network_problem(basis, settings.network)
        if problem or isinstance(coin, str):
            raise UserError(problem or str(coin), "check sui_node_url and sui_network; gas is paid in SUI")
        return basis, Fee(address, coin, settings.gas_budget, basis.gas_price, basis.epoch)

    async def _run(self, tx: bytes, send: bool) -> Effects:
        simulated = await self._chain.simulate(tx)
        if not simulated.ok:
            raise UserError(f"the chain would refuse it: {failure_text(simulated)}", "nothing was sent")
        if not send:
            return simulated
        digest = digest_of(tx)
        try:
            signature = await self._signer.sign(tx)
        except TransientError as error:
            raise UserError(
                f"it was not signed: {error}", "nothing was sent; look at the policy of the signer"
            ) from None
        try:
            effects = await self._chain.execute(tx, signature)
        except TransientError as error:
            effects = await self._result_of(digest, str(error))
        if not effects.ok:
            raise UserError(f"transaction {digest} had no effect: {failure_text(effects)}", "only gas was paid")
        return effects

    async def _result_of(self, digest: str, reason: str) -> Effects:
        for _ in range(LOOKS):
            await self._pause(self._settings.pause_s)
            try:
                effects = await self._chain.outcome(digest)
            except TransientError:
                continue
            if effects is not None:
                return effects
        raise UserError(f"the result of transaction {digest} is not known: {reason}", "look it up before you try again")
