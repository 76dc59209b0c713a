"""Builds the Sui writer: configured ids and addresses, the signing process, and the outbox in the workspace's database.

No key is read here: it is in the signing process, which is asked when a writer is opened. A key that is still in the environment, where
this process and its tools could read it, is refused.
"""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from pitboss.bootstrap.keys import Environment
from pitboss.bootstrap.machine import SystemClock, environment, new_id
from pitboss.bootstrap.settings import Settings
from pitboss.core.errors import UserError
from pitboss.signer.client import SignerClient
from pitboss.signer.protocol import SOCKET
from pitboss.store.database import Database
from pitboss.store.outbox import StoredOutbox
from pitboss.venues.predict.caps import PredictCaps
from pitboss.venues.predict.settings import PredictSettings
from pitboss.venues.predict.sui.broker import PredictSui
from pitboss.venues.predict.sui.chain import full_id, is_id
from pitboss.venues.predict.sui.graphql import GraphqlChain
from pitboss.venues.predict.sui.manager_setup import ManagerSetup
from pitboss.venues.predict.sui.order_sender import OrderSender, WriterSettings
from pitboss.venues.predict.sui.signer import ProcessSigner, open_process_signer
from pitboss.venues.predict.sui.transaction import ProtocolObjects, library

KEYS = ("SUI_PRIVATE_KEY", "AGENT_KEY")
"""Names under which a key was read from the environment once; the second is that of the original agent."""

_IDS = {
    "predict_package_id": "the protocol's package",
    "predict_id": "the Predict object",
    "predict_manager_id": "your PredictManager",
}
_COIN_TYPE = re.compile(r"(0x[0-9a-fA-F]{1,64})::(\w+)::(\w+)")


def protocol_objects(settings: PredictSettings, with_manager: bool = True) -> ProtocolObjects:
    """Return the configured protocol objects; without a manager where it is yet to be made."""
    ids: dict[str, str] = {}
    for name, meaning in _IDS.items():
        if name == "predict_manager_id" and not with_manager:
            ids[name] = ""
            continue
        value = str(getattr(settings, name)).strip()
        if not value:
            raise UserError(f"the id of {meaning} is not set", f"set PITBOSS_{name.upper()}, or {name}")
        if not is_id(value):
            raise UserError(f"setting {name} is not an id", "write 0x and up to 64 hex digits")
        ids[name] = full_id(value)
    coin = _COIN_TYPE.fullmatch(settings.predict_quote_type.strip())
    if coin is None:
        problem = "is not the type of a coin" if settings.predict_quote_type else "is not set"
        raise UserError(f"setting predict_quote_type {problem}", "write it as 0x…::dusdc::DUSDC")
    quote_type = f"{full_id(coin[1])}::{coin[2]}::{coin[3]}"
    return ProtocolObjects(ids["predict_package_id"], ids["predict_id"], ids["predict_manager_id"], quote_type)


def agent_object(settings: PredictSettings) -> str:
    """Return the id of the object that pauses the agent, in its full form, by which ids are compared; empty without one."""
    name = settings.predict_agent_id.strip()
    if name and not is_id(name):
        raise UserError("setting predict_agent_id is not an id", "write 0x and up to 64 hex digits, or leave it empty")
    return full_id(name) if name else ""


def writer_settings(settings: PredictSettings, caps: PredictCaps) -> WriterSettings:
    """Return the writer's settings, within the engine's caps. Mainnet must be allowed explicitly."""
    if settings.sui_network == "mainnet" and not settings.sui_allow_mainnet:
        raise UserError(
            "sui_network is mainnet, where money is real, and sui_allow_mainnet is not set",
            "use testnet; or set PITBOSS_SUI_ALLOW_MAINNET=true to use real money",
        )
    return WriterSettings(settings.sui_network, settings.sui_gas_budget, caps.max_slippage_bps, caps.max_price_age_ms)


async def open_signer(
    settings: Settings, predict: PredictSettings, environment: Environment = environment
) -> ProcessSigner:
    """Return the signing process of the settings. Raises `UserError` if it cannot sign for this network."""
    for name in KEYS:
        if environment(name):
            raise UserError(
                f"{name} is set: a key does not belong into the environment of this process",
                "give it to `pitboss signer init --scheme sui_transaction --import-key`, and unset the variable",
            )
    path = Path(predict.sui_signer) if predict.sui_signer else settings.home / "signer" / SOCKET
    return await open_process_signer(SignerClient(path), predict.sui_network)


@asynccontextmanager
async def open_setup(
    settings: Settings, predict: PredictSettings, with_manager: bool, environment: Environment = environment
) -> AsyncIterator[ManagerSetup]:
    """Open what creates and funds a manager."""
    chain = open_chain(predict)
    objects, writing = protocol_objects(predict, with_manager), writer_settings(predict, PredictCaps())
    library()
    try:
        yield ManagerSetup(chain, await open_signer(settings, predict, environment), objects, writing)
    finally:
        await chain.close()


def open_chain(predict: PredictSettings) -> GraphqlChain:
    """Return a client of the configured node; close it after use."""
    if not predict.sui_node_url:
        raise UserError("the address of a Sui node is not set", "set PITBOSS_SUI_NODE_URL, or sui_node_url")
    return GraphqlChain(predict.sui_node_url)


@asynccontextmanager
async def open_writer(
    settings: Settings,
    database: Database,
    caps: PredictCaps,
    environment: Environment = environment,
    predict: PredictSettings | None = None,
) -> AsyncIterator[PredictSui]:
    """Open a broker that writes to the chain. Missing settings are reported before the signer is asked.

    `predict` replaces the venue's settings, for a run whose options change some of them.
    """
    predict = predict or PredictSettings.of(settings)
    chain = open_chain(predict)
    objects, writing = protocol_objects(predict), writer_settings(predict, caps)
    library()  # a missing package is reported before the signer is asked
    now = SystemClock().now
    try:
        signer = await open_signer(settings, predict, environment)
        yield PredictSui(OrderSender(chain, StoredOutbox(database, now), signer, objects, writing, new_id(), now))
    finally:
        await chain.close()
