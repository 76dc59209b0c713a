"""The bodies and documents of deployments as the API declares them. Their content comes from `runs/`."""

from decimal import Decimal
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.deployment import Command, DeploymentState, Mode
from pitboss.core.errors import UserError
from pitboss.runs.deployment_caps import require_caps, tightened_skill
from pitboss.runs.documents import read_given
from pitboss.runs.live_deployment import DeployRequest
from pitboss.server.api.run_body import Override, Usd
from pitboss.server.api.run_documents import EXAMPLE_ID, RunStatus
from pitboss.store.deployments import MAX_REASON_CHARS
from pitboss.store.passwords import LONGEST

EXAMPLE_AT = "2026-11-17T12:00:00Z"
Confirmation = Annotated[
    str,
    Field(max_length=64, description="For mode live: the name of the account, typed once more.", examples=["main"]),
]


class NewDeployment(BaseModel):
    """A skill to be run live."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "examples": [
                {"skill": "trend-thesis", "mode": "paper", "caps": ["risk.max_leverage=1"], "max_cost_usd_per_day": 2},
                {"skill": "trend-thesis@3", "mode": "live", "account": "main", "confirm": "main"},
            ]
        },
    )

    skill: Annotated[str, Field(min_length=1, max_length=200_000)] | dict[str, Any] = Field(
        description="A saved name, `name@version`, or a whole document.", examples=["trend-thesis"]
    )
    mode: Mode = Field(description="Where orders go.", examples=["paper"])
    account: str = Field("", max_length=64, description="Name of the account, for the modes shadow and live.")
    model: str = Field("", max_length=300, description="Model to use instead of the skill's.")
    equity_usd: Annotated[Decimal, Field(gt=0, lt=10**15, max_digits=30)] = Field(
        Decimal(10_000), description="The paper money of a deployment that trades on paper."
    )
    caps: list[Override] = Field(
        default_factory=list,
        max_length=100,
        description="Caps of the skill to override, as `risk.name=value`. They can only be tightened.",
    )
    max_cost_usd: Usd | None = Field(None, description="Most that the model may cost in all; then the agent holds.")
    max_cost_usd_per_day: Usd | None = Field(None, description="Most that the model may cost in a UTC day.")
    price_in: Usd | None = Field(None, description="Price of a million input tokens, in USD.")
    price_out: Usd | None = Field(None, description="Price of a million output tokens, in USD.")
    any_price: bool = Field(False, description="Accept a model without a known price.")
    confirm: Confirmation = ""
    password: str = Field(
        "", max_length=LONGEST, description="For mode live: the password of the caller, if it has one."
    )

    def request(self, workspace: Workspace) -> DeployRequest:
        """What is asked for, with the caps already tightened."""
        if (self.price_in is None) != (self.price_out is None):
            raise UserError("price_in and price_out go together", "give both, in USD for a million tokens")
        require_caps(self.caps)
        skill = tightened_skill(lambda given: read_given(workspace, self.skill, None, given), tuple(self.caps))
        names = ("mode", "account", "model", "equity_usd", "max_cost_usd", "max_cost_usd_per_day", "price_in", "price_out", "any_price")  # fmt: skip
        return DeployRequest(skill=skill, **{name: getattr(self, name) for name in names})


class NewCommand(BaseModel):
    """What a deployment is told to do, and why."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"command": "pause", "reason": "the feed looks wrong"}]}
    )

    command: Command = Field(examples=["pause"])
    reason: str = Field(
        "", max_length=MAX_REASON_CHARS, description="Why. It is recorded, and required to resume after a halt."
    )
    confirm: Confirmation = ""


class NewCaps(BaseModel):
    """Caps to change, and why."""

    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"examples": [{"caps": ["risk.max_leverage=1"], "reason": "news"}]}
    )

    caps: list[Override] = Field(min_length=1, max_length=100, description="Caps to change, as `risk.name=value`.")
    reason: str = Field("", max_length=MAX_REASON_CHARS, description="Why. It is recorded.")
    confirm: Confirmation = ""
    password: str = Field("", max_length=LONGEST, description="For a raise: the password of the caller, if it has one.")


class NewDeploymentState(BaseModel):
    """A deployment that was stored; a process begins to work on it."""

    deployment_id: str = Field(examples=[EXAMPLE_ID])
    state: DeploymentState = Field(examples=["running"])
    run_id: str = Field(examples=["81c04d5e6f70"], description="The run that holds its records.")


class CommandResult(BaseModel):
    """A command, and the state of the deployment after it."""

    command_id: str = Field(examples=["5d1e0f9a8b7c"])
    acked_at: str | None = Field(
        examples=[EXAMPLE_AT], description="When it was carried out; null while it waits for a process."
    )
    state: DeploymentState = Field(examples=["paused"])
    note: str | None = Field(examples=[None], description="A remark on how it was carried out.")


