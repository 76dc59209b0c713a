"""`PreparedRun`: a checked request with its data loaded, from which a course is built once its connections are open."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Self

import numpy as np

from pitboss.core.asof import Market
from pitboss.core.instant import Instant
from pitboss.core.market import Ints
from pitboss.sim.connections import UNCONNECTED, Connections
from pitboss.sim.course import Course
from pitboss.sim.request import BacktestRequest
from pitboss.skill.schema import SkillDocument


@dataclass(frozen=True, slots=True, eq=False)
class PreparedRun(ABC):
    """Everything a run needs except its connections. Each venue derives its own class and adds its data."""

    request: BacktestRequest
    skill: SkillDocument
    data_venue: str
    """The venue whose market data it uses."""
    data_digest: str
    synthetic: bool
    tick_at: Ints

    @abstractmethod
    def course(self, connections: Connections = UNCONNECTED) -> Course:
        """The run with its ports built, ready for `sim.replay`."""

    def markets(self) -> list[Market]:
        """The market data that it holds."""
        values = (getattr(self, each.name) for each in fields(self))
        return [value for value in values if isinstance(value, Market)]

    def with_tick(self, at: Instant) -> Self:
        """The same run with a tick at `at`, which may be the end of its data; the look-ahead audit cuts there."""
        return replace(self, tick_at=np.union1d(self.tick_at, np.array([at], np.int64)))
