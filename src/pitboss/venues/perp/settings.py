"""The settings that only the perp venue has: the exchange that deployments read and trade on."""

from pydantic import Field

from pitboss.bootstrap.settings import VenueSettings


class PerpSettings(VenueSettings):
    """The settings of the perp venue, with defaults and descriptions."""

    hyperliquid_url: str = Field(
        default="https://api.hyperliquid.xyz",
        description="Address of Hyperliquid's API: its data and, with a live account, where orders go.",
    )
