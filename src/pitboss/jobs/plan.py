"""The definition of a study and the requests that follow from it: a base request, what is varied, how, and how often.

A plan is identified by its content: the same command finds the same study and continues it. The trial and point of a run are
in its parameters under `study`. Enqueueing and executing the runs is in `study.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Literal

from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, parse_instant
from pitboss.core.money import text
from pitboss.runs.new_request import request_field
from pitboss.runs.venues import venue_of
from pitboss.sim.request import BacktestRequest
from pitboss.sim.study.axis import Axis, Point
from pitboss.sim.study.trial import Trial
from pitboss.skill.document import to_plain
from pitboss.skill.load import override, read_skill
from pitboss.store.schema import LOCAL

Kind = Literal["grid", "random", "search", "walk", "arena"]

ID_CHARS = 12
NOT_IN_NAME = ("skill", "any_price", "max_cost_usd", "speculate", "max_waste_pct")
"""Fields of a request that do not change what a run decides, and therefore not the identity of the study."""
MODEL, SEED, RANGE, OF_RUN = "model", "seed", "range", "run."
"""Axes that are not fields of a skill: the model, the seed, the period, and `run.` for fields of the request."""


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """The definition of a study. `method` holds the parameters of `kind`; `by` is the metric that ranks trials."""

    kind: Kind
    request: BacktestRequest
    axes: tuple[Axis, ...] = ()
    method: Mapping[str, Any] | None = None
    repeats: int = 1
    by: str = "sharpe"
    name: str = ""
    owner: str = LOCAL
    """Whose study it is. Studies of different owners with the same definition are different ones."""

    def document(self) -> dict[str, Any]:
        """The definition as plain values."""
        request = codec.plain(replace(self.request, skill={}))
        skill = codec.loads(codec.dumps(codec.number_fragments(dict(self.request.skill))))
        return {
            "kind": self.kind,
            "name": self.name,
            "skill": skill,
            "request": {name: value for name, value in request.items() if name not in NOT_IN_NAME},
            "vary": [axis.spec for axis in self.axes],
            "method": dict(self.method or {}),
            "repeats": self.repeats,
            "by": self.by,
        }

    @property
    def id(self) -> str:
        """The id of the study: a digest of its definition, and of its owner if that is not the command line's."""
        document = self.document() if self.owner == LOCAL else {**self.document(), "owner": self.owner}
        return codec.digest(document)[:ID_CHARS]


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run of a study: a repeat of a trial."""

    trial: Trial
    repeat: int
    request: BacktestRequest

    @property
    def key(self) -> str:
        """Distinguishes it from the other runs of its study."""
        trial = self.trial
        parts = [dict(trial.point), trial.from_at, trial.to_at, trial.role, trial.window, self.repeat]
        return codec.digest(parts)[:16]

    def run_id(self, study_id: str) -> str:
        """The id of its run. It follows from the study, so two processes that execute the same study cannot create it twice."""
        return sha256(f"{study_id}/{self.key}".encode()).hexdigest()[:ID_CHARS]

    def mark(self) -> dict[str, Any]:
        """What is stored in the parameters of the run."""
        trial = self.trial
        return {
            "key": self.key,
            "trial": trial.number,
            "point": dict(trial.point),
            "repeat": self.repeat,
            "role": trial.role,
            "window": trial.window,
        }


def planned_runs(plan: StudyPlan, trials: Sequence[Trial]) -> list[PlannedRun]:
    """The runs of some trials. Raises `UserError` for an invalid point, before anything is stored."""
    planned: list[PlannedRun] = []
    for trial in trials:
        request = request_at(plan.request, dict(trial.point), trial.from_at, trial.to_at)
        planned += [
            PlannedRun(trial, repeat, replace(request, seed=request.seed + repeat, repeat=repeat))
            for repeat in range(repeats_of(plan, request))
        ]
    return planned


def unchanged_fields(planned: Sequence[PlannedRun]) -> list[str]:
    """The varied fields that change nothing: all runs that differ in such a field alone are the same run."""
    values: dict[tuple[str, str], set[str]] = {}
    contents: dict[tuple[str, str], set[str]] = {}
    for run in planned:
        trial, point = run.trial, dict(run.trial.point)
        content = _content(run.request)
        for name, value in point.items():
            rest = name, codec.digest([{**point, name: None}, trial.from_at, trial.to_at, run.repeat])
            values.setdefault(rest, set()).add(value)
            contents.setdefault(rest, set()).add(content)
    varied = {name for (name, _), different in values.items() if len(different) > 1}
    return sorted(varied - {name for (name, _), different in contents.items() if len(different) > 1})


def _content(request: BacktestRequest) -> str:
    """A digest of everything in a request that decides its result."""
    seed = 0 if _ignores_seed(request) else request.seed
    skill = codec.number_fragments({**request.skill, "model": request.source})
    return codec.digest([skill, codec.plain(replace(request, skill={}, model="", seed=seed))])


def repeats_of(plan: StudyPlan, request: BacktestRequest) -> int:
    """The number of repeats of a request: one for a program that ignores the seed."""
    return 1 if _ignores_seed(request) else plan.repeats


def _ignores_seed(request: BacktestRequest) -> bool:
    return request.source.startswith("policy/") and request.source != "policy/random"


def request_at(
    base: BacktestRequest, point: Point, from_at: Instant | None = None, to_at: Instant | None = None
) -> BacktestRequest:
    """The base request at a point. Raises `UserError` for an invalid point."""
    sets = [f"{name}={value}" for name, value in point.items() if not _is_own(name)]
    skill = dict(base.skill)
    if sets:
        root = venue_of(skill).skill_type()
        try:
            skill = to_plain(read_skill(override(skill, sets, root), root))
        except UserError as error:
            raise UserError(error.message.replace("--set ", "--vary ", 1), error.hint) from None
    changes: dict[str, Any] = {"skill": skill}
    if from_at is not None and to_at is not None:
        changes |= {"from_at": from_at, "to_at": to_at}
    for name, value in point.items():
        if name == MODEL:
            changes["model"] = value
        elif name == SEED:
            changes["seed"] = _integer(name, value)
        elif name == RANGE:
            changes["from_at"], changes["to_at"] = read_range(value)
        elif name.startswith(OF_RUN):
            changes[name.removeprefix(OF_RUN)] = _run_field(base, name, value)
    return replace(base, **changes)


def check_run_axis(base: BacktestRequest, axis: Axis) -> None:
    """Refuse an axis over a field of the run with a value that does not fit; of a range the lowest number stands for all."""
    for part in axis.parts:
        _run_field(base, axis.name, part if isinstance(part, str) else text(part.low))


def _run_field(base: BacktestRequest, name: str, value: str) -> Any:
    try:
        return request_field(base, name.removeprefix(OF_RUN), value)
    except UserError as error:
        raise UserError(f"--vary {error.message}", error.hint) from None


def read_range(text: str) -> tuple[Instant, Instant]:
    """`2025-02-01/2025-03-01` → its two ends."""
    start, slash, end = text.partition("/")
    if not slash:
        raise UserError(f"--vary range: {text!r} is not two times", "for example range=2025-02-01/2025-03-01")
    from_at, to_at = parse_instant(start), parse_instant(end)
    if to_at <= from_at:
        raise UserError(f"--vary range: {text} is empty", "the second time must be after the first")
    return from_at, to_at


def _is_own(name: str) -> bool:
    return name in (MODEL, SEED, RANGE) or name.startswith(OF_RUN)


def _integer(name: str, value: str) -> int:
    if not value.isdecimal():
        raise UserError(f"--vary {name}: {value!r} is not a whole number of at least 0", "for example seed=0..4")
    return int(value)
