"""Check a bundle offline against itself, and import it into a workspace.

A bundle is untrusted: it may be damaged, forged or malicious. `bundle.py` checks its format; this module checks its
contents, and content that cannot be computed with is reported as a problem, never a crash. What a bundle cannot prove
by itself is listed with every result (`unproven`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from itertools import chain, islice, zip_longest
from pathlib import Path
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec, snapshot
from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.core.instant import interval_ms
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import GENESIS, Record
from pitboss.runs.bundle import SKILL, STATE, AnswerLine, Bundle, BundleRun, light
from pitboss.runs.stored import journal_of
from pitboss.runs.venues import venue_of
from pitboss.sim.outcome import Ledger
from pitboss.skill.digest import skill_digest
from pitboss.skill.load import read_skill
from pitboss.store.answers import StoredReply, read_reply
from pitboss.store.import_run import insert_run
from pitboss.store.lifecycle import ACTIVE
from pitboss.store.runs import Run

MONEY = ("cost_usd", "saved_usd", "wasted_usd")
UNKNOWN = "NaN"
"""The cost of a run that called a model without a known price."""
MOST_POINTS, MOST_RECEIPTS, MOST_STEPS, MOST_NAMES = 10_000_000, 1_000_000, 2_000_000, 1_000
"""Limits for a whole run, whatever its records claim, because all of it is in memory at once."""
MOST_PROBLEMS = 20
MOST_DAYS = 36_525
DAY_MS = 86_400_000
MOST_AT = 1 << 47
_SIGNED = re.compile(r"-?\d{1,40}(\.\d{1,60})?")
_AMOUNT = re.compile(r"\d{1,40}(\.\d{1,60})?")
_POWER = re.compile(r"\s*[+-]?[\d_.]+[eE][+-]?\d+\s*")


@dataclass(slots=True)
class BundleCheck:
    """The result of checking a bundle."""

    run_id: str
    digest: str | None
    records: int = 0
    answers: int = 0
    problems: list[str] = field(default_factory=list[str])
    unproven: list[str] = field(default_factory=list[str])


def check_bundle(path: Path) -> BundleCheck:
    """Return everything that is wrong with a bundle. Needs nothing but the file."""
    with Bundle(path) as bundle:
        return _check(bundle)


def _check(bundle: Bundle) -> BundleCheck:
    run = bundle.manifest.run
    checked = BundleCheck(run.id, run.digest)
    checked.problems += bundle.differences()
    if checked.problems:
        return checked  # a member that fails its checksum is not read any further
    checked.unproven += _unproven(bundle)
    course, end = _chain(bundle, checked)
    ledger, steps = (None, None) if course is None else (course.ledger, course.steps)
    found = chain(
        _skill(bundle), _request(run), _state(bundle, *end), _result(run, ledger, end), _answers(bundle, steps, checked)
    )
    checked.problems += islice(found, MOST_PROBLEMS - len(checked.problems))
    return checked


def _unproven(bundle: Bundle) -> list[str]:
    """The properties that the file alone cannot prove."""
    run, which = bundle.manifest.run, bundle.manifest.answers
    said = [
        f"market data is not inside: that prices were so needs data with the digest {run.data_digest}, and a rerun;"
        " so do the baselines",
        "cost, timings and prompt texts stand beside the chain of digests and are only as they were exported",
    ]
    if which == "used":
        said.append("that the model gave these answers is its provider's to say; they are those the records hold")
    if which == "paid":
        said.append("the answers are those the run paid for; their places in the records were not noted")
    if run.status != "complete":
        said.append(f"the run is {run.status}: it has no result yet")
    return said


@dataclass(slots=True)
class _RecordTotals:
    """Totals of the records that later checks need, within the limits."""

    ledger: Ledger
    steps: dict[tuple[int, int], bytes] = field(default_factory=dict[tuple[int, int], bytes])
    points: int = 0

    def take(self, record: Record, body: dict[str, Any]) -> None:
        """Add a record after checking the size of its numbers: a few characters can denote a number of any length."""
        for piece in body["equity"]:
            at, step, base, *rest = piece
            if not (type(at) is type(step) is int and type(base) is str and _SIGNED.fullmatch(base)):
                raise ValueError("equity")
            if len(rest) == 1:
                self.points += max(1, _whole(rest[0], MOST_POINTS))
            else:
                decimals, units = rest
                _whole(decimals, 60)
                self.points += 1 + len([_whole(abs(unit), 1 << 62) for unit in units])
        _refuse_powers(body["receipts"])
        receipts = [Receipt(**receipt) for receipt in body["receipts"]]
        if record.kind == "span":
            _whole(body["ticks"], 1 << 52)
            for ticks in body["flags"].values():
                _whole(ticks, 1 << 52)
        for name in [*body["flags"], *(verdict["code"] for verdict in body.get("verdicts", ()))]:
            if name is not None and (type(name) is not str or len(name) > 200):
                raise ValueError("name")
        if record.kind == "tick" and len(body["proposals"]) != len(body["verdicts"]):
            raise ValueError("proposals")
        ledger = self.ledger
        if (
            self.points > MOST_POINTS
            or len(ledger.receipts) + len(receipts) > MOST_RECEIPTS
            or len(ledger.rejections) + len(ledger.noops) > MOST_NAMES
            or len(self.steps) > MOST_STEPS
        ):
            raise ValueError("too much")
        extra = codec.loads(record.extra)
        cost, saved = extra["cost_usd"], extra.get("saved_usd", "0")
        ledger.take(record.kind, body, receipts, None if cost is None else _money(cost), _money(saved))
        for number, step in enumerate([*body.get("steps", ()), *_reflected(body)]):
            said = _told(step["text"], step["finish_reason"], (call["name"] for call in step["calls"]))
            self.steps[record.seq, number] = said


def _reflected(body: dict[str, Any]) -> list[Any]:
    """The steps of a reflection, if a record has one, checked to have every field that is read later."""
    if "reflection" not in body:
        return []
    part = body["reflection"]
    if not all(type(part[name]) is str for name in ("prompt_sha256", "text")):
        raise ValueError("reflection")
    if not all(type(flag) is str and len(flag) <= 200 for flag in part["flags"]):
        raise ValueError("reflection")
    return list(part["steps"])


def _told(text: str, finish_reason: str, calls: Iterable[str]) -> bytes:
    """A digest of what a model replied in one step."""
    return sha256(codec.dumps([text, finish_reason, *calls])).digest()


def _chain(bundle: Bundle, checked: BundleCheck) -> tuple[_RecordTotals | None, tuple[int, str]]:
    """Check the chain of digests from its beginning.

    Returns the totals, if all records are readable, and the chain's end.
    """
    course: _RecordTotals | None = _RecordTotals(venue_of(_plain_skill(bundle.manifest.run)).read_ledger(()))
    expected, digest, kind = 0, GENESIS, ""
    for record in bundle.records():
        checked.records += 1
        if kind == "close":
            checked.problems.append(f"record {record.seq} comes after the end")
        try:
            if not (light(record.covered) and light(record.extra)):
                raise ValueError("too much")
            snapshot.check(record, expected, digest)
            if course is not None:
                course.take(record, codec.loads(record.covered))
        except ReplayMismatch as error:
            checked.problems.append(str(error))
        except Exception:  # noqa: BLE001 – a stranger's record may hold anything
            checked.problems.append(f"record {record.seq} cannot be read")
            course = None
        if len(checked.problems) >= MOST_PROBLEMS:
            return None, (expected, digest)
        expected, digest, kind = record.seq + 1, record.digest, record.kind
    if bundle.manifest.run.status == "complete" and kind != "close":
        checked.problems.append("the run is complete but its last record does not close it")
    return course, (expected, digest)


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
        skill = read_skill(params["skill"], venue_of(params["skill"]).skill_type())
        if (skill_digest(skill), skill.name) != (named.digest, named.name):
            yield "the skill in the run's parameters is not the one inside"
    except UserError as error:
        yield f"the skill cannot be read: {error.message}"
    except Exception:  # noqa: BLE001 – a stranger's parameters may be anything
        yield "the skill in the run's parameters cannot be read"


def _request(run: BundleRun) -> Iterator[str]:
    """Problems in the run's parameters, as far as commands read them."""
    try:
        venue = venue_of(run.params["skill"])
        request = venue.request_of(run.params)
        first, last = _whole(request.from_at, MOST_AT), _whole(request.to_at, MOST_AT)
        interval_ms(run.params["base_interval"])
        venue.realism(request)
        fits = first < last and isinstance(request.model, str) and isinstance(request.data_venue, str)
    except Exception:  # noqa: BLE001 – as above
        fits = False
    if not fits:
        yield "the run's parameters cannot be read"


