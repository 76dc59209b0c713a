"""Check the contents of a bundle against each other: records, skill, state, metrics and answers.

Needs nothing but the file. A bundle is untrusted: it may be damaged, forged or malicious. `bundle.py` checks its format;
this module reports content that cannot be computed with as a problem and never fails on it. What a file cannot prove by
itself is listed with every result (`unproven`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from hashlib import sha256
from itertools import chain, islice
from pathlib import Path
from typing import Any

from pitboss.core import codec, snapshot
from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.core.instant import DAY_MS, interval_ms
from pitboss.core.receipt import Receipt
from pitboss.core.snapshot import GENESIS, Record
from pitboss.models.endpoint import ENDPOINT, read_endpoint
from pitboss.models.providers import PRESET, PROGRAMS, REPLAY
from pitboss.runs.bundle import MONEY, SKILL, STATE, Bundle, BundleRun, is_parsable
from pitboss.runs.lineage import FORKED_FROM
from pitboss.runs.venues import venue_of
from pitboss.sim.outcome import Ledger, stored_rejections
from pitboss.skill.digest import skill_digest
from pitboss.skill.load import read_skill
from pitboss.store.answers import read_reply
from pitboss.store.lifecycle import ACTIVE

DECIDED_HERE = (*PROGRAMS, f"{REPLAY}/", "decisions")
"""Names of deciders whose runs need no answers."""
UNKNOWN = "NaN"
"""The cost of a run that called a model without a known price."""
MOST_POINTS, MOST_RECEIPTS, MOST_STEPS, MOST_NAMES = 10_000_000, 1_000_000, 2_000_000, 1_000
"""Limits for a complete run, whatever its records claim, because all of it is in memory at once."""
MOST_PROBLEMS = 20
MOST_DAYS = 36_525
MOST_AT = 1 << 47
_SIGNED = re.compile(r"-?\d{1,40}(\.\d{1,60})?")
_AMOUNT = re.compile(r"\d{1,40}(\.\d{1,60})?")
_EXPONENT = re.compile(r"\s*[+-]?[\d_.]+[eE][+-]?\d+\s*")


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
    """Return everything that is wrong with a bundle."""
    with Bundle(path) as bundle:
        return check_contents(bundle)


def check_contents(bundle: Bundle) -> BundleCheck:
    """Return everything that is wrong with an open bundle."""
    run = bundle.manifest.run
    result = BundleCheck(run.id, run.digest)
    result.problems += bundle.differences()
    if result.problems:
        return result  # a member that fails its checksum is not read any further
    result.unproven += _unproven(bundle)
    totals, end = _chain(bundle, result)
    ledger, steps = (None, None) if totals is None else (totals.ledger, totals.steps)
    problems = chain(
        _skill(bundle), _request(run), _state(bundle, *end), _result(run, ledger, end), _answers(bundle, steps, result)
    )
    result.problems += islice(problems, max(0, MOST_PROBLEMS - len(result.problems)))
    return result


def _unproven(bundle: Bundle) -> list[str]:
    """The properties that the file alone cannot prove."""
    run, answers = bundle.manifest.run, bundle.manifest.answers
    properties = [
        "market data is not included: prices and baselines can only be checked by a rerun on data with the digest "
        f"{run.data_digest}",
        "cost, timings and prompt texts are not covered by the chain of digests",
    ]
    if answers == "used":
        properties.append(
            f"only the provider can confirm that {run.model} gave these answers; they match the records"
            if _has_endpoint(run)
            else f"which model {run.model} stood for is not stored, so it is unknown who gave these answers; they match "
            "the records"
        )
    if answers == "paid":
        properties.append(
            "the answers are those that the run paid for; which records used them, and that their model decided, is unknown"
        )
    if answers == "none" and not run.model.startswith(DECIDED_HERE):
        properties.append(f"no answers are included: nothing shows that {run.model} decided")
    if run.status != "complete":
        properties.append(f"the run is {run.status}: it has no result yet")
    return properties


def _has_endpoint(run: BundleRun) -> bool:
    """Whether the run's name is that of a provider and a model: always, but for `llm/` of earlier versions."""
    return not run.model.startswith(f"{PRESET}/") or read_endpoint(run.params.get(ENDPOINT)) is not None


