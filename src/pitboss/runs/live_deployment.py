"""A deployment as a venue opens it: its stored row, its run, its skill and the request that it was made with."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.deployment import Mode
from pitboss.sim.request import BacktestRequest
from pitboss.skill.load import read_skill
from pitboss.skill.schema import SkillDocument
from pitboss.store.deployment_caps import caps_state
from pitboss.store.deployments import Deployment
from pitboss.store.runs import Run

DAILY_COST = "max_cost_usd_per_day"


@dataclass(frozen=True, slots=True, kw_only=True)
class DeployRequest:
    """What a person asks for: a skill with its caps already tightened, a mode, an account, and what it may cost."""

    skill: SkillDocument
    mode: Mode
    account: str = ""
    model: str = ""
    equity_usd: Decimal = Decimal(10_000)
    """The paper money of a deployment that trades on paper."""
    max_cost_usd: Decimal | None = None
    max_cost_usd_per_day: Decimal | None = None
    price_in: Decimal | None = None
    price_out: Decimal | None = None
    any_price: bool = False


@dataclass(frozen=True, slots=True)
class LiveDeployment:
    """A stored deployment, read again by the process that works on it."""

    workspace: Workspace
    deployment: Deployment
    run: Run
    skill: Any
    request: Any
    """The request of the venue that was stored with the run."""
    caps_number: int = 0
    """The number of the change of its caps that is in effect; 0 for the caps of its skill."""
    notify: Callable[[str], None] = lambda message: None
    """Shows a remark to the person who watches."""
    open_refusal: Callable[[], str] = str
    """Why nothing may be opened at this moment; empty if it may. A broker asks before bytes leave."""
    withdraws_opens: Callable[[], bool] = lambda: False
    """Whether orders that would open are cancelled: the deployment is halted, or it ends."""
    halt: Callable[[str, str], None] = lambda code, reason: None
    """Halts the deployment: a stable code and text for a person."""
    wake: Callable[[], None] = lambda: None
    """Updates the account at once instead of after the usual pause."""
    alarm: Callable[[str], None] = lambda text: None
    """Tells a person of something critical that does not halt by itself."""
    heard_signer: Callable[[str], None] = lambda build: None
    """Called with the build of the signing process at each of its answers."""

    @property
    def most_usd_per_day(self) -> Decimal | None:
        """The limit on what its model may cost in a UTC day."""
        stored = self.run.params.get(DAILY_COST)
        return None if stored is None else Decimal(stored)


def read_deployment(
    workspace: Workspace, deployment: Deployment, skill_type: type, request: BacktestRequest, **more: Any
) -> LiveDeployment:
    """Put a deployment together from what is stored about it. `more` are further fields of `LiveDeployment`."""
    run = workspace.runs.get(deployment.run_id)
    plain, number = skill_in_effect(workspace, run, deployment.id)
    skill = read_skill(plain, skill_type)
    return LiveDeployment(workspace, deployment, run, skill, replace(request, skill=plain), number, **more)


def skill_in_effect(workspace: Workspace, run: Run, deployment_id: str) -> tuple[dict[str, Any], int]:
    """The skill of a deployment with the caps that are in effect at this moment, and the number of their change."""
    plain, current = run.params["skill"], caps_state(workspace.database, deployment_id).current
    return (plain, 0) if current is None else ({**plain, "risk": dict(current.caps)}, current.number)
