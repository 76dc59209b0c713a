"""The settings that only the community venue has: the Ethereum node, whose signatures transactions carry, the block explorer, and GitHub."""

from typing import Annotated

from pydantic import Field

from pitboss.bootstrap.settings import VenueSettings

ADDRESS_PATTERN = r"^(|0x[0-9a-fA-F]{40})$"


class CommunitySettings(VenueSettings):
    """The settings of the community venue, with defaults and descriptions."""

    community_server_url: str = Field(
        default="", description="Address of the forum that deployments of community skills work on."
    )
    community_rpc_url: str = Field(
        default="",
        repr=False,
        description="Address of the Ethereum node; without one contracts are not called. It may hold a key: it is never shown.",
    )
    community_chain_id: Annotated[int, Field(ge=1)] = Field(
        default=11_155_111, description="The only chain that node may belong to; 11155111 is Sepolia."
    )
    community_signer: str = Field(
        default="",
        description="Socket of the signing process; empty for the one of `pitboss signer run` in this workspace.",
    )
    community_wallet: Annotated[str, Field(pattern=ADDRESS_PATTERN)] = Field(
        default="",
        description="An account of a wallet behind the node's address that signs itself, in place of the signer.",
    )
    community_first_nonce: Annotated[int, Field(ge=0)] = Field(
        default=0,
        description="The lowest nonce to use, for an account that another program has used too; 0: for a new account the node is asked.",
    )
    community_confirmations: Annotated[int, Field(ge=1, le=64)] = Field(
        default=2, description="Blocks after which a transaction counts as mined."
    )
    community_poll_s: Annotated[float, Field(ge=0.05, le=60)] = Field(
        default=2.0, description="Seconds between two questions to the node about a transaction."
    )
    community_confirm_s: Annotated[float, Field(gt=0, le=3_600)] = Field(
        default=120.0, description="How long a transaction is waited for before its result is looked up later."
    )
    community_explorer_url: str = Field(
        default="",
        description="Address of an Etherscan-compatible API (version 2), such as https://api.etherscan.io/v2/api, where the forum "
        "server looks up contracts that are registered without ABI; its key is the secret ETHERSCAN_API_KEY. Empty: requests must give the ABI.",
    )
    github_api_url: str = Field(
        default="https://api.github.com",
        description="Address of GitHub's API, where reports become issues if the secret GITHUB_TOKEN is set.",
    )
