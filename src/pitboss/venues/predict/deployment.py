"""Configuration of a live predict run: the skill document, command line options, and AGENT_* environment variables.

The variables are those of the original agent service, so its deployments need no other configuration. The command line
takes precedence over the variables, the variables over the document. The private key (AGENT_KEY) is not read: it belongs to the signer.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from decimal import Decimal, InvalidOperation
from pathlib import Path

from pydantic import ValidationError

from pitboss.core.errors import UserError
from pitboss.core.instant import HOUR_MS, SECOND_MS
from pitboss.core.suggestion import suggestion
from pitboss.live.board import display_text
from pitboss.models import catalog
from pitboss.runs.live_session import Begin
from pitboss.skill.load import check_text, read_text, read_text_beside, summary
from pitboss.venues.predict.skill import PredictSkill, PredictStrategy
from pitboss.venues.predict.writer_choice import Network, Writer

PORT = 8083
"""Default port of the first agent of the original service; its resolver uses the port below."""

STRATEGIES = {
    "alternate": "policy/alternate",
    "yes-only": "policy/yes_only",
    "no-only": "policy/no_only",
    "llm": catalog.PRESET,
}
SHORTEST_MS, LONGEST_MS = SECOND_MS, HOUR_MS

Environment = Callable[[str], str | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictRunOptions:
    """Options of a live run that have the same meaning on the command line and in the configuration."""

    equity: Decimal
    host: str = "127.0.0.1"
    ticks: int | None = None
    begin: Begin = "auto"
    max_cost_usd: Decimal | None = None
    max_cost_usd_per_day: Decimal | None = None
    price_in: Decimal | None = None
    price_out: Decimal | None = None
    any_price: bool = False
    scheduled: bool = False
    """Whether the markets are those of the operator's schedule, with fitted surfaces, instead of the indexer's."""
    indexer_url: str = ""
    prices_url: str = ""
    writer: Writer = "paper"
    network: Network | None = None
    """The network of the Sui writer; None for the one in the settings."""
    dry_run: bool = False
    """Whether the Sui writer only simulates its transactions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PredictDeployment(PredictRunOptions):
    """The complete configuration of a live run; only `llm` is still to be resolved to a model."""

    skill: PredictSkill
    model: str
    every_ms: int
    name: str
    mandate: str
    port: int = PORT
    manager_id: str = ""
    agent_id: str = ""
    """Id of an object on the chain whose flag `is_active` pauses the agent."""
    notes: tuple[str, ...] = ()
    """Notices for the user, shown before the run starts."""

    @property
    def mode(self) -> str:
        """Where orders go: `paper`, `sui`, or `dry run` if they are only simulated on the chain."""
        return "dry run" if self.dry_run else self.writer


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions(PredictRunOptions):
    """Options given on the command line; empty or None if absent."""

    equity: Decimal = Decimal(100)
    overrides: tuple[str, ...] = ()
    model: str = ""
    every_ms: int | None = None
    port: int | None = None


def deployment(file: Path, options: LiveOptions, environment: Environment) -> PredictDeployment:
    """Merge the three sources. Raises `UserError` that names the invalid value."""
    variables = ReadVariables(environment)
    skill, notes = _skill(file, options.overrides, variables)
    every_ms = options.every_ms
    if every_ms is None:
        every_ms = variables.whole_number("AGENT_TICK_MS", SHORTEST_MS, LONGEST_MS) or skill.schedule.every_ms
    if not SHORTEST_MS <= every_ms <= LONGEST_MS:
        raise UserError("--every: not from 1s to 1h", "for example --every 60s")
    if options.equity <= 0:
        raise UserError("--equity: must be above zero", "for example --equity 100")
    if options.ticks is not None and options.ticks < 1:
        raise UserError("--ticks: must be at least 1", "omit it to run until you stop it")
    port = options.port if options.port is not None else variables.whole_number("AGENT_STATUS_PORT", 0, 65_535)
    if port is not None and not 0 <= port <= 65_535:
        raise UserError(f"--port: {port} is not from 0 to 65535", "0 selects any free port")
    _check_writer(options)
    model = options.model or _strategy(variables) or skill.model
    catalog.describe(model)  # rejects an unknown name and lists the valid ones
    return PredictDeployment(
        **{field.name: getattr(options, field.name) for field in fields(PredictRunOptions)},
        skill=skill,
        model=model,
        every_ms=every_ms,
        name=display_text(variables.get("AGENT_NAME") or skill.name, 80),
        mandate=skill.strategy.mandate or display_text(skill.strategy.text or ""),
        port=PORT if port is None else port,
        manager_id=variables.get("AGENT_PREDICT_MANAGER_ID") if options.writer == "sui" else "",
        agent_id=variables.get("TRADE_AGENT_ID") if options.writer == "sui" else "",
        notes=(*notes, *variables.notes()),
    )


