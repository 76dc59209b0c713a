"""`PreparedRun`: a checked request with its data loaded, from which a course is built once its connections are open."""

from abc import ABC, abstractmethod
from dataclasses import dataclass, fields, replace
from typing import Any, Self

import numpy as np

from pitboss.agent.blind.translator import Translator
from pitboss.core.asof import Market
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.market import Ints
from pitboss.sim.connections import UNCONNECTED, Connections
from pitboss.sim.course import COMMIT_RECORDS, LEAP_COMMITS, MAX_MODEL_ERRORS, Course
from pitboss.sim.request import BacktestRequest
from pitboss.skill.schema import SkillDocument


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PreparedRun(ABC):
    """Everything a run needs except its connections. Each venue derives its own class and adds its data."""

    request: BacktestRequest
    skill: SkillDocument
    data_venue: str
    """The venue whose market data it uses."""
    data_digest: str
    synthetic: bool
    tick_at: Ints
    commit_records: int = COMMIT_RECORDS
    most_errors: int = MAX_MODEL_ERRORS
    anonymiser: Translator | None = None
    """How a blind run is anonymised."""

    def __post_init__(self) -> None:
        """Refuse a blind run that its venue did not anonymise."""
        if self.request.blind and self.anonymiser is None:
            raise UserError("runs of this venue cannot be blind", "leave --blind out")

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

    def ports_fields(self, connections: Connections) -> dict[str, Any]:
        """The fields of `Ports` that follow from the request and the connections on every venue."""
        return ports_fields(self.request, connections)

    def course_fields(self, connections: Connections, planned: bool = False) -> dict[str, Any]:
        """The fields of `Course` that follow from the request and the connections on every venue."""
        return {
            "tick_at": self.tick_at,
            "to_at": self.request.to_at,
            "planned": planned,
            "commit_records": self.commit_records * LEAP_COMMITS if planned else self.commit_records,
            "speculation": connections.speculation,
            "most_errors": self.most_errors,
        }


def ports_fields(request: BacktestRequest, connections: Connections) -> dict[str, Any]:
    """The fields of `Ports` that follow from a request and its connections on every venue."""
    return {
        "keep_prompts": request.prompts is not False,
        "build_prompts": request.builds_prompts,
        "tracer": connections.tracer,
        "notes": connections.server_tools.notes,
    }
