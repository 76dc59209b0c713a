"""The settings that only the predict venue has: the protocol's indexer and objects, and the Sui node to write through."""

from typing import Literal

from pydantic import Field

from pitboss.bootstrap.settings import VenueSettings


class PredictSettings(VenueSettings):
    """The settings of the predict venue, with defaults and descriptions."""

    predict_server_url: str = Field(
        default="", description="Address of the predict protocol's indexer; it has no default."
    )
    predict_id: str = Field(default="", description="Id of the protocol's Predict object, as 0x and hex digits.")
    predict_manager_id: str = Field(default="", description="Id of your PredictManager object, as 0x and hex digits.")
    predict_agent_id: str = Field(
        default="", description="Id of an object on the chain whose flag is_active pauses the agent; optional."
    )
    predict_package_id: str = Field(default="", description="Id of the protocol's package, for writing to the chain.")
    predict_quote_type: str = Field(
        default="", description="Type of the coin that is paid with, as 0x…::dusdc::DUSDC, for writing to the chain."
    )
    sui_node_url: str = Field(default="", description="Address of a Sui node's GraphQL service; it has no default.")
    sui_signer: str = Field(
        default="",
        description="Socket of the signing process for Sui; empty for the one of `pitboss signer run` in this workspace.",
    )
    sui_network: Literal["testnet", "devnet", "localnet", "mainnet"] = Field(
        default="testnet", description="The network that node must belong to."
    )
    sui_allow_mainnet: bool = Field(default=False, description="Whether sui_network may be mainnet: real money.")
    sui_gas_budget: int = Field(
        default=50_000_000, ge=1_000_000, le=10_000_000_000, description="Most MIST that one transaction may burn."
    )
