"""`LiveVenue`: the part of a venue that deployments use. `Venue` derives from it; a venue without live modes changes nothing here."""

from typing import TYPE_CHECKING, Any, ClassVar

from pitboss.core.errors import InvariantError, UserError

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from pitboss.bootstrap.trading_accounts import TradingAccount
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.core.deployment import Mode
    from pitboss.core.instant import Instant
    from pitboss.runs.account_guardian import AccountGuardian
    from pitboss.runs.attribution_result import Attribution
    from pitboss.runs.checklist import Check
    from pitboss.runs.live_deployment import DeployRequest, LiveDeployment
    from pitboss.sim.request import BacktestRequest
    from pitboss.skill.schema import SkillDocument
    from pitboss.store.deployments import Deployment
    from pitboss.store.runs import Run


class LiveVenue:
    """What a venue has for deployments: modes, checks, ports, a guardian."""

    name: ClassVar[str]
    live_modes: "ClassVar[tuple[Mode, ...]]" = ()
    """The modes in which its skills can be deployed."""

    def request_type(self) -> "type[BacktestRequest]":
        """The class of its requests."""
        raise NotImplementedError

    def live_request(self, deploy: "DeployRequest", now: "Instant") -> "BacktestRequest":
        """The request that is stored with a deployment. Its range is empty: its end is not known, and nothing is replayed."""
        from pitboss.skill.document import to_plain

        return self.request_type()(
            skill=to_plain(deploy.skill),
            from_at=now,
            to_at=now,
            model=deploy.model,
            equity_usd=deploy.equity_usd,
            max_cost_usd=deploy.max_cost_usd,
            price_in=deploy.price_in,
            price_out=deploy.price_out,
            any_price=deploy.any_price,
            speculate="0",  # a live tick cannot be asked ahead
        )

    def check_live(self, workspace: "Workspace", deploy: "DeployRequest") -> dict[str, Any]:
        """Refuse a deployment that cannot run, before anything is stored; returns further parameters to store."""
        del workspace, deploy
        return {}

    def open_live(self, live: "LiveDeployment") -> "AbstractAsyncContextManager[Any]":
        """Open the data, the account and the broker of a deployment, in one of `live_modes`: a `live_session.LiveSide`."""
        raise InvariantError(f"venue {self.name} has no live modes, and {live.deployment.id} has one")

    def open_guardian(
        self, workspace: "Workspace", deployment: "Deployment"
    ) -> "AbstractAsyncContextManager[AccountGuardian]":
        """Open what the watchdog uses for a deployment in mode live: its own connection, and a key that only reduces."""
        raise InvariantError(f"venue {self.name} sends no orders, and {deployment.id} of {workspace.owner} does")

    async def preflight(
        self, workspace: "Workspace", account: "TradingAccount", skill: "SkillDocument | None"
    ) -> "list[Check]":
        """Check what an account of this venue needs before real money; nothing is ordered."""
        del workspace, account, skill
        return []

    def attribution(
        self, workspace: "Workspace", run: "Run", span: "tuple[Instant, Instant]", data_venue: str
    ) -> "Attribution":
        """Replay the decisions of a span of a deployment on paper, and explain the difference of the results by trade.

        `data_venue` is the venue whose bars are used; empty for that of the deployment.
        """
        del workspace, run, span, data_venue
        raise UserError(f"venue {self.name} cannot replay the decisions of a deployment on paper")