class CommandDocument(BaseModel):
    """A command that was sent to a deployment."""

    deployment_id: str = Field(examples=[EXAMPLE_ID])
    command_id: str = Field(examples=["5d1e0f9a8b7c"])
    number: int = Field(examples=[1], description="Its number among the commands of the deployment, from 1.")
    command: Command = Field(examples=["pause"])
    reason: str = Field(examples=["the feed looks wrong"])
    user_name: str = Field(examples=["anna"], description="Who sent it.")
    sent_at: str = Field(examples=[EXAMPLE_AT])
    acked_at: str | None = Field(examples=[EXAMPLE_AT])
    state: DeploymentState | None = Field(examples=["paused"], description="The state after it; null while it waits.")
    note: str = Field(examples=[""])


class DeploymentDocument(BaseModel):
    """A deployment, or a live run that a command works on in the foreground."""

    deployment_id: str = Field(
        examples=[EXAMPLE_ID], description="Of a run in the foreground the id of the run; it takes no commands."
    )
    run_id: str = Field(examples=["81c04d5e6f70"], description="The run that holds its records.")
    foreground: bool = Field(
        examples=[False],
        description="Whether it is no deployment but a run of a command such as `pitboss predict run`.",
    )
    skill: str = Field(examples=["trend-thesis"])
    skill_version: int | None = Field(examples=[3])
    venue: str = Field(examples=["perp"])
    mode: str = Field(examples=["paper"], description="`paper`, `shadow` or `live`.")
    account: str | None = Field(examples=[None])
    model: str = Field(examples=["policy/momentum"])
    state: DeploymentState | None = Field(examples=["running"], description="Null for a run in the foreground.")
    code: str | None = Field(examples=[None], description="Why it is not running, as a stable name.")
    reason: str | None = Field(examples=[None], description="Why it is not running, in words.")
    attended: bool | None = Field(examples=[True], description="Whether a process works on it.")
    heartbeat_at: str | None = Field(examples=[EXAMPLE_AT], description="When its process last reported.")
    last_record_at: str | None = Field(examples=[EXAMPLE_AT], description="The time of its newest record.")
    equity: str | None = Field(examples=["10012.22"], description="The value of its account after that record.")
    created_at: str = Field(examples=[EXAMPLE_AT])
    changed_at: str | None = Field(examples=[EXAMPLE_AT], description="When its state last changed.")
    error_text: str | None = Field(examples=[None])
    status: RunStatus | None = Field(examples=["running"], description="The status of its run.")
    started_at: str | None = Field(examples=[EXAMPLE_AT])
    finished_at: str | None = Field(examples=[None])
    silent_s: int | None = Field(description="Seconds since it last committed a record; null if it is not active.")
    cost_usd: float | None = Field(examples=[0.42])


class AlarmDocument(BaseModel):
    """What a person has to read at once. Unread for a minute, it halts the deployment."""

    text: str = Field(examples=["the exchange has liquidated positions of the account"])
    raised_at: str = Field(examples=[EXAMPLE_AT])
    read_at: str | None = Field(
        examples=[None], description="When a person has acknowledged it; null while it is unread."
    )
    read_by: str = Field(examples=[""])


class CapChange(BaseModel):
    """One cap before and after a change; null for no limit."""

    model_config = ConfigDict(populate_by_name=True)

    cap: str = Field(examples=["max_leverage"])
    before: Any = Field(alias="from", examples=[1])
    after: Any = Field(alias="to", examples=[2])


class PendingCaps(BaseModel):
    """A raise of caps that takes effect later."""

    effective_at: str = Field(examples=[EXAMPLE_AT])
    asked_at: str = Field(examples=[EXAMPLE_AT])
    user_name: str = Field(examples=["anna"], description="Who asked for it.")
    reason: str = Field(examples=[""])
    changes: list[CapChange]


class CapsDocument(BaseModel):
    """The caps of a deployment: those in effect, those of its skill, and a raise that is pending."""

    deployment_id: str = Field(examples=[EXAMPLE_ID])
    caps: dict[str, Any] = Field(examples=[{"max_leverage": 1}], description="The caps in effect.")
    skill_caps: dict[str, Any] = Field(
        examples=[{"max_leverage": 3}], description="The caps of its skill: none can be raised beyond them."
    )
    pending: PendingCaps | None = Field(description="A raise that is not in effect yet; null if there is none.")


class DeploymentDetails(DeploymentDocument, CapsDocument):
    """A deployment with its caps, its account, its newest commands and its newest entries."""

    every_s: float | None = Field(examples=[900.0], description="The time between two ticks.")
    builds: dict[str, str] = Field(
        examples=[{"deployed_by": "0.1.0+4be1c02d9f57", "host": "0.1.0+4be1c02d9f57"}],
        description="The build of each process that takes part, as last heard: `deployed_by`, `host`, `signer`, `watchdog`.",
    )
    alarm: AlarmDocument | None = Field(description="Its newest alarm; null if there never was one.")
    account_after: dict[str, Any] | None = Field(
        examples=[{"equity_usd": "10012.22", "cash_usd": "9999.38", "positions": {}, "orders": []}],
        description="The account after the newest record that holds it, as its venue writes it.",
    )
    commands: list[CommandDocument]
    entries: list[dict[str, Any]] = Field(
        examples=[[{"seq": 7, "kind": "tick", "at": EXAMPLE_AT, "intents": [], "verdicts": [], "events": []}]],
        description="Its newest records for display, newest first: ticks, what happened between them, missed ticks.",
    )
