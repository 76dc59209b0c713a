"""`PreparedRun`: a checked request with its data loaded, from which a course is built once its connections are open."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

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
