"""A branch of a run: the same past to the byte, an ordinary run from there."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest
import zstandard

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core import codec
from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.core.instant import iso, parse_instant
from pitboss.runs.fork import ForkChange, fork
from pitboss.runs.lineage import decided_by
from pitboss.runs.run import ledger_of, resume, start, verify
from pitboss.runs.stored import document
from pitboss.runs.tool_context import of_run
from pitboss.store import schema
from pitboss.store import sealed_rows as rows
from pitboss.store.runs import Run
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.testing import plain_skill
from stored_records import records_of

FROM, TO, END = map(parse_instant, ("2025-03-27T20:00", "2025-03-28T04:00", "2025-03-31"))
AT = "2025-03-28T01:30:00Z"


@pytest.fixture
def workspace(home: Path, tmp_path: Path) -> Iterator[Workspace]:
    settings = load_settings(home).model_copy(update={"database_url": str(tmp_path / "pitboss.db")})
    with open_workspace(settings) as opened:
        yield opened


def start_run(workspace: Workspace, model: str, every: str = "15m") -> Run:
    skill = plain_skill(["BTC"], every, model=model, tools={"built_in": ["get_portfolio", "fetch_recent_bars"]})
    return asyncio.run(start(workspace, PerpRequest(skill, FROM, TO)))


def run_fork(workspace: Workspace, source: Run, at: str = AT, change: ForkChange | None = None) -> Run:
    branch = asyncio.run(fork(workspace, source.id, at, change or ForkChange()))
    return asyncio.run(resume(workspace, branch))


def test_a_fork_that_changes_nothing_ends_in_the_digest_and_the_metrics_of_its_source(workspace: Workspace) -> None:
    source = start_run(workspace, "standin/analyst")

    branch = run_fork(workspace, source)

    assert (branch.digest, branch.metrics, branch.ticks) == (source.digest, source.metrics, source.ticks)
    assert branch.id != source.id
    assert verify(workspace, branch.id) == []


def test_a_fork_shares_every_record_before_the_tick_and_decides_anew_from_there(workspace: Workspace) -> None:
    source = start_run(workspace, "standin/analyst")

    branch = run_fork(workspace, source, change=ForkChange(model="policy/buy_and_hold"))

    first, second, at = records_of(workspace, source), records_of(workspace, branch), parse_instant(AT)
    shared = [record for record in first if record.tick_at < at]
    assert len(shared) > 20
    assert [record.covered for record in second[: len(shared)]] == [record.covered for record in shared]
    assert second[len(shared)].tick_at == at
    assert second[len(shared)].digest != first[len(shared)].digest
    assert branch.model == "policy/buy_and_hold"
    assert verify(workspace, branch.id) == []


def test_a_fork_says_what_it_was_forked_from(workspace: Workspace) -> None:
    source = start_run(workspace, "standin/analyst")

    branch = run_fork(workspace, source, change=ForkChange(settings=("risk.max_leverage=1",)))

    count = sum(record.tick_at < parse_instant(AT) for record in records_of(workspace, source))
    stored = branch.params["forked_from"]
    assert stored.items() >= {"run_id": source.id, "at": AT, "seq": count, "digest": source.digest}.items()
    assert branch.params["skill"]["risk"]["max_leverage"] == 1
    assert document(workspace, source)["forked_from"] is None
    assert document(workspace, branch)["forked_from"] == {
        "run_id": source.id,
        "tick_at": AT,
        "model": "standin/analyst",
    }


@pytest.mark.parametrize(
    ("model", "first", "second"),
    [
        ("standin/analyst", ForkChange(model="policy/sma_cross"), ForkChange(model="policy/momentum")),
        ("policy/momentum", ForkChange(model="standin/analyst"), ForkChange(model="policy/hold")),
        (
            "standin/analyst",
            ForkChange(settings=("risk.max_leverage=1",)),
            ForkChange(settings=("risk.max_leverage=2",)),
        ),
        (
            "policy/random",
            ForkChange(settings=("risk.max_position_pct=1",)),
            ForkChange(settings=("risk.max_position_pct=2",)),
        ),
    ],
)
def test_a_fork_with_another_model_or_other_caps_is_forked_again_before_and_after_its_own_fork(
    workspace: Workspace, model: str, first: ForkChange, second: ForkChange
) -> None:
    source = start_run(workspace, model)
    branch = run_fork(workspace, source, change=first)
    for at in ("2025-03-27T22:00:00Z", AT, "2025-03-28T03:00:00Z"):
        again = run_fork(workspace, branch, at, second)
        shared = [record.covered for record in records_of(workspace, branch) if record.tick_at < parse_instant(at)]
        own = [record.covered for record in records_of(workspace, again)]
        same = len(shared) if len(shared) and own[len(shared) - 1] == shared[-1] else len(shared) - 1  # a cut span
        assert own[:same] == shared[:same]
        assert verify(workspace, again.id) == []
        assert asyncio.run(of_run(workspace, branch.id, parse_instant(at))).observation.at == parse_instant(at)
    unchanged = run_fork(workspace, branch, "2025-03-28T03:00:00Z")
    assert unchanged.metrics == branch.metrics


def test_a_changed_fork_whose_source_was_deleted_is_refused_in_one_line(workspace: Workspace) -> None:
    source = start_run(workspace, "standin/analyst")
    branch = run_fork(workspace, source, change=ForkChange(settings=("risk.max_leverage=1",)))
    workspace.runs.delete(source.id)
    with pytest.raises(UserError, match=f"forked from {source.id}, which is not here"):
        asyncio.run(fork(workspace, branch.id, "2025-03-28T03:00:00Z", ForkChange()))


def test_a_fork_of_a_fork_holds_every_model_with_its_part(workspace: Workspace) -> None:
    source = start_run(workspace, "policy/sma_cross")
    second = run_fork(workspace, source, "2025-03-28", ForkChange(model="policy/momentum"))
    third = run_fork(workspace, second, "2025-03-28T02:00:00Z", ForkChange(model="policy/hold"))
    before = run_fork(workspace, third, "2025-03-27T22:00:00Z")

    start, first, then, end = iso(FROM), "2025-03-28T00:00:00Z", "2025-03-28T02:00:00Z", iso(TO)
    assert document(workspace, third)["decided_by"] == [
        {"model": "policy/sma_cross", "from": start, "to": first},
        {"model": "policy/momentum", "from": first, "to": then},
        {"model": "policy/hold", "from": then, "to": end},
    ]
    assert document(workspace, third)["forked_from"] == {
        "run_id": second.id,
        "tick_at": then,
        "model": "policy/momentum",
    }
    assert [part["model"] for part in document(workspace, before)["decided_by"]] == ["policy/sma_cross", "policy/hold"]
    assert document(workspace, source)["decided_by"] == [{"model": "policy/sma_cross", "from": start, "to": end}]


@pytest.mark.parametrize(
    "stored",
    [None, "x", 7, {}, {"at": "soon"}, {"at": 5}, {"at": "9999-01-01"}, {"at": AT}, {"at": AT, "decided_by": [7, {}]}],
)
def test_any_stored_value_can_be_read(workspace: Workspace, stored: object) -> None:
    run = start_run(workspace, "policy/hold")
    parts = decided_by(replace(run, params={**run.params, "forked_from": stored}))
    is_fork = isinstance(stored, dict) and stored.get("at") == AT
    assert [part["model"] for part in parts] == ([None, "policy/hold"] if is_fork else ["policy/hold"])


def test_a_span_of_holds_that_goes_on_beyond_the_tick_is_cut_in_two(workspace: Workspace) -> None:
    source = start_run(workspace, "policy/hold")
    at = "2025-03-27T22:00:00Z"

    branch = run_fork(workspace, source, at, ForkChange(model="standin/analyst"))

    cut, acts = records_of(workspace, branch)[:2]
    assert (cut.kind, acts.kind) == ("span", "tick")
    assert codec.loads(cut.covered)["until_at"] == parse_instant("2025-03-27T21:45:00Z")
    assert acts.tick_at == parse_instant(at)
    assert branch.ticks == source.ticks
    assert verify(workspace, branch.id) == []


def test_a_fork_of_a_policy_between_two_spans_that_changes_nothing_has_its_digest(workspace: Workspace) -> None:
    source = start_run(workspace, "policy/sma_cross", "5m")

    branch = run_fork(workspace, source, "2025-03-28")

    assert branch.digest == source.digest


def test_a_tick_may_be_named_by_the_number_of_its_record(workspace: Workspace) -> None:
    source = start_run(workspace, "standin/analyst")

    branch = run_fork(workspace, source, "7")

    assert branch.params["forked_from"]["seq"] == 7
    assert branch.digest == source.digest


def test_a_fork_at_the_first_tick_shares_nothing_and_works(workspace: Workspace) -> None:
    source = start_run(workspace, "standin/analyst")

    assert run_fork(workspace, source, "0").digest == source.digest


def test_money_that_the_first_run_paid_counts_as_saved_by_its_branch(workspace: Workspace) -> None:
    source = start_run(workspace, "standin/analyst")
    with workspace.database.write() as connection:  # as if its first two ticks had cost a cent each
        for row in connection.exec_driver_sql("SELECT * FROM records WHERE seq < 2").mappings().all():
            extra = codec.loads(zstandard.decompress(row["extra"])) | {"cost_usd": "0.01", "saved_usd": "0.005"}
            pressed = zstandard.compress(codec.dumps(extra))
            rows.change(connection, schema.records, dict(row), {"extra": pressed})

    branch = run_fork(workspace, source)

    ledger = ledger_of(workspace, branch)
    assert (ledger.cost_usd, ledger.saved_usd) == (0, Decimal("0.03"))
    assert branch.digest == source.digest


@pytest.mark.parametrize(
    ("at", "said"),
    [
        ("2025-03-20", "has no tick there"),
        ("2025-04-20", "has no tick there"),
        ("99999", "no tick with this number"),
        ("yesterday", "cannot read"),
    ],
)
def test_a_tick_that_the_run_does_not_have_is_refused(workspace: Workspace, at: str, said: str) -> None:
    source = start_run(workspace, "policy/hold")

    with pytest.raises(UserError, match=said):
        run_fork(workspace, source, at)


@pytest.mark.parametrize(
    ("setting", "said"),
    [("schedule.every=1h", r"schedule\.every"), ("context.symbols=[BTC, ETH]", r"context\.symbols")],
)
def test_a_fork_cannot_change_what_its_past_was_lived_with(workspace: Workspace, setting: str, said: str) -> None:
    source = start_run(workspace, "policy/hold")

    with pytest.raises(UserError, match=said):
        run_fork(workspace, source, AT, ForkChange(settings=(setting,)))
    assert len(workspace.runs.listing().runs) == 1


def test_a_past_that_does_not_come_out_again_is_not_taken_over(workspace: Workspace) -> None:
    source = start_run(workspace, "standin/analyst")
    with workspace.database.write() as connection:  # another fee than the run was made with
        params = codec.dumps({**source.params, "taker_bps": "9"})
        row = dict(connection.exec_driver_sql("SELECT * FROM runs").mappings().one())
        rows.change(connection, schema.runs, row, {"params": params})

    with pytest.raises(ReplayMismatch, match="came out differently"):
        run_fork(workspace, source, "2025-03-28T03:30:00Z")
    assert [run.id for run in workspace.runs.listing().runs] == [source.id]
