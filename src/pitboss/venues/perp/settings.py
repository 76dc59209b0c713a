"""The exchange that deployments of the perp venue read and trade on: the platform's setting `hyperliquid_url`.

It is one setting for data and for orders, so that the two are never of different networks.
"""

from pitboss.bootstrap.settings import Settings
from pitboss.core.noun import noun

PUBLIC_URL = "https://api.hyperliquid.xyz"


@noun
class PerpSettings:
    """The settings that the perp venue reads."""

    hyperliquid_url: str

    @classmethod
    def of(cls, settings: Settings) -> "PerpSettings":
        """Return those of a workspace."""
        return cls(settings.hyperliquid_url or PUBLIC_URL)
