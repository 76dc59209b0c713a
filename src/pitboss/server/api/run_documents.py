"""The documents of runs as the API declares them. Their content comes from `runs/`; further keys may be added there."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from pitboss.server.api.run_body import EstimateDocument

RunStatus = Literal["queued", "loading", "running", "computing_metrics", "complete", "error", "cancelled"]
EXAMPLE_ID = "3f9a1c2b4d5e"


class RunFacts(BaseModel):
    """What every document of a run has."""

    model_config = ConfigDict(extra="allow")

    run_id: str = Field(examples=[EXAMPLE_ID])
    status: RunStatus = Field(examples=["complete"])
    digest: str | None = Field(description="The digest of the whole run; null before it is complete.")
    skill_digest: str
    data_digest: str | None
    model: str = Field(examples=["policy/momentum"])
    endpoint: str | None = Field(description="The host that answered; null for programs.")
    forked_from: dict[str, Any] | None
    from_: str = Field(alias="from", examples=["2025-02-10T00:00:00Z"])
    to: str = Field(examples=["2025-03-10T00:00:00Z"])
    ticks: int = Field(examples=[2688])
    cost_usd: float | None
    saved_usd: float
    wasted_usd: float
    quality: dict[str, int] | None
    estimate: dict[str, Any] | None
    wall_s: float
    report: str | None
    errors: list[str]
    progress_pct: float = Field(examples=[100.0])
    error_text: str | None
    created_at: str
    started_at: str | None
    finished_at: str | None


class RunSummary(RunFacts):
    """A run in a list."""

    skill: str = Field(examples=["trend-thesis"])
    total_return_pct: float | None = Field(examples=[3.4])
    result: Any = None
    result_metric: str = Field(examples=["total_return_pct"])
    silent_s: int | None = None
    study_id: str | None = Field(None, description="The study that it belongs to; null for a single run.")


class RunDocument(RunFacts):
    """A run with its results: the same document as `pitboss runs show --json`."""

    metrics: dict[str, Any] | None
    baselines: dict[str, Any] | None
    spend: dict[str, float | None]
    speculation: dict[str, int] | None = Field(
        examples=[{"asked": 40, "used": 33}],
        description="Speculative decisions, and how many of them were used; null without any.",
    )


class RunPage(BaseModel):
    """One page of a list of runs, newest first."""

    runs: list[RunSummary]
    next: str | None = Field(description="The value of `before` for the next page; null on the last one.")
    damaged: list[str] = Field(
        default_factory=list, description="Runs whose rows were changed after they were written."
    )


class Submitted(BaseModel):
    """Queued runs."""

    run_id: str = Field(examples=[EXAMPLE_ID])
    run_ids: list[str] = Field(examples=[[EXAMPLE_ID]])
    estimate: EstimateDocument


class RunState(BaseModel):
    """The state of a run after a command."""

    run_id: str = Field(examples=[EXAMPLE_ID])
    status: RunStatus = Field(examples=["running"])
    cancel_requested: bool = False


class Verification(BaseModel):
    """The result of checking a run byte for byte."""

    ok: bool = Field(examples=[True])
    run_id: str = Field(examples=[EXAMPLE_ID])
    digest: str | None
    problems: list[str] = Field(examples=[[]])


class RunDifference(BaseModel):
    """The first record and all metrics in which two runs differ."""

    first: str = Field(examples=[EXAMPLE_ID])
    second: str = Field(examples=["81c04d5e6f70"])
    same: bool
    first_difference: dict[str, Any] | None = Field(
        examples=[{"seq": 12, "tick_at": "2025-02-11T08:00:00Z", "fields": ["proposals", "verdicts"]}]
    )
    metrics: dict[str, Any] = Field(examples=[{"total_return_pct": {"first": 1.2, "second": -0.4}}])
