"""Which exchange a deployment reads and trades on: the address in the settings, or the public one."""

from pitboss.bootstrap.settings import Settings
from pitboss.venues.perp.hyperliquid.transport import MAINNET_URL


def exchange_url(settings: Settings) -> str:
    """Return the address of Hyperliquid's API."""
    return settings.hyperliquid_url or MAINNET_URL
