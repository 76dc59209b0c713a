"""The symbols that a perp skill may name."""

from pitboss.bootstrap.settings import Settings
from pitboss.bootstrap.workspace import lake_of
from pitboss.venues.perp.assets import SHIPPED


def available_symbols(settings: Settings) -> set[str]:
    """Return the symbols whose terms are shipped or imported, or that have data in the lake."""
    lake = lake_of(settings)  # not created if it does not exist: checking a file must not write anything
    symbols = set(SHIPPED)
    for venue in lake.venues():
        symbols |= {*lake.symbols(venue), *lake.assets(venue)}
    return symbols
