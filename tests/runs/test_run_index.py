"""The index of a run: the same rows as its records, however it was made, kept, damaged or cut."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bundle_files import FROM, TO
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.curve import points
from pitboss.core.instant import HOUR_MS, iso
from pitboss.report.decisions import PROPOSED
from pitboss.report.shell import html_document
from pitboss.runs import run_files, stored
from pitboss.runs.indexed_runs import IndexedRuns, keep_index, keep_page, read_index
from pitboss.runs.lineage import is_by_programs
from pitboss.runs.report import page_of
from pitboss.runs.run import ledger_of, start
from pitboss.runs.run_charts import equity_points, run_chart
from pitboss.runs.run_files import INDEX, KINDS, PAGE, SERIES
from pitboss.runs.run_index import RowFilter, RunIndex
from pitboss.runs.stored import decision_rows
from pitboss.runs.venues import venue_of
from pitboss.store.runs import Run
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.testing import plain_skill
from stored_records import records_of

HOSTILE = "</script><script>alert(1)</script><img src=x onerror='alert(2)'>\"\u202e\x00"
STRANGE: tuple[dict[str, Any], ...] = (
    {"action": "open_long", "symbol": "BTC", "size_usd": 900, "reason": HOSTILE, "stop_loss": 1},
    {"action": "open_long", "symbol": "BTC", "size_usd": 9e9, "leverage": 50, "reason": "far too large"},
    {"action": "close", "symbol": "BTC", "reason": "x" * 5_000},
)


def start_run(workspace: Workspace, **fields: Any) -> Run:
    skill = plain_skill(["BTC", "ETH"], "5m", model="policy/random")
    return asyncio.run(start(workspace, PerpRequest(skill, FROM, TO, **fields)))


@pytest.fixture(scope="module")
def runs(workspace: Workspace, run: Run) -> list[Run]:
    """A model that is asked at every tick, a policy with spans of holds, a blind run, and odd proposals."""
    lines = [json.dumps({"tick_at": iso(FROM + n * HOUR_MS), "proposal": each}) for n, each in enumerate(STRANGE)]
    return [
        run,
        start_run(workspace),
        start_run(workspace, blind=True),
        start_run(workspace, decisions="\n".join(lines)),
    ]


def expected_rows(workspace: Workspace, run: Run) -> list[dict[str, Any]]:
    """The rows as they are read from the records, one record after the other."""
    venue = venue_of(run.params["skill"])
    rows: list[dict[str, Any]] = []
    for record in records_of(workspace, run):
        for place, row in enumerate(venue.reveal(list(decision_rows(record)), run.params)):
            rows.append({**row, "seq": record.seq, "place": place})
    return rows


def test_an_index_has_the_rows_of_the_records(workspace: Workspace, runs: list[Run]) -> None:
    for run in runs:
        index = read_index(workspace, run)
        rows = expected_rows(workspace, run)
        assert len(index) == len(rows) > 0
        for number, row in enumerate(rows):
            shown = index.row(number)
            for name in ("seq", "place", "tick_at", "outcome"):
                assert shown[name] == row[name]
            for name in ("action", "symbol", "code", "size_usd", "leverage", "stop_loss"):
                assert shown.get(name) == row.get(name)
            assert (shown["times"], shown["until"]) == (row.get("times", 1), row.get("until", row["tick_at"]))
            assert shown["flags"] == list(row["flags"])
            reason = " ".join(str(row.get("reason") or row.get("text") or "").split())
            assert " ".join(shown["reason"].removesuffix("…").split())[:60] == _printable(reason)[:60]
        ledger = ledger_of(workspace, run)
        assert index.ticks == ledger.ticks
        assert list(zip(index.equity_at.tolist(), index.equity_usd.tolist(), strict=True)) == [
            (at, float(usd)) for at, usd in points(ledger.equity)
        ]
        assert len(index.fills) == sum(receipt.kind == "filled" for receipt in ledger.receipts)
        assert (index.next_seq, index.digest) == (records_of(workspace, run)[-1].seq + 1, run.digest)


def _printable(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


@given(data=st.data())
def test_an_index_grown_in_pieces_is_the_one_made_at_once(
    workspace: Workspace, runs: list[Run], data: st.DataObject
) -> None:
    run = data.draw(st.sampled_from(runs))
    records = records_of(workspace, run)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(records)), max_size=3)))
    venue, index = venue_of(run.params["skill"]), RunIndex()
    for first, last in zip([0, *cuts], [*cuts, len(records)], strict=True):
        index = index.extended(records[first:last], venue, run.params)
    assert plain_index(index) == plain_index(read_index(workspace, run))


def plain_index(index: RunIndex) -> Mapping[str, Any]:
    rows = [index.row(number) for number in range(len(index))]
    equity = index.equity_at.tolist(), index.equity_usd.tolist()
    return {"rows": rows, "equity": equity, "fills": index.fills, "halts": index.halts, "end": index.digest}


WORDS = st.sampled_from(["", "refused", "allowed", "noop", PROPOSED, "nothing"])
NAMES = st.sampled_from(["", "open_long", "close", "BTC", "ETH", "R3_POSITION_CAP", "R5_LEVERAGE_CAP", "asleep"])


@given(
    outcome=WORDS, action=NAMES, symbol=NAMES, code=NAMES, flag=NAMES, text=st.sampled_from(["", "LARGE", "by chance"])
)
def test_filters_find_what_a_slow_search_finds(
    workspace: Workspace, runs: list[Run], outcome: str, action: str, symbol: str, code: str, flag: str, text: str
) -> None:
    conditions: RowFilter = {
        "outcome": outcome, "action": action, "symbol": symbol, "code": code, "flag": flag, "text": text,
    }  # fmt: skip

    def fits(row: dict[str, Any]) -> bool:
        return (
            (not outcome or row["outcome"] == outcome or (outcome == PROPOSED and row["outcome"] != "noop"))
            and (not action or row.get("action") == action)
            and (not symbol or row.get("symbol") == symbol)
            and (not code or row.get("code") == code)
            and (not flag or flag in row["flags"])
            and (not text or text.lower() in f"{row['reason']} {row['detail']}".lower())
        )

    for run in runs:
        index = read_index(workspace, run)
        wanted = [number for number in range(len(index)) if fits(index.row(number))]
        assert index.find(conditions).tolist() == wanted


def test_files_of_a_complete_run_are_used_and_made_again_if_damaged(workspace: Workspace, runs: list[Run]) -> None:
    run = runs[0]
    fresh = plain_index(read_index(workspace, run))
    keep_index(workspace, run)
    keep_page(workspace, run, page_of(workspace, run))
    parts = IndexedRuns().page(workspace, run).parts
    prices = {name: bars.tolist() for name, bars in IndexedRuns().series(workspace, run).prices.items()}
    assert prices
    paths = [run_files.path_of(workspace, run, kind) for kind in KINDS]
    written = [path.read_bytes() for path in paths]
    assert run.digest is not None
    assert all(run.digest[:16] in path.name for path in paths)
    for damage in (
        lambda data: data[:-7],
        lambda data: data[:100],
        lambda data: b"",
        lambda data: data[:90] + b"x" + data[91:],
    ):
        for path, data in zip(paths, written, strict=True):
            path.write_bytes(damage(data))
        indexed = IndexedRuns()
        assert plain_index(indexed.index(workspace, run)) == fresh
        assert indexed.page(workspace, run).parts == parts
        assert {name: bars.tolist() for name, bars in indexed.series(workspace, run).prices.items()} == prices
        assert all(run_files.read(workspace, run, kind) for kind in (INDEX, PAGE, SERIES))


def test_pages_of_programs_are_the_same_without_the_prompts(
    workspace: Workspace, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = [run for run in runs if is_by_programs(run)]
    assert {run.model for run in programs} == {"standin/analyst", "policy/random"}
    for run in programs:
        page = html_document(page_of(workspace, run))
        with monkeypatch.context() as patched:
            patched.setattr(stored, "is_by_programs", lambda run: False)
            assert html_document(page_of(workspace, run)) == page


def test_the_rest_of_a_run_that_has_ended_is_taken_from_the_file_of_its_worker(
    workspace: Workspace, runs: list[Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, indexed = runs[1], IndexedRuns()
    early = RunIndex().extended(records_of(workspace, run)[:3], venue_of(run.params["skill"]), run.params)
    monkeypatch.setattr("pitboss.runs.indexed_runs.read_index", lambda *given: early)
    assert len(indexed.index(workspace, replace(run, status="running"))) == len(early)
    monkeypatch.undo()
    keep_index(workspace, run)
    monkeypatch.setattr("pitboss.runs.indexed_runs.read_index", lambda *given: pytest.fail("its records were read"))
    index = indexed.index(workspace, run)
    assert index.digest == run.digest
    assert len(index) > len(early)


def test_what_is_in_memory_is_bounded(workspace: Workspace, runs: list[Run]) -> None:
    small = IndexedRuns(most_bytes=1)
    for run in runs:
        small.index(workspace, run)
        small.page(workspace, run)
    assert len(small._kept) == 1
    assert plain_index(small.index(workspace, runs[0])) == plain_index(read_index(workspace, runs[0]))


def test_the_index_of_a_run_that_goes_on_grows_and_one_begun_anew_is_read_anew(
    workspace: Workspace, runs: list[Run]
) -> None:
    run = runs[1]
    records = records_of(workspace, run)
    venue = venue_of(run.params["skill"])
    early = RunIndex().extended(records[: len(records) // 2], venue, run.params)
    assert plain_index(read_index(workspace, run, early)) == plain_index(read_index(workspace, run))
    of_another = RunIndex().extended(records_of(workspace, runs[0])[:5], venue, runs[0].params)
    assert plain_index(read_index(workspace, run, of_another)) == plain_index(read_index(workspace, run))


def test_charts_are_drawn_for_a_part_of_the_time(workspace: Workspace, runs: list[Run]) -> None:
    run, indexed = runs[0], IndexedRuns()
    index, series = indexed.index(workspace, run), indexed.series(workspace, run)
    window = (FROM + 2 * HOUR_MS, FROM + 9 * HOUR_MS)
    for part in ("equity", "price/BTC"):
        whole, zoomed = run_chart(run, part, index, series), run_chart(run, part, index, series, window)
        assert whole is not None
        assert zoomed is not None
        assert f'data-part="{part}"' in zoomed
        assert whole != zoomed
    assert f'data-start="{window[0]}" data-end="{window[1]}"' in str(run_chart(run, "equity", index, series, window))
    assert run_chart(run, "price/NONE", index, series) is None
    for odd in ((0, 1), (TO * 2, TO * 3), (TO, FROM), (FROM, FROM)):
        assert run_chart(run, "price/BTC", index, series, odd)


def test_equity_points_keep_the_extremes(workspace: Workspace, runs: list[Run]) -> None:
    run, indexed = runs[0], IndexedRuns()
    index = indexed.index(workspace, run)
    few = equity_points(index, indexed.series(workspace, run), 30)
    assert len(few["at"]) <= 30
    assert max(few["equity_usd"]) == index.equity_usd.max()
    assert min(few["equity_usd"]) == index.equity_usd.min()
    assert {len(curve) for curve in few["baselines"].values()} == {len(few["at"])}
