"""Search: points chosen by what earlier ones came to (optuna, the extra `search`), instead of all of them or any.

Asks for a few at a time and is told how they went. The same seed and the same results lead it the same way, so a search that
was broken off is walked again through what it knows, and goes on from there.
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
"""Trials that are asked for at once: more of them are quicker, fewer of them learn more."""


def is_there() -> bool:
    """Whether the extra is installed."""
    return find_spec("optuna") is not None


class Search:
    """A method that learns. `metric` is what it looks for more of, or less where less is better."""

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
        if not is_there():
            raise UserError("a search needs optuna, which is not installed", "pip install 'pitboss[search]'")
        optuna: Any = import_module("optuna")
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._study = optuna.create_study(direction="maximize", sampler=optuna.samplers.TPESampler(seed=seed))
        self._failed = optuna.trial.TrialState.FAIL
        self._axes, self._count, self._batch = axes, count, batch
        self._metric, self._span = metric, (from_at, to_at)
        self._asked: list[tuple[Any, Trial]] = []
        self._made = 0

    def ask(self, results: Results) -> list[Trial]:
        """The trials of this batch that are missing; of the next one when none are."""
        while True:
            missing = [trial for _, trial in self._asked if trial not in results]
            if missing:
                return missing
            for question, trial in self._asked:
                value = score(results[trial], self._metric)
                if value is None:
                    self._study.tell(question, state=self._failed)
                else:
                    self._study.tell(question, value)
            self._asked = [self._next() for _ in range(min(self._batch, self._count - self._made))]
            if not self._asked:
                return []

    def _next(self) -> tuple[Any, Trial]:
        question = self._study.ask()
        point = tuple((axis.name, _suggested(question, axis)) for axis in self._axes)
        trial = Trial(self._made, point, *self._span)
        self._made += 1
        return question, trial


def _suggested(question: Any, axis: Axis) -> str:
    if len(axis.parts) == 1 and isinstance(axis.parts[0], NumberRange):
        span = axis.parts[0]
        return span.at(question.suggest_int(axis.name, 0, span.count - 1))
    return question.suggest_categorical(axis.name, axis.grid_values())