def _state(bundle: Bundle, next_seq: int, digest: str) -> Iterator[str]:
    try:
        data = bundle.whole(STATE)
        state = codec.loads(data) if light(data) else {}
        ends = (0, GENESIS) if state is None else (_whole(state["seq"], 1 << 62), state["prev_digest"])
        if state is not None:
            venue_of(_plain_skill(bundle.manifest.run)).read_state(state)
    except UserError:
        raise
    except Exception:  # noqa: BLE001 – as above
        yield "the state cannot be read"
        return
    if ends != (next_seq, digest):
        yield "the state does not belong to the last record"


def _result(run: BundleRun, ledger: Ledger | None, end: tuple[int, str]) -> Iterator[str]:
    """Differences between the run's row and its records."""
    if run.status in ACTIVE:
        yield f"the run is {run.status}, which no bundle holds"
    unknown = run.cost_usd == UNKNOWN
    if not all(_AMOUNT.fullmatch(getattr(run, name)) for name in MONEY if not (unknown and name == "cost_usd")):
        yield "what the run says about money is no amount"
        return
    if run.status != "complete":
        if run.digest is not None or run.metrics is not None or run.baselines is not None:
            yield f"the run is {run.status} and yet has a result"
        return
    if run.digest != end[1]:
        yield "the run's digest is not that of its last record"
    if run.metrics is None:
        yield "the run is complete and has no metrics"
    if ledger is None or run.metrics is None:
        return
    try:
        found = codec.plain(_metrics(run, ledger))
    except Exception:  # noqa: BLE001 – as above
        yield "the metrics cannot be recomputed from the records"
        return
    for name in sorted({*run.metrics, *found}):
        if run.metrics.get(name) != found.get(name):
            stored = repr(run.metrics.get(name))[:80]
            yield f"metric {ascii(name[:80])[1:-1]}: stored {stored}, recomputed {found.get(name)!r}"
    if run.ticks != ledger.ticks:
        yield f"ticks: stored {run.ticks}, recomputed {ledger.ticks}"
    used = None if run.cost_usd == UNKNOWN else Decimal(run.cost_usd) - Decimal(run.wasted_usd)
    if used != ledger.cost_usd:
        yield f"cost_usd: stored {used} as used, recomputed {ledger.cost_usd}"


