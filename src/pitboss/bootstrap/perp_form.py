"""The perp venue's side of a run that is only shown. The side that carries one out is `perp_kit`."""

from pitboss.bootstrap.perp_request import request_of
from pitboss.bootstrap.realism import settings as realism

__all__ = ["realism", "request_of"]
