"""The request of a community backtest: the scenario itself is part of it, so a stored run needs no file to be repeated."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pitboss.sim.request import BacktestRequest


@dataclass(frozen=True, slots=True)
class CommunityRequest(BacktestRequest):
    """A backtest request of the community venue."""

    scenario: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The document of the scenario; the shipped one if it is empty."""
