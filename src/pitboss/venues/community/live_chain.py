"""Opens the chain of a live agent: a node with the signing process, or with a wallet that signs itself."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pitboss.bootstrap.machine import SystemClock
from pitboss.bootstrap.redact import REDACTOR, keys_in
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import TransientError, UserError
from pitboss.signer.client import SignerClient
from pitboss.signer.protocol import SOCKET
from pitboss.store.outbox import StoredOutbox
from pitboss.venues.community.caps import CommunityCaps
from pitboss.venues.community.chain.json_rpc import HttpTransport, JsonRpcClient
from pitboss.venues.community.chain.ports import EvmChain
from pitboss.venues.community.chain.rpc_chain import RpcChain
from pitboss.venues.community.chain.transaction_sender import SenderSettings
from pitboss.venues.community.chain.wallet_chain import WalletChain
from pitboss.venues.community.chain_names import CHAIN_IDS, chain_id
from pitboss.venues.community.settings import CommunitySettings

REPLACE_S = 30.0
"""How long a version of a transaction waits before one with higher fees is sent."""


@asynccontextmanager
async def open_chain(workspace: Workspace, caps: CommunityCaps, owner: str) -> AsyncIterator[EvmChain | None]:
    """Open the chain for the duration of the block; None if no node is configured. Checks the chain id first."""
    settings = CommunitySettings.of(workspace.settings)
    if not settings.community_rpc_url:
        yield None
        return
    _require_chain(caps.chain, settings.community_chain_id)
    REDACTOR.add(*keys_in(settings.community_rpc_url))  # a node may repeat its key in an error
    transport = HttpTransport(settings.community_rpc_url, workspace.settings.http_hosts)
    try:
        client = JsonRpcClient(transport, settings.community_chain_id)
        try:
            await client.check_chain()
            chain = await _chain(workspace, settings, client, caps, owner)
        except TransientError as error:
            hint = "check PITBOSS_COMMUNITY_RPC_URL, and that `pitboss signer run` is running"
            raise UserError(f"the chain cannot be used: {error}", hint) from None
        yield chain
    finally:
        await transport.close()


def _require_chain(name: str, settings_id: int) -> None:
    """Refuse a node of another chain than the skill names. Names and ids that are not listed, as in trials, are not compared."""
    skill_id = chain_id(name)
    if skill_id is not None and skill_id != settings_id and settings_id in CHAIN_IDS.values():
        raise UserError(
            f"the skill calls contracts on {name!r}, and community_chain_id is {settings_id}",
            "correct risk.chain of the skill, or the node and its id in the settings",
        )


async def _chain(
    workspace: Workspace, settings: CommunitySettings, client: JsonRpcClient, caps: CommunityCaps, owner: str
) -> EvmChain:
    clock = SystemClock()
    outbox = StoredOutbox(workspace.database, clock.now)
    sender = SenderSettings(
        confirmations=settings.community_confirmations,
        pause_s=settings.community_poll_s,
        turns=max(1, round(settings.community_confirm_s / settings.community_poll_s)),
        replace_turns=max(1, round(REPLACE_S / settings.community_poll_s)),
        max_fee_per_gas_wei=int(caps.fee_wei_per_gas),
        max_priority_fee_per_gas_wei=min(SenderSettings().max_priority_fee_per_gas_wei, int(caps.fee_wei_per_gas)),
        max_gas=caps.gas,
        first_nonce=settings.community_first_nonce,
    )
    if settings.community_wallet:
        return WalletChain(client, settings.community_wallet, outbox, sender, owner, clock.now)
    socket = Path(settings.community_signer) if settings.community_signer else workspace.home / "signer" / SOCKET
    return await RpcChain.open(client, SignerClient(socket), outbox, sender, owner, clock.now)
