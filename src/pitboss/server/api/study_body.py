"""The bodies of requests that start studies, and the plans that they become."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.jobs.plan import OF_RUN, planned_runs
from pitboss.jobs.study_plans import BuiltPlan, arena_plan, sweep_plan
from pitboss.runs.venues import venue_of
from pitboss.server.api.run_body import Confirmed, SkillRange
from pitboss.sim.study.axis import parse_axes

MOST_RUNS = 5_000
"""Runs that one request may queue; larger studies are for the command line."""
ModelName = Annotated[str, Field(min_length=1, max_length=300)]


class StudyBody(SkillRange, Confirmed, ABC):
    """What sweeps and arenas share."""

    name: str = Field("", max_length=100, description="Another name makes it another study, even if all else is equal.")
    repeats: int = Field(1, ge=1, le=100, description="Runs for each point, with the seeds seed, seed + 1, …")

    @abstractmethod
    def built(self, workspace: Workspace) -> BuiltPlan:
        """The plan of the study."""

    def checked(self, workspace: Workspace) -> BuiltPlan:
        """The plan, if it has no more runs than one request may queue."""
        built = self.built(workspace)
        count = len(planned_runs(built.plan, built.expected_trials[: MOST_RUNS + 1]))
        if count > MOST_RUNS:
            raise UserError(f"this study has more than {MOST_RUNS:,} runs", "vary less, or draw points with `random`")
        return built


class SweepBody(StudyBody):
    """One skill with varied settings."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "sweep",
                    "skill": "trend-thesis",
                    "from": "2025-02-01",
                    "to": "2025-03-01",
                    "model": "policy/momentum",
                    "vary": ["risk.max_leverage=1,2,5", "context.bars_lookback=50..200:50"],
                }
            ]
        }
    )
    kind: Literal["sweep"]
    model: str = Field("", max_length=300, description="Model to use instead of the skill's.")
    vary: list[Annotated[str, Field(max_length=2_000)]] = Field(
        min_length=1,
        max_length=10,
        description="A field of the skill and its values, such as `risk.max_leverage=1,2,5`.",
    )
    random: int | None = Field(None, ge=1, le=MOST_RUNS, description="Points to draw, instead of running all of them.")
    search: int | None = Field(
        None, ge=1, le=MOST_RUNS, description="Points that optuna chooses, each from the results of the earlier ones."
    )
    walk_forward: str = Field(
        "",
        max_length=60,
        examples=["30d/10d"],
        description="Select on one period, test on the next, then move on: `30d/10d`, or `30d/10d/1d` with a gap.",
    )
    anchored: bool = Field(
        False, description="With `walk_forward`: begin every selection period at the start of the range."
    )
    by: str = Field("", max_length=60, description="Metric that ranks the trials; the venue's by default.")

    def built(self, workspace: Workspace) -> BuiltPlan:
        """The plan of the sweep."""
        request = self.request(workspace)
        axes = parse_axes(self.vary)
        forbidden = {f"{OF_RUN}{name}" for name in venue_of(request.skill).file_fields}
        for axis in axes:
            if axis.name in forbidden:
                raise UserError(f"vary {axis.name}: files of the server cannot be named", "leave it out")
        return sweep_plan(
            request,
            axes,
            repeats=self.repeats,
            by=self.by,
            name=self.name,
            random=self.random,
            search=self.search,
            walk=self.walk_forward,
            anchored=self.anchored,
            owner=workspace.owner,
        )

    def own_fields(self, skill: dict[str, Any], fields: Mapping[str, Any]) -> dict[str, Any]:
        """The model."""
        del skill, fields
        return {"model": self.model}


class ArenaBody(StudyBody):
    """Several models with one skill over the same market."""

    model_config = ConfigDict(
        json_schema_extra={
            "examples": [
                {
                    "kind": "arena",
                    "skill": "trend-thesis",
                    "from": "2025-02-01",
                    "to": "2025-03-01",
                    "models": ["policy/momentum", "standin/analyst"],
                    "repeats": 3,
                }
            ]
        }
    )
    kind: Literal["arena"]
    models: list[ModelName] = Field(min_length=1, max_length=50)
    baselines: list[ModelName] | None = Field(
        None, max_length=50, description="Policies to compare with; those of the venue by default, none if empty."
    )

    def built(self, workspace: Workspace) -> BuiltPlan:
        """The plan of the arena."""
        return arena_plan(
            self.request(workspace), self.models, self.baselines, self.repeats, self.name, workspace.owner
        )


NewStudy = Annotated[SweepBody | ArenaBody, Field(discriminator="kind")]
