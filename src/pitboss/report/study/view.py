"""A study as its page needs it: the document with the values that several sections share. Draws nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from pitboss.core.instant import DAY_MS
from pitboss.report import figures
from pitboss.report.meaning import Metric
from pitboss.report.measures import format_named
from pitboss.report.metric import meanings_of, metric_meaning
from pitboss.report.source import Plain, instant, number


@dataclass(frozen=True, slots=True)
class StudyView:
    """The document of a study. `by` is the metric by which trials are compared."""

    plain: Plain

    @property
    def by(self) -> str:
        return str(self.plain["by"])

    def metric_meaning(self, metric: str) -> Metric:
        """A metric by its key."""
        return metric_meaning(metric, meanings_of(self.plain))

    @property
    def metric(self) -> Metric:
        return self.metric_meaning(self.by)

    @property
    def label(self) -> str:
        """The metric inside a sentence; proper names such as Sharpe keep their capital."""
        label = self.metric.label
        return label if label.startswith(("Sharpe", "Sortino", "Brier")) else label[:1].lower() + label[1:]

    @property
    def is_walk_forward(self) -> bool:
        return self.plain["kind"] == "walk"

    @property
    def has_account(self) -> bool:
        """Whether the runs have returns, from which chance is estimated."""
        return bool(self.plain.get("has_account", True))

    @property
    def forward(self) -> Plain:
        """The results of a walk-forward; empty for other kinds."""
        return self.plain.get("forward") or {}

    @property
    def significance(self) -> Plain:
        return self.plain.get("luck") or {}

    @property
    def trials(self) -> Sequence[Plain]:
        """All trials, the best first."""
        return self.plain["trials"]

    @property
    def compared(self) -> list[Plain]:
        """The trials that compete and have the metric: of a walk-forward, those in sample."""
        return [trial for trial in self.trials if trial["role"] != "out" and self.value(trial) is not None]

    @property
    def best(self) -> Plain | None:
        return next((trial for trial in self.compared if trial["score"] is not None), None)

    @property
    def fields(self) -> list[str]:
        """The names of the varied fields."""
        names: dict[str, None] = {}
        for trial in self.trials:
            names.update(dict.fromkeys(trial["point"]))
        return list(names)

    @property
    def runs(self) -> list[Plain]:
        return [run for trial in self.trials for run in trial["runs"]]

    @property
    def failures(self) -> list[tuple[Plain, Plain]]:
        """Runs without a result, each with its trial."""
        return [(trial, run) for trial in self.trials for run in trial["runs"] if run["status"] != "complete"]

    def value(self, trial: Plain) -> float | None:
        """The metric of a trial."""
        return number(trial["metrics"].get(self.by))

    def format_value(self, value: object, few_days: bool = False) -> str:
        """A value of the metric, formatted; a Sharpe ratio of too few days is flagged."""
        return format_named(self.by, value, self.metric.form, few_days)

    def format_trial(self, trial: Plain, metric: str | None = None) -> str:
        """A metric of a trial, formatted; by default the one by which trials are compared."""
        name = metric or self.by
        return format_named(name, trial["metrics"].get(name), self.metric_meaning(name).form, trial["few_days"])

    def format_window(self, window: Plain, outside: bool) -> str:
        """The metric of a window's choice, in sample or out of sample."""
        return self.format_value(window["outside" if outside else "inside"], window["few_days"][outside])

    def has_short_window(self, outside: bool) -> bool:
        """Whether the metric is a Sharpe ratio and a window has too few days for it, in sample or out of sample."""
        windows = self.forward.get("windows") or ()
        return self.by == "sharpe" and any(window["few_days"][outside] for window in windows)

    def format_mean(self, outside: bool) -> str:
        """The mean of the metric over all windows; flagged if a window has too few days."""
        mean = self.forward.get("outside_mean" if outside else "inside_mean")
        return self.format_value(mean, self.has_short_window(outside))

    def is_better(self, value: float, reference: float) -> bool:
        return value < reference if self.plain["better"] == "less" else value > reference

    @property
    def direction(self) -> str:
        return "lower is better" if self.plain["better"] == "less" else "higher is better"


def sorted_values(values: Sequence[str]) -> list[str]:
    """Distinct values of a field in the order of the charts: numbers by size, others as they came."""
    distinct = list(dict.fromkeys(values))
    numbers = [number(value) for value in distinct]
    if any(value is None for value in numbers):
        return distinct
    return sorted(distinct, key=lambda value: number(value) or 0.0)


def period(start: object, end: object) -> str:
    """A period in one line: dates if it begins and ends at midnight, else times to the minute."""
    first, last = instant(start), instant(end)
    if first is None or last is None:
        return figures.NONE
    if first % DAY_MS == 0 and last % DAY_MS == 0:
        return f"{figures.clock(first)[:10]} to {figures.clock(last)[:10]}"
    same = figures.clock(first)[:10] == figures.clock(last)[:10]
    return f"{figures.clock(first)} to {figures.clock(last)[11 if same else 0 :]}"
