"""Search: points chosen by the results of earlier ones (optuna, the extra `search`), instead of a grid or random points.

Suggests a few trials at a time and receives their results. The same seed and the same results lead to the same suggestions,
so an interrupted search replays its finished trials and continues from there.
"""

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.sim.study.axis import Axis, NumberRange
from pitboss.sim.study.choice import score
from pitboss.sim.study.grid import MAX_POINTS
from pitboss.sim.study.trial import Results, Trial

BATCH = 4
"""Trials suggested at once: a larger batch is faster, a smaller one uses more results per suggestion."""


def is_installed() -> bool:
    """Whether optuna is installed."""
    return find_spec("optuna") is not None


class Search:
    """A `Method` that learns from results. `metric` is maximised, or minimised where smaller is better."""

    def __init__(
        self,
        axes: Sequence[Axis],
        count: int,
        seed: int,
        metric: str,
        from_at: Instant,
        to_at: Instant,
        batch: int = BATCH,
    ) -> None:
        if not axes:
            raise UserError("a search needs something to vary", "for example --vary context.bars_lookback=50..200")
        if not 1 <= count <= MAX_POINTS:
            raise UserError(f"--search: {count} is not from 1 to {MAX_POINTS:,}", "for example --search 30")
        if not is_installed():
            raise UserError("a search needs optuna, which is not installed", "pip install 'pitboss[search]'")
        optuna: Any = import_module("optuna")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
        self._failed = optuna.trial.TrialState.FAIL
        self._axes, self._count, self._batch = axes, count, batch
        self._metric, self._span = metric, (from_at, to_at)
        self._batch_trials: list[tuple[Any, Trial]] = []
        self._count_suggested = 0

    def ask(self, results: Results) -> list[Trial]:
        """The trials of the current batch without a result; the next batch when there are none."""
        while True:
            missing = [trial for _, trial in self._batch_trials if trial not in results]
            if missing:
                return missing
            for suggestion, trial in self._batch_trials:
                value = score(results[trial], self._metric)
                if value is None:
                    self._study.tell(suggestion, state=self._failed)
                else:
                    self._study.tell(suggestion, value)
            self._batch_trials = [self._next() for _ in range(min(self._batch, self._count - self._count_suggested))]
            if not self._batch_trials:
                return []

    def _next(self) -> tuple[Any, Trial]:
        suggestion = self._study.ask()
        point = tuple((axis.name, _suggested(suggestion, axis)) for axis in self._axes)
        trial = Trial(self._count_suggested, point, *self._span)
        self._count_suggested += 1
        return suggestion, trial


def _suggested(suggestion: Any, axis: Axis) -> str:
    if len(axis.parts) == 1 and isinstance(axis.parts[0], NumberRange):
        span = axis.parts[0]
        return span.at(suggestion.suggest_int(axis.name, 0, span.count - 1))
    return suggestion.suggest_categorical(axis.name, axis.grid_values())