@dataclass(slots=True)
class _RecordTotals:
    """Totals of the records that later checks need, within the limits."""

    ledger: Ledger
    steps: dict[tuple[int, int], bytes] = field(default_factory=dict[tuple[int, int], bytes])
    points: int = 0

    def take(self, record: Record, body: dict[str, Any]) -> None:
        """Add a record after checking the size of its numbers: a few characters can denote a number of any length."""
        for piece in body["equity"]:
            at, step, base, *values = piece
            if not (type(at) is type(step) is int and type(base) is str and _SIGNED.fullmatch(base)):
                raise ValueError("equity")
            if len(values) == 1:
                self.points += max(1, _count(values[0], MOST_POINTS))
            else:
                decimals, units = values
                _count(decimals, 60)
                self.points += 1 + len([_count(abs(unit), 1 << 62) for unit in units])
        _refuse_exponents(body["receipts"])
        receipts = [Receipt(**receipt) for receipt in body["receipts"]]
        if record.kind == "span":
            _count(body["ticks"], 1 << 52)
            for ticks in body["flags"].values():
                _count(ticks, 1 << 52)
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
        ledger.rejected_settings.update(stored_rejections(extra))
        if len(ledger.rejected_settings) > MOST_NAMES:
            raise ValueError("too much")
        for number, step in enumerate([*body.get("steps", ()), *_reflection_steps(body)]):
            calls = (call["name"] for call in step["calls"])
            self.steps[record.seq, number] = _reply_digest(step["text"], step["finish_reason"], calls)


def _reflection_steps(body: dict[str, Any]) -> list[Any]:
    """The steps of a reflection, if a record has one, checked to have every field that is read later."""
    if "reflection" not in body:
        return []
    part = body["reflection"]
    if not all(type(part[name]) is str for name in ("prompt_sha256", "text")):
        raise ValueError("reflection")
    if not all(type(flag) is str and len(flag) <= 200 for flag in part["flags"]):
        raise ValueError("reflection")
    return list(part["steps"])


def _reply_digest(text: str, finish_reason: str, calls: Iterable[str]) -> bytes:
    """The digest of a model reply."""
    return sha256(codec.dumps([text, finish_reason, *calls])).digest()


def _chain(bundle: Bundle, result: BundleCheck) -> tuple[_RecordTotals | None, tuple[int, str]]:
    """Check the chain of digests from its beginning.

    Returns the totals, if all records are readable, and the chain's end.
    """
    totals: _RecordTotals | None = _RecordTotals(venue_of(_plain_skill(bundle.manifest.run)).read_ledger(()))
    expected, digest, kind = 0, GENESIS, ""
    for record in bundle.records():
        result.records += 1
        if kind == "close":
            result.problems.append(f"record {record.seq} comes after the end")
        try:
            if not (is_parsable(record.covered) and is_parsable(record.extra)):
                raise ValueError("too much")
            snapshot.check(record, expected, digest)
            if totals is not None:
                totals.take(record, codec.loads(record.covered))
        except ReplayMismatch as error:
            result.problems.append(str(error))
        except Exception:  # noqa: BLE001 – an untrusted record may hold anything
            result.problems.append(f"record {record.seq} cannot be read")
            totals = None
        if len(result.problems) >= MOST_PROBLEMS:
            return None, (expected, digest)
        expected, digest, kind = record.seq + 1, record.digest, record.kind
    if bundle.manifest.run.status == "complete" and kind != "close":
        result.problems.append("the run is complete but its last record does not close it")
    return totals, (expected, digest)


def _count(value: Any, limit: int) -> int:
    if type(value) is not int or not 0 <= value <= limit:
        raise ValueError("not a count")
    return value


def _money(value: Any) -> Decimal:
    if type(value) is not str or not _AMOUNT.fullmatch(value):
        raise ValueError("not an amount")
    return Decimal(value)


def _refuse_exponents(value: Any) -> None:
    """Raise `ValueError` for a number in exponent notation: records never have one."""
    if isinstance(value, str) and len(value) < 400 and _EXPONENT.fullmatch(value):
        raise ValueError("exponent notation")
    for item in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        _refuse_exponents(item)


def _skill(bundle: Bundle) -> Iterator[str]:
    expected, params = bundle.manifest.skill, bundle.manifest.run.params
    if sha256(bundle.read(SKILL)).hexdigest() != expected.digest:
        yield "the skill does not hash to its digest"
    if params.get("skill_digest") != expected.digest:
        yield "the skill in the bundle is not the one that the run used"
    try:
        skill = read_skill(params["skill"], venue_of(params["skill"]).skill_type())
        if (skill_digest(skill), skill.name) != (expected.digest, expected.name):
            yield "the skill in the run's parameters is not the one in the bundle"
    except UserError as error:
        yield f"the skill cannot be read: {error.message}"
    except Exception:  # noqa: BLE001 – untrusted parameters may be anything
        yield "the skill in the run's parameters cannot be read"