def _metrics(run: BundleRun, ledger: Ledger) -> dict[str, Any]:
    params, venue = run.params, venue_of(run.params["skill"])
    for name in ("from_at", "to_at"):
        _whole(params[name], MOST_AT)
    _money(params["equity_usd"])
    _whole(params["seed"], 1 << 62)
    start, to_at, step = venue.span(params)
    if not 0 < to_at - start <= MOST_DAYS * DAY_MS:
        raise ValueError("range")
    if sum(piece[3] if len(piece) == 4 else len(piece[4]) for piece in ledger.equity) > (to_at - start) // step + 1:
        raise ValueError("more points than bars")
    return venue.measure_again(params, ledger)


def _plain_skill(run: BundleRun) -> Mapping[str, Any]:
    """The skill in the parameters, or an empty document if it is not one."""
    skill = run.params.get("skill")
    return skill if isinstance(skill, dict) else {}


def _answers(bundle: Bundle, steps: dict[tuple[int, int], bytes] | None, checked: BundleCheck) -> Iterator[str]:
    """Check every reply against the places in the chain where it was used, if those are known."""
    for line in bundle.answers():
        checked.answers += 1
        try:
            written = line.reply.encode()
            if not light(written):
                raise ValueError("too much")
            reply = read_reply(written)
            calls = (codec.printable(call.name) for call in reply.calls)
            told = _told(codec.printable(reply.text), reply.finish_reason, calls)
        except Exception:  # noqa: BLE001 – as above
            yield f"answer {line.key[:12]} cannot be read"
            continue
        if line.cost_usd is not None and not _AMOUNT.fullmatch(line.cost_usd):
            yield f"answer {line.key[:12]} has a cost that is no amount"
        for seq, step in line.used:
            if steps is not None and steps.get((seq, step)) != told:
                yield f"answer {line.key[:12]} is not what record {seq} says at step {step + 1}"


@dataclass(frozen=True, slots=True)
class ImportedBundle:
    """The result of importing a bundle."""

    run_id: str
    new: bool
    answers: int


@contextmanager
def sound(path: Path) -> Iterator[Bundle]:
    """Open a bundle that passes every check; otherwise raise a one-line `UserError`."""
    with Bundle(path) as bundle:
        problems = _check(bundle).problems
        if problems:
            raise UserError(
                f"{path} is not what it says: {problems[0]}",
                "`pitboss runs verify FILE` says all of it; ask for it again",
            )
        yield bundle


def take_in(workspace: Workspace, bundle: Bundle, with_answers: bool = True) -> ImportedBundle:
    """Import the run of a `sound` bundle into a workspace."""
    run = bundle.manifest.run
    here = workspace.runs.get_or_none(run.id)
    if here is not None:
        if _same(workspace, here, bundle):
            return ImportedBundle(run.id, new=False, answers=0)
        raise UserError(f"there is another run {run.id} here already", "delete that one, or use another --home")
    skill = bundle.manifest.skill
    saved = workspace.skills.save(skill.name, skill.digest, bundle.whole(SKILL))
    row = _run(run, saved.id, saved.version)
    taken = 0

    def known() -> Iterator[StoredReply]:
        nonlocal taken
        for line in bundle.answers() if with_answers else ():
            taken += 1
            yield _answer(line)

    insert_run(workspace.database, row, bundle.records(), codec.loads(bundle.whole(STATE)), known())
    return ImportedBundle(run.id, new=True, answers=taken)


def _same(workspace: Workspace, here: Run, bundle: Bundle) -> bool:
    run = bundle.manifest.run
    if (here.status, here.digest, here.metrics) != (run.status, run.digest, run.metrics):
        return False
    pairs = zip_longest(journal_of(workspace, here).records(), bundle.records())
    return all(one is not None and other is not None and one.digest == other.digest for one, other in pairs)


def _run(row: BundleRun, skill_id: str, skill_version: int) -> Run:
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


def _answer(line: AnswerLine) -> StoredReply:
    cost = None if line.cost_usd is None else Decimal(line.cost_usd)
    return StoredReply(line.key, line.model, line.run_id, cost, line.created_at, read_reply(line.reply.encode()))
