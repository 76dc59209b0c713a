"""The input of a run's page: `RunReport`, and tolerant readers of the plain values inside it.

Every text in it may come from a model, a news item or a user and is untrusted. Amounts may be numbers, decimals or the
exact decimal strings of the exports; instants may be milliseconds or ISO text.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, parse_instant
from pitboss.report.meaning import METRICS, Metric, RuleMeaning, unknown_rule

Plain = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class RunReport:
    """A finished or partial run with everything that its page shows."""

    document: Plain
    """The document that `backtest --json` prints."""
    skill_name: str
    skill_text: str
    initial_usd: float
    """Ignored, like the equity, unless the venue has accounts."""
    equity: Sequence[tuple[Instant, float]]
    baseline_equity: Mapping[str, Sequence[tuple[Instant, float]]] = field(default_factory=dict)
    prices: Mapping[str, Any] = field(default_factory=dict)
    """Per symbol rows of open time, open, high, low, close: a sequence of tuples or an array."""
    fills: Sequence[Plain] = ()
    """Rows of `runs export --what fills`, in time order."""
    decisions: Sequence[Plain] = ()
    """One row for each tick, in order: seq, tick_at, the proposal's fields, outcome, code, detail, margins, flags, text,
    steps, cost_usd. A row of no-ops may stand for several ticks: `times` of them, the last at `until`."""
    trades: Sequence[Plain] = ()
    """Round trips: symbol, side, opened_at, closed_at, entry_price, exit_price, max_size, pnl_usd, best_pct, worst_pct, fees_usd,
    funding_usd, exit_reason."""
    assumptions: Sequence[str] = ()
    rule_meanings: Mapping[str, RuleMeaning] = field(default_factory=dict)
    """The venue's rules by code."""
    metric_meanings: Mapping[str, Metric] = field(default_factory=dict)
    """The venue's own metrics by key."""
    realism: Sequence[Plain] = ()
    """Settings of the fill model: about, value, state (off, default, conservative, as asked)."""
    has_account: bool = True
    """Whether the agent has an account whose value is measured."""
    synthetic: bool = False
    standin: bool = False
    """Whether a program made the decisions instead of a language model."""
    halts: Sequence[Plain] = ()
    """Each: at, kind."""
    live: str = ""
    """What a live run traded and where its orders went, in a sentence; empty for a backtest."""
    attribution: Plain | None = None
    """The difference between a deployment and its decisions on paper, as `pitboss attribution --json` prints it."""
    attribution_note: str = ""
    """Why there is none."""
    window: tuple[Instant, Instant] | None = None
    """The part of its time that charts show; None for all of it."""
    version: str = ""
    program: str = "pitboss"
    workspace_option: str = ""
    """Program and option of commands on this run: `pitboss`, and ` --home DIR` unless the workspace is found without."""

    def rule(self, code: str) -> RuleMeaning:
        """The meaning of a rule, also of one that this version does not know."""
        return self.rule_meanings.get(code) or unknown_rule(code)

    def known_metrics(self) -> dict[str, Metric]:
        """Every metric that has a meaning, the shared ones first."""
        return {**METRICS, **self.metric_meanings}

    @property
    def metrics(self) -> Plain:
        return mapping(self.document.get("metrics"))

    def baseline(self, name: str) -> Plain:
        """The metrics of one baseline; empty if the run has none."""
        return mapping(mapping(self.document.get("baselines")).get(name))

    @property
    def run_id(self) -> str:
        return str(self.document.get("run_id") or "RUN")

    @property
    def model(self) -> str:
        return str(self.document.get("model") or "unknown model")

    @property
    def from_at(self) -> Instant | None:
        return instant(self.document.get("from"))

    @property
    def to_at(self) -> Instant | None:
        return instant(self.document.get("to"))

    @property
    def finished(self) -> bool:
        return self.document.get("status") in (None, "complete")

    @property
    def final_usd(self) -> float:
        return float(self.equity[-1][1]) if len(self.equity) else float(self.initial_usd)


def model_cost(document: Plain) -> tuple[float | None, float]:
    """The total cost of the model, None if unknown, and the part of it for speculative calls that were not used.

    The metrics cover only answers that were used, because they are computed from the records.
    """
    if "cost_usd" not in document:
        return number(mapping(document.get("metrics")).get("total_ai_cost_usd")), 0.0
    return number(document["cost_usd"]), number(document.get("wasted_usd")) or 0.0


def mapping(value: object) -> Plain:
    """The value if it is a mapping, else an empty one: a partial run may lack entire parts."""
    return value if isinstance(value, Mapping) else {}


def number(value: object) -> float | None:
    """A finite float from a number or a decimal string; None for anything else."""
    if value is None or isinstance(value, bool):
        return None
    try:
        numeric = float(value)  # pyright: ignore[reportArgumentType]
    except (TypeError, ValueError, OverflowError):
        return None
    return numeric if math.isfinite(numeric) else None


def pair(value: object) -> tuple[float, float] | None:
    """An interval `[lo, hi]`; None if it is missing or unusable."""
    if isinstance(value, Mapping):
        value = [value.get("lo"), value.get("hi")]
    if isinstance(value, str) or not isinstance(value, Sequence) or len(value) != 2:
        return None
    low, high = number(value[0]), number(value[1])
    return None if low is None or high is None else (low, high)


def instant(value: object) -> Instant | None:
    """An instant from milliseconds or ISO text; None for anything else."""
    if isinstance(value, str):
        try:
            return parse_instant(value)
        except UserError:
            return None
    numeric = number(value)
    return None if numeric is None else int(numeric)