def _request(run: BundleRun) -> Iterator[str]:
    """Problems in the run's parameters, as far as commands read them."""
    try:
        venue = venue_of(run.params["skill"])
        request = venue.request_of(run.params)
        first, last = _count(request.from_at, MOST_AT), _count(request.to_at, MOST_AT)
        interval_ms(run.params["base_interval"])
        venue.realism(request)
        fits = first < last and isinstance(request.model, str) and isinstance(request.data_venue, str)
        endpoint = read_endpoint(run.params.get(ENDPOINT))
        requested = request.source if endpoint is None else endpoint.requested
        named = request.source if endpoint is None else endpoint.name
    except Exception:  # noqa: BLE001 – as above
        yield "the run's parameters cannot be read"
        return
    if not fits:
        yield "the run's parameters cannot be read"
    elif (run.model, request.source) != (named, requested):
        yield "the run is stored under another model than the one in its parameters"


def _state(bundle: Bundle, next_seq: int, digest: str) -> Iterator[str]:
    try:
        data = bundle.read(STATE)
        state = codec.loads(data) if is_parsable(data) else {}
        ends = (0, GENESIS) if state is None else (_count(state["seq"], 1 << 62), state["prev_digest"])
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
        yield f"the run is {run.status}; bundles hold only runs that have ended"
    unknown = run.cost_usd == UNKNOWN
    if not all(_AMOUNT.fullmatch(getattr(run, name)) for name in MONEY if not (unknown and name == "cost_usd")):
        yield "a cost of the run is no amount"
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
        recomputed = codec.plain(_metrics(run, ledger))
    except Exception:  # noqa: BLE001 – as above
        yield "the metrics cannot be recomputed from the records"
        return
    for name in sorted({*run.metrics, *recomputed}):
        if run.metrics.get(name) != recomputed.get(name):
            stored = repr(run.metrics.get(name))[:80]
            yield f"metric {ascii(name[:80])[1:-1]}: stored {stored}, recomputed {recomputed.get(name)!r}"
    if run.ticks != ledger.ticks:
        yield f"ticks: stored {run.ticks}, recomputed {ledger.ticks}"
    used = None if run.cost_usd == UNKNOWN else Decimal(run.cost_usd) - Decimal(run.wasted_usd)
    if used != ledger.cost_usd:
        yield f"cost_usd: stored {used} as used, recomputed {ledger.cost_usd}"


def _metrics(run: BundleRun, ledger: Ledger) -> dict[str, Any]:
    params, venue = run.params, venue_of(run.params["skill"])
    for name in ("from_at", "to_at"):
        _count(params[name], MOST_AT)
    _money(params["equity_usd"])
    _count(params["seed"], 1 << 62)
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


def _answers(bundle: Bundle, steps: dict[tuple[int, int], bytes] | None, result: BundleCheck) -> Iterator[str]:
    """Check every reply against the records that used it, if those are known, and its model against the run's."""
    run = bundle.manifest.run
    forked_from = run.params.get(FORKED_FROM)
    first_own = forked_from.get("seq") if isinstance(forked_from, dict) else 0  # the records before are of the source
    for line in bundle.answers():
        result.answers += 1
        try:
            data = line.reply.encode()
            if not is_parsable(data):
                raise ValueError("too much")
            reply = read_reply(data)
            calls = (codec.printable(call.name) for call in reply.calls)
            digest = _reply_digest(codec.printable(reply.text), reply.finish_reason, calls)
        except Exception:  # noqa: BLE001 – as above
            yield f"answer {line.key[:12]} cannot be read"
            continue
        if line.cost_usd is not None and not _AMOUNT.fullmatch(line.cost_usd):
            yield f"answer {line.key[:12]} has a cost that is no amount"
        is_own = isinstance(first_own, int) and any(seq >= first_own for seq, _ in line.used)
        if is_own and _has_endpoint(run) and line.model.partition("#")[0] != run.model:
            yield f"answer {line.key[:12]} is of another model than the run"
        for seq, step in line.used:
            if steps is not None and steps.get((seq, step)) != digest:
                yield f"answer {line.key[:12]} is not the reply in record {seq}, step {step + 1}"
