"""What a study asks for, and the requests that follow from it: one base request, what is varied, how, how often.

A plan is named by its content: the same command finds the same study and goes on with it. Which point of which trial a run
is stands in its parameters under `study`. Queueing and doing the runs is `study.py`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import sha256
from typing import Any, Literal

from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.core.instant import Instant, parse_instant
from pitboss.runs.venues import venue_of
from pitboss.sim.request import BacktestRequest
from pitboss.sim.study.axis import Axis, Point
from pitboss.sim.study.trial import Trial
from pitboss.skill.document import to_plain
from pitboss.skill.load import override, read_skill

Kind = Literal["grid", "random", "search", "walk", "arena"]

ID_CHARS = 12
NOT_IN_NAME = ("skill", "any_price", "max_cost_usd", "speculate", "max_waste_pct")
"""Fields of a request that change nothing of what a run decides: with others of them it is the same study."""
MODEL, SEED, RANGE, OF_RUN = "model", "seed", "range", "run."
"""Axes that are no fields of a skill: who decides, the seed, the stretch of time, and `run.` for fields of the request."""


@dataclass(frozen=True, slots=True)
class StudyPlan:
    """A study as it was asked for. `method` is what `kind` needs to know; `by` is the metric that trials are judged by."""

    kind: Kind
    request: BacktestRequest
    axes: tuple[Axis, ...] = ()
    method: Mapping[str, Any] | None = None
    repeats: int = 1
    by: str = "sharpe"
    name: str = ""

    def document(self) -> dict[str, Any]:
        """Everything that makes it this study, as plain values."""
        asked = codec.plain(replace(self.request, skill={}))
        skill = codec.loads(codec.dumps(codec.number_fragments(dict(self.request.skill))))
        return {
            "kind": self.kind,
            "name": self.name,
            "skill": skill,
            "request": {name: value for name, value in asked.items() if name not in NOT_IN_NAME},
            "vary": [axis.spec for axis in self.axes],
            "method": dict(self.method or {}),
            "repeats": self.repeats,
            "by": self.by,
        }

    @property
    def id(self) -> str:
        """The study's name: a digest of what it asks for."""
        return codec.digest(self.document())[:ID_CHARS]


@dataclass(frozen=True, slots=True)
class Member:
    """One run of a study: a repeat of a trial."""

    trial: Trial
    repeat: int
    request: BacktestRequest

    @property
    def key(self) -> str:
        """What tells it from the other runs of its study."""
        trial = self.trial
        said = [dict(trial.point), trial.from_at, trial.to_at, trial.role, trial.window, self.repeat]
        return codec.digest(said)[:16]

    def run_id(self, study_id: str) -> str:
        """The id of its run. It follows from the study, so no two who make the same study can make the run twice."""
        return sha256(f"{study_id}/{self.key}".encode()).hexdigest()[:ID_CHARS]

    def mark(self) -> dict[str, Any]:
        """What is kept with the run."""
        trial = self.trial
        return {
            "key": self.key,
            "trial": trial.number,
            "point": dict(trial.point),
            "repeat": self.repeat,
            "role": trial.role,
            "window": trial.window,
        }


def members(plan: StudyPlan, trials: Sequence[Trial]) -> list[Member]:
    """The runs of some trials. What is wrong with a point is said here, before anything is stored."""
    found: list[Member] = []
    for trial in trials:
        request = request_at(plan.request, dict(trial.point), trial.from_at, trial.to_at)
        found += [
            Member(trial, repeat, replace(request, seed=request.seed + repeat, repeat=repeat))
            for repeat in range(repeats_of(plan, request))
        ]
    return found


def repeats_of(plan: StudyPlan, request: BacktestRequest) -> int:
    """How often a request is worth running: a program that ignores the seed gives the same each time."""
    steady = request.source.startswith("policy/") and request.source != "policy/random"
    return 1 if steady else plan.repeats


def request_at(
    base: BacktestRequest, point: Point, from_at: Instant | None = None, to_at: Instant | None = None
) -> BacktestRequest:
    """The base request at a point. Raises `UserError` that names the point's mistake."""
    sets = [f"{name}={value}" for name, value in point.items() if not _is_own(name)]
    skill = dict(base.skill)
    if sets:
        root = venue_of(skill).skill_type()
        skill = to_plain(read_skill(override(skill, sets, root), root))
    changes: dict[str, Any] = {"skill": skill}
    if from_at is not None and to_at is not None:
        changes |= {"from_at": from_at, "to_at": to_at}
    for name, value in point.items():
        if name == MODEL:
            changes["model"] = value
        elif name == SEED:
            changes["seed"] = _whole(name, value)
        elif name == RANGE:
            changes["from_at"], changes["to_at"] = read_range(value)
        elif name.startswith(OF_RUN):
            changes |= _own_field(base, name.removeprefix(OF_RUN), value)
    return replace(base, **changes)


def read_range(words: str) -> tuple[Instant, Instant]:
    """`2025-02-01/2025-03-01` → its two ends."""
    start, slash, end = words.partition("/")
    if not slash:
        raise UserError(f"--vary range: {words!r} is not two times", "for example range=2025-02-01/2025-03-01")
    from_at, to_at = parse_instant(start), parse_instant(end)
    if to_at <= from_at:
        raise UserError(f"--vary range: {words} is empty", "the second time must be after the first")
    return from_at, to_at


def _is_own(name: str) -> bool:
    return name in (MODEL, SEED, RANGE) or name.startswith(OF_RUN)


def _whole(name: str, value: str) -> int:
    if not value.isdecimal():
        raise UserError(f"--vary {name}: {value!r} is not a whole number of at least 0", "for example seed=0..4")
    return int(value)


def _own_field(base: BacktestRequest, name: str, value: str) -> dict[str, Any]:
    """A field of the request itself, such as a fee, from its text."""
    known = {field.name for field in fields(base)} - {"skill", "decisions", "disguise"}
    if name not in known:
        raise UserError(f"--vary run.{name}: no such field", f"one of {', '.join(sorted(known))}")
    plain = codec.plain(replace(base, skill={}))
    now = plain[name]
    try:
        if isinstance(now, bool):
            plain[name] = {"true": True, "false": False}[value.lower()]
        else:
            plain[name] = int(value) if isinstance(now, int) else value
        return {name: getattr(codec.parse(type(base), plain), name)}
    except (KeyError, ValueError, ArithmeticError):
        raise UserError(f"--vary run.{name}: {value!r} does not fit", f"it is {now} now") from None
