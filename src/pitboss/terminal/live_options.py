"""Options that the live commands of all venues share: how to begin, what the model may cost, and where the status is served."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from pitboss.core.errors import UserError
from pitboss.terminal.options import Amount, option

if TYPE_CHECKING:
    from pitboss.runs.live_session import Begin


@Parameter(name="*")
@dataclass(frozen=True, slots=True, kw_only=True)
class LiveCommandOptions:
    """Options of every command that runs an agent live."""

    host: Annotated[str, option("--host", "Address on which the status endpoint listens.")] = "127.0.0.1"
    expose: Annotated[
        bool, option("--expose", "Let other machines reach the status endpoint, which has no authentication.")
    ] = False
    resume: Annotated[
        bool | None,
        Parameter(
            name="--resume",
            negative="--new",
            show_default=False,
            help="Insist on going on with the run that was stopped; or begin a new one. Default: go on if there is one.",
        ),
    ] = None
    max_cost_usd: Annotated[
        Amount | None, option("--max-cost-usd", "Limit on the total cost of the model; it is not called beyond it.")
    ] = None
    max_cost_usd_per_day: Annotated[
        Amount | None, option("--max-cost-usd-per-day", "Limit on the cost of the model per UTC day.")
    ] = None
    price_in: Annotated[Amount | None, option("--price-in", "USD for a million tokens the model reads.")] = None
    price_out: Annotated[Amount | None, option("--price-out", "USD for a million tokens the model writes.")] = None
    yes: Annotated[bool, option("--yes", "Run even if the price of the model is unknown.")] = False

    def check(self) -> None:
        """Refuse options that contradict each other."""
        from pitboss.live.status import is_loopback

        if not is_loopback(self.host) and not self.expose:
            raise UserError(
                f"--host {self.host}: other machines could read the status there",
                "add --expose if that is what you want",
            )
        if (self.price_in is None) != (self.price_out is None):
            raise UserError("--price-in and --price-out go together", "for example --price-in 0.5 --price-out 1.5")

    @property
    def begin(self) -> "Begin":
        """Whether an unfinished run is resumed."""
        return "auto" if self.resume is None else "resume" if self.resume else "new"


DEFAULT_LIVE_OPTIONS = LiveCommandOptions()
