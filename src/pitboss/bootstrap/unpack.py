"""What a stranger does with a bundle: check it offline against itself, and take it into a workspace.

A bundle is somebody else's file: it may be damaged, forged, or made to do harm. Its form is checked by `bundle.py`; here
its contents are, and whatever in them cannot be computed with is a finding, never a crash. What a bundle cannot prove by
itself is said with every result (`unproven`).
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from pathlib import Path
from typing import Any

from pitboss.bootstrap.backtest import read_skill
from pitboss.bootstrap.bundle import SKILL, STATE, AnswerLine, Bundle, Row
from pitboss.bootstrap.runner import journal_of
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec, snapshot
from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.core.instant import interval_ms
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import GENESIS, Record
from pitboss.sim.metrics import compute
from pitboss.sim.outcome import Ledger
from pitboss.skill.digest import skill_digest
from pitboss.store.adopt import adopt
from pitboss.store.answers import Answer, read_reply
from pitboss.store.lifecycle import ACTIVE
from pitboss.store.runs import Run

MONEY = ("cost_usd", "saved_usd", "wasted_usd")
UNKNOWN = "NaN"
"""The cost of a run that asked somebody whose price nobody knows."""
MOST_POINTS = 20_000_000
MOST_PROBLEMS = 20
MOST_DAYS = 36_525
DAY_MS = 86_400_000
_ID = re.compile(r"[0-9A-Za-z_-]{4,64}")
_KEY = re.compile(r"[0-9a-f]{64}(:[0-9A-Za-z_-]{1,64})?")
_AMOUNT = re.compile(r"-?\d{1,40}(\.\d{1,60})?")
_POWER = re.compile(r"\s*[+-]?[\d_.]+[eE][+-]?\d+\s*")


@dataclass(slots=True)
class Checked:
    """What came of checking a bundle."""

    run_id: str
    digest: str | None
    records: int = 0
    answers: int = 0
    problems: list[str] = field(default_factory=list[str])
    unproven: list[str] = field(default_factory=list[str])


def check_bundle(path: Path) -> Checked:
    """Everything that is wrong with a bundle. Needs nothing but the file."""
    with Bundle(path) as bundle:
        return _check(bundle)


def _check(bundle: Bundle) -> Checked:
    run = bundle.manifest.run
    checked = Checked(run.id, run.digest)
    checked.problems += bundle.differences()
    if checked.problems:
        return checked  # nothing in a changed member is worth reading
    checked.unproven += _unproven(bundle)
    ledger, end, steps = _chain(bundle, checked)
    if len(checked.problems) < MOST_PROBLEMS:
        checked.problems += [
            *_skill(bundle),
            *_state(bundle, *end),
            *_result(run, ledger, end),
            *_answers(bundle, steps),
        ]
    checked.answers = sum(1 for _ in bundle.answers())
    checked.problems = checked.problems[:MOST_PROBLEMS]
    return checked


def _unproven(bundle: Bundle) -> list[str]:
    """What the file alone cannot show."""
    run, which = bundle.manifest.run, bundle.manifest.answers
    said = [
        f"market data is not inside: that prices were so needs data with the digest {run.data_digest}, and a rerun",
        "cost, timings and prompt texts stand beside the chain of digests and are only as they were exported",
    ]
    if which == "used":
        said.append("that the model gave these answers is its provider's to say; they are those the records hold")
    if which == "paid":
        said.append("the answers are those the run paid for; their places in the records were not noted")
    if run.status != "complete":
        said.append(f"the run is {run.status}: it has no result yet")
    return said


def _chain(bundle: Bundle, checked: Checked) -> tuple[Ledger | None, tuple[int, str], dict[tuple[int, int], Any]]:
    """The chain of digests from its beginning; what the records say, where they end, and their steps."""
    ledger: Ledger | None = Ledger()
    expected, digest, kind = 0, GENESIS, ""
    steps: dict[tuple[int, int], Any] = {}
    for record in bundle.records():
        checked.records += 1
        if kind == "close":
            checked.problems.append(f"record {record.seq} comes after the end")
        try:
            snapshot.check(record, expected, digest)
            body = codec.loads(record.covered)
            if ledger is not None:
                _take(ledger, record, body)
            for number, step in enumerate(body.get("steps", ())):
                said = [call["name"] for call in step["calls"]]
                steps[record.seq, number] = (sha256(step["text"].encode()).digest(), step["finish_reason"], said)
        except ReplayMismatch as error:
            checked.problems.append(str(error))
        except Exception:  # noqa: BLE001 – a stranger's record may hold anything
            checked.problems.append(f"record {record.seq} cannot be read")
            ledger = None
        if len(checked.problems) >= MOST_PROBLEMS:
            return None, (expected, digest), steps
        expected, digest, kind = record.seq + 1, record.digest, record.kind
    if bundle.manifest.run.status == "complete" and kind != "close":
        checked.problems.append("the run is complete but its last record does not close it")
    return ledger, (expected, digest), steps


def _take(ledger: Ledger, record: Record, body: dict[str, Any]) -> None:
    """Add a record to the ledger once nothing in it can blow up: a few characters can name a number of any length."""
    points = 0
    for piece in body["equity"]:
        at, step, base, *rest = piece
        if not (type(at) is type(step) is int and type(base) is str and _AMOUNT.fullmatch(base)):
            raise ValueError("equity")
        if len(rest) == 1:
            points += _whole(rest[0], MOST_POINTS)
        else:
            decimals, units = rest
            _whole(decimals, 60)
            points += len([_whole(abs(unit), 1 << 62) for unit in units])
    if points > MOST_POINTS:
        raise ValueError("equity")
    _refuse_powers(body["receipts"])
    receipts = [Receipt(**receipt) for receipt in body["receipts"]]
    extra = codec.loads(record.extra)
    cost, saved = extra["cost_usd"], extra.get("saved_usd", "0")
    ledger.take(record.kind, body, receipts, None if cost is None else _money(cost), _money(saved))


def _whole(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError("not a number of things")
    return value


def _money(value: Any) -> Decimal:
    if type(value) is not str or not _AMOUNT.fullmatch(value):
        raise ValueError("not an amount")
    return Decimal(value)


def _refuse_powers(value: Any) -> None:
    if isinstance(value, str) and len(value) < 400 and _POWER.fullmatch(value):
        raise ValueError("not an amount of ours")
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _refuse_powers(item)


def _skill(bundle: Bundle) -> Iterator[str]:
    named, params = bundle.manifest.skill, bundle.manifest.run.params
    if sha256(bundle.whole(SKILL)).hexdigest() != named.digest:
        yield "the skill does not hash to its digest"
    if params.get("skill_digest") != named.digest:
        yield "the run was made with another skill than the one inside"
    try:
        if skill_digest(read_skill(params["skill"])) != named.digest:
            yield "the skill in the run's parameters is not the one inside"
    except UserError as error:
        yield f"the skill cannot be read: {error.message}"
    except Exception:  # noqa: BLE001 – a stranger's parameters may be anything
        yield "the skill in the run's parameters cannot be read"


def _state(bundle: Bundle, next_seq: int, digest: str) -> Iterator[str]:
    try:
        state = codec.loads(bundle.whole(STATE))
        ends = (0, GENESIS) if state is None else (state["seq"], state["prev_digest"])
    except (ValueError, KeyError, TypeError):
        yield "the state cannot be read"
        return
    if ends != (next_seq, digest):
        yield "the state does not belong to the last record"


def _result(run: Row, ledger: Ledger | None, end: tuple[int, str]) -> Iterator[str]:
    """The row against what the records say."""
    if run.status in ACTIVE:
        yield f"the run is {run.status}, which no bundle holds"
    if any(not _AMOUNT.fullmatch(getattr(run, name)) and getattr(run, name) != UNKNOWN for name in MONEY):
        yield "what the run says about money is no amount"
        return
    if run.status == "complete" and run.digest != end[1]:
        yield "the run's digest is not that of its last record"
    if ledger is None or run.metrics is None:
        if run.status == "complete" and run.metrics is None:
            yield "the run is complete and has no metrics"
        return
    try:
        found = codec.plain(_metrics(run, ledger))
    except Exception:  # noqa: BLE001 – as above
        yield "the metrics cannot be recomputed from the records"
        return
    for name in sorted({*run.metrics, *found}):
        if run.metrics.get(name) != found.get(name):
            yield f"metric {name[:80]}: stored {str(run.metrics.get(name))[:80]}, recomputed {found.get(name)!r}"
    if run.ticks != ledger.ticks:
        yield f"ticks: stored {run.ticks}, recomputed {ledger.ticks}"
    used = None if run.cost_usd == UNKNOWN else Decimal(run.cost_usd) - Decimal(run.wasted_usd)
    if used != ledger.cost_usd:
        yield f"cost_usd: stored {used} as used, recomputed {ledger.cost_usd}"


def _metrics(run: Row, ledger: Ledger) -> dict[str, Any]:
    params = run.params
    from_at, to_at = _whole(params["from_at"], 1 << 52), _whole(params["to_at"], 1 << 52)
    period, step = interval_ms(params["skill"]["schedule"]["every"]), interval_ms(params["base_interval"])
    start = -(-from_at // period) * period
    if not 0 < to_at - start <= MOST_DAYS * DAY_MS:
        raise ValueError("range")
    if sum(piece[3] if len(piece) == 4 else len(piece[4]) for piece in ledger.equity) > (to_at - start) // step + 1:
        raise ValueError("more points than bars")
    return compute(ledger.outcome(start, to_at, step, _money(params["equity_usd"])), _whole(params["seed"], 1 << 62))


def _answers(bundle: Bundle, steps: dict[tuple[int, int], Any]) -> Iterator[str]:
    """Every answer against the places in the chain where it was used."""
    for line in bundle.answers():
        try:
            reply = read_reply(line.reply.encode())
            said = codec.printable(reply.text).encode()
            told = (sha256(said).digest(), reply.finish_reason, [codec.printable(call.name) for call in reply.calls])
        except Exception:  # noqa: BLE001 – as above
            yield f"answer {line.key[:12]} cannot be read"
            continue
        if not _KEY.fullmatch(line.key) or not _ID.fullmatch(line.run_id):
            yield f"answer {line.key[:12]} has a key or a run that cannot be"
        if line.cost_usd is not None and not _AMOUNT.fullmatch(line.cost_usd):
            yield f"answer {line.key[:12]} has a cost that is no amount"
        for seq, step in line.used:
            if steps.get((seq, step)) != told:
                yield f"answer {line.key[:12]} is not what record {seq} says at step {step + 1}"


@dataclass(frozen=True, slots=True)
class Taken:
    """What came of taking a bundle in."""

    run_id: str
    new: bool
    answers: int


def take_in(workspace: Workspace, path: Path, with_answers: bool = True) -> Taken:
    """Put a bundle's run into a workspace, checked. Raises `ReplayMismatch` if it is not what it says."""
    with Bundle(path) as bundle:
        checked = _check(bundle)
        if checked.problems:
            raise ReplayMismatch(f"{path} is not taken in: {checked.problems[0]}")
        run = bundle.manifest.run
        if not _ID.fullmatch(run.id):
            raise UserError(f"{path} is no bundle that can be read: its run's id cannot be", "export it again")
        here = workspace.runs.having(run.id)
        if here is not None:
            if _same(workspace, here, bundle):
                return Taken(run.id, new=False, answers=0)
            raise UserError(f"there is another run {run.id} here already", "delete that one, or use another --home")
        skill = bundle.manifest.skill
        saved = workspace.skills.save(skill.name, skill.digest, bundle.whole(SKILL))
        row = _run(run, saved.id, saved.version)
        known = map(_answer, bundle.answers()) if with_answers else ()
        adopt(workspace.database, row, bundle.records(), codec.loads(bundle.whole(STATE)), known)
        return Taken(run.id, new=True, answers=checked.answers if with_answers else 0)


def _same(workspace: Workspace, here: Run, bundle: Bundle) -> bool:
    run = bundle.manifest.run
    if (here.status, here.digest, here.metrics) != (run.status, run.digest, run.metrics):
        return False
    return _digests(journal_of(workspace, here).records()) == _digests(bundle.records())


def _digests(records: Iterable[Record]) -> list[str]:
    return [record.digest for record in records]


def _run(row: Row, skill_id: str, skill_version: int) -> Run:
    values = row.model_dump()
    values.update({name: Decimal(values[name]) for name in MONEY})
    return Run(
        **values,
        skill_id=skill_id,
        skill_version=skill_version,
        report=None,
        heartbeat_at=None,
        lease_epoch=1,
        cancel_requested=False,
    )


def _answer(line: AnswerLine) -> Answer:
    cost = None if line.cost_usd is None else Decimal(line.cost_usd)
    return Answer(line.key, line.model, line.run_id, cost, line.created_at, read_reply(line.reply.encode()))
