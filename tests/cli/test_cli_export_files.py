"""`pitboss runs export` to files, and `pitboss report --open`."""

import csv
import io
import webbrowser
from collections.abc import Callable
from decimal import Decimal, localcontext
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from run_command import pitboss_ok, pitboss_refused

from pitboss.core.money import CONTEXT


def test_trades_are_the_same_as_lines_csv_and_parquet(
    home: Path, finished_run: Callable[[str], dict[str, Any]]
) -> None:
    run = finished_run("policy/sma_cross")
    where = ("--home", home)
    rows = pitboss_ok("runs", "export", "last", "--what", "trades", *where).lines
    closed = [row for row in rows if row["closed_at"] is not None]
    assert len(closed) == run["metrics"]["total_trades"] > 0
    fills = pitboss_ok("runs", "export", "last", "--what", "fills", *where).lines
    assert sum(row["fills"] for row in rows) == len(fills)
    assert sum(Decimal(row["fees_usd"]) for row in rows) == sum(Decimal(fill["fee_usd"]) for fill in fills)
    assert all(row["opened_at"] < row["closed_at"] and row["opened_at"].endswith("Z") for row in closed)
    for row in closed:
        with localcontext(CONTEXT):
            costs = sum(Decimal(row[name]) for name in ("fees_usd", "funding_usd", "penalties_usd"))
            assert Decimal(row["pnl_usd"]) == Decimal(row["gross_usd"]) - costs

    table, file = home.parent / "trades.csv", home.parent / "trades.parquet"
    assert (
        f"wrote {len(rows)} rows to {table}"
        in pitboss_ok("runs", "export", "last", "--what", "trades", "--out", table, *where).err
    )
    text = table.read_text("utf-8")
    texts = [{name: None if value is None else str(value) for name, value in row.items()} for row in rows]
    assert [{name: cell or None for name, cell in row.items()} for row in csv.DictReader(io.StringIO(text))] == texts
    assert text.startswith("symbol,side,opened_at,closed_at,size,")
    assert pitboss_ok("runs", "export", "last", "--what", "trades", "--format", "csv", *where).out == text
    pitboss_ok("runs", "export", "last", "--what", "trades", "--format", "parquet", "--out", file, *where)
    assert pl.read_parquet(file).to_dicts() == rows
    assert sorted(path.name for path in home.parent.glob("*trades*")) == ["trades.csv", "trades.parquet"]


@pytest.mark.parametrize("what", ["fills", "equity", "receipts", "decisions", "snapshots"])
def test_every_kind_can_be_a_table(what: str, home: Path, finished_run: Callable[[str], dict[str, Any]]) -> None:
    finished_run("policy/sma_cross")
    words = ("runs", "export", "last", "--what", what, "--home", home)
    rows = pitboss_ok(*words).lines
    file = home.parent / "rows.pq"
    pitboss_ok(*words, "--out", file)
    assert (
        len(list(csv.DictReader(io.StringIO(pitboss_ok(*words, "--format", "csv").out))))
        == len(rows)
        == pl.read_parquet(file).height
    )


def test_what_cannot_be_written_is_refused(home: Path, finished_run: Callable[[str], dict[str, Any]]) -> None:
    finished_run("policy/sma_cross")
    words = ("runs", "export", "last", "--home", home)
    assert "name a file with --out" in pitboss_refused(*words, "--what", "trades", "--format", "parquet")
    assert "cannot write" in pitboss_refused(*words, "--what", "trades", "--out", home / "no" / "trades.csv")
    (home / "file").write_text("")
    for place in (home / "file" / "trades.csv", home / ("x" * 300), home, Path("/"), Path()):
        words_with_place = (*words, "--what", "trades", "--out", place)
        assert "Errno" not in pitboss_refused(*words_with_place)
        assert "None" not in pitboss_refused(*words_with_place, "--format", "parquet")
    assert "is a folder" in pitboss_refused("report", "last", "--out", "/", "--home", home)
    assert "a bundle has its own form" in pitboss_refused(*words, "--bundle", "run.zip", "--format", "csv")


def test_a_report_is_opened_or_its_path_is_all_there_is(
    home: Path, finished_run: Callable[[str], dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    finished_run("policy/sma_cross")
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: not opened.append(url))
    answer = pitboss_ok("report", "last", "--open", "--home", home)
    assert opened == [Path(answer.out.strip()).as_uri()]
    assert answer.err == ""
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    answer = pitboss_ok("report", "last", "--open", "--home", home)
    assert Path(answer.out.strip()).is_file()
    assert "no browser" in answer.err