def _check_writer(options: LiveOptions) -> None:
    if options.scheduled and options.indexer_url:
        raise UserError("--scheduled and --indexer exclude each other", "scheduled markets are on no indexer")
    if options.writer == "paper" and (options.dry_run or options.network):
        name = "--dry-run" if options.dry_run else "--network"
        raise UserError(f"{name} is about the chain, and orders go to the paper venue", "add --writer sui")
    if options.writer == "sui" and options.scheduled:
        raise UserError("scheduled markets do not exist on the chain", "leave out --scheduled or --writer sui")


class ReadVariables:
    """Reads environment variables and records which of them were used."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._used_names: list[str] = []

    def get(self, name: str) -> str:
        """Return the value of a variable, or an empty string."""
        value = (self._environment(name) or "").strip()
        if value and name not in self._used_names:
            self._used_names.append(name)
        return value

    def whole_number(self, name: str, least: int, most: int) -> int | None:
        """Return a whole number within bounds, if the variable is set."""
        value = self.get(name)
        if not value:
            return None
        if not value.isdecimal() or len(value) > 12 or not least <= int(value) <= most:
            raise UserError(f"{name} is {value[:40]!r}, not a whole number from {least} to {most}", f"unset {name}")
        return int(value)

    def notes(self) -> tuple[str, ...]:
        """Return one line that names the variables used."""
        return (f"from the environment: {', '.join(self._used_names)}",) if self._used_names else ()


def _skill(file: Path, overrides: Sequence[str], variables: ReadVariables) -> tuple[PredictSkill, tuple[str, ...]]:
    settings: list[str] = []
    trade = variables.get("AGENT_TRADE_DUSDC")
    if trade:
        try:
            amount = Decimal(trade)
        except InvalidOperation:
            amount = Decimal("NaN")
        if not (amount.is_finite() and 0 <= amount <= 1_000_000_000) or len(trade) > 30:
            raise UserError(f"AGENT_TRADE_DUSDC is {trade[:40]!r}, not an amount", "for example AGENT_TRADE_DUSDC=2")
        settings.append(f"risk.max_spend_per_tick={amount:f}")
    check = check_text(
        read_text(file), file.suffix, PredictSkill, overrides=(*settings, *overrides), folder=file.parent
    )
    if check.skill is None:
        raise summary(file.name, check.errors)
    skill = check.skill
    prompt = variables.get("AGENT_PROMPT_FILE")
    if prompt:
        path = Path(prompt)
        try:
            text = read_text_beside(path.name, path.parent)
        except UserError as error:
            raise UserError(f"AGENT_PROMPT_FILE: {error.message}", "name a text file with the mandate") from None
        try:
            strategy = PredictStrategy(text=text)
        except ValidationError as error:
            message = f"AGENT_PROMPT_FILE: its text {error.errors()[0]['msg']}"
            raise UserError(message, "name a text file with the mandate") from None
        skill = skill.model_copy(update={"strategy": strategy})
    return skill, check.notes


def _strategy(variables: ReadVariables) -> str:
    name = variables.get("AGENT_STRATEGY").lower().replace("_", "-")
    if name and name not in STRATEGIES:
        raise UserError(f"AGENT_STRATEGY is {name[:40]!r}", suggestion(name, STRATEGIES))
    return STRATEGIES.get(name, "")
