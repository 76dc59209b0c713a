"""The perp venue's side of a run that is only shown. The side that carries one out is `perp_kit`."""

from pitboss.venues.perp.realism import settings as realism
from pitboss.venues.perp.request import request_of

__all__ = ["realism", "request_of"]
