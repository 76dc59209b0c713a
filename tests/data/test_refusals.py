"""Bad files: each gets one line naming file, row and time, and leaves nothing behind."""

import errno
import gzip
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from import_files import HOUR, MIN5, START, bar_rows, write

from pitboss.core.errors import UserError
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake

Rows = list[dict[str, Any]]


def set_fields(row: int, **values: Any) -> Callable[[Rows], Rows]:
    return lambda rows: [each | values if index == row else each for index, each in enumerate(rows)]


def swap_rows(rows: Rows) -> Rows:
    return [rows[0], rows[2], rows[1], *rows[3:]]


def double_row(rows: Rows) -> Rows:
    return [*rows[:3], rows[2], *rows[3:]]


def repeat_row(rows: Rows) -> Rows:
    return [*rows, rows[1]]


@pytest.mark.parametrize(
    ("spoil", "says"),
    [
        (set_fields(3, high=1.0), r"row 4 \(2025-01-01T00:15:00Z\): high 1.0 is below low"),
        (set_fields(3, low=0.0), r"row 4 \(2025-01-01T00:15:00Z\): low is 0.0, not a price"),
        (set_fields(3, open=-5.0), r"row 4 \(2025-01-01T00:15:00Z\): open is -5.0, not a price"),
        (set_fields(3, close=math.nan), r"row 4 \(2025-01-01T00:15:00Z\): close is nan, not a finite number"),
        (set_fields(3, high=math.inf), r"row 4 \(2025-01-01T00:15:00Z\): high is inf, not a finite number"),
        (set_fields(3, volume=-1.0), r"row 4 \(2025-01-01T00:15:00Z\): volume is -1.0"),
        (set_fields(3, volume=None), r"row 4 \(2025-01-01T00:15:00Z\): volume is missing"),
        (set_fields(3, date=None), r"row 4: the time is missing"),
        (set_fields(3, date=START + 3 * MIN5 + 1000), r"row 4 .*: the time is not a multiple of 5m"),
        (swap_rows, r"row 3 \(2025-01-01T00:05:00Z\): earlier than the row before \(unordered\)"),
        (double_row, r"row 4 \(2025-01-01T00:10:00Z\): the same time as the row before \(duplicated\)"),
        (repeat_row, r"row 25 \(2025-01-01T00:05:00Z\): this time was there before \(duplicated\)"),
    ],
)
def test_a_bad_bar_is_refused_by_row_and_time(tmp_path: Path, lake: Lake, spoil, says: str) -> None:
    path = write(tmp_path / "5m" / "BTC.parquet", spoil(bar_rows()))
    with pytest.raises(UserError, match=r"BTC\.parquet: " + says):
        import_paths(lake, [path])
    assert list(lake.root.rglob("*.parquet")) == []


@pytest.mark.parametrize(
    ("value", "says"),
    [
        ("abc", "close is 'abc', not a finite number"),
        ("NaN", "close is 'NaN', not a finite number"),
        ("", "close is missing"),
    ],
)
def test_text_that_is_no_number_is_shown_as_it_stands(tmp_path: Path, lake: Lake, value: str, says: str) -> None:
    path = tmp_path / "5m" / "BTC.csv"
    path.parent.mkdir()
    path.write_text(f"date,open,high,low,close,volume\n2025-01-01T00:00:00Z,1,2,1,{value},0\n")
    with pytest.raises(UserError, match=says):
        import_paths(lake, [path])


def test_the_first_bad_row_is_named_whatever_is_wrong_with_later_ones(tmp_path: Path, lake: Lake) -> None:
    rows = set_fields(2, volume=None)(set_fields(6, high=0.1)(bar_rows()))
    with pytest.raises(UserError, match="row 3 "):
        import_paths(lake, [write(tmp_path / "5m" / "BTC.parquet", rows)])


def test_a_time_that_cannot_be_read_is_shown(tmp_path: Path, lake: Lake) -> None:
    rows = [row | {"date": "01/02/2025"} for row in bar_rows(1)]
    with pytest.raises(UserError, match="row 1: '01/02/2025' is not a time"):
        import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", rows)])


def test_among_readable_numbers_only_the_time_that_is_none_is_named(tmp_path: Path, lake: Lake) -> None:
    rows = [row | {"date": str(row["date"])} for row in bar_rows(3)]
    rows[1]["date"] = "yesterday"
    with pytest.raises(UserError, match="row 2: 'yesterday' is not a time"):
        import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", rows)])


def test_a_bad_row_in_a_file_of_several_symbols_is_named_by_its_place_in_the_file(tmp_path: Path, lake: Lake) -> None:
    rows = [row | {"symbol": symbol} for row in bar_rows(4) for symbol in ("BTC", "ETH")]
    rows[5]["high"] = 1.0
    with pytest.raises(UserError, match=r"row 6 \(2025-01-01T00:10:00Z\): high 1.0 is below low"):
        import_paths(lake, [write(tmp_path / "5m" / "all.csv", rows)])


def test_a_symbol_that_none_of_several_in_the_file_has_is_refused(tmp_path: Path, lake: Lake) -> None:
    rows = [row | {"symbol": symbol} for symbol, row in zip(("BTC", "ETH"), bar_rows(2), strict=True)]
    with pytest.raises(UserError, match="the rows are of BTC, ETH, none of SOL"):
        import_paths(lake, [write(tmp_path / "5m" / "all.csv", rows)], symbol="SOL")
    assert lake.list() == []


@pytest.mark.parametrize("column", ["date", "open", "high", "low", "close", "volume"])
def test_a_missing_column_is_named_with_what_the_file_has(tmp_path: Path, lake: Lake, column: str) -> None:
    rows = [{name: value for name, value in row.items() if name != column} for row in bar_rows()]
    with pytest.raises(UserError, match="no column for " + ("time" if column == "date" else column)) as refused:
        import_paths(lake, [write(tmp_path / "5m" / "BTC.parquet", rows)])
    assert "the file has" in refused.value.hint


@pytest.mark.parametrize(
    ("kind", "rows", "says"),
    [
        ("funding", [{"date": START, "rate": math.nan}], "funding is nan"),
        ("funding", [{"date": START, "rate": 1e-5}, {"date": START, "rate": 1e-5}], "duplicated"),
        ("funding", [{"date": START + HOUR, "rate": 1e-5}, {"date": START, "rate": 1e-5}], "unordered"),
        ("funding", [{"date": START, "premium": 1e-5}], "no column for funding"),
        ("mark", [{"date": START, "value": 0.0}], "0.0 is not a price"),
        ("oracle", [{"date": START, "value": -2.0}], "-2.0 is not a price"),
        ("open_interest", [{"date": START, "value": -2.0}], "-2.0 is not an open interest"),
        ("news", [{"published": START, "text": " "}], "there is no text"),
        ("news", [{"published": START, "sentiment": 0.5}], "no column for the headline"),
        ("news", [{"published": START, "text": ["x", "y"]}], "row 1 .*: text is not plain text"),
        ("news", [{"published": START, "text": {"en": "x"}}], "row 1 .*: text is not plain text"),
        ("news", [{"published": START, "text": "x", "source": ["x"]}], "row 1 .*: source is not plain text"),
        ("news", [{"published": START, "text": "x", "sentiment": math.inf}], "sentiment is inf"),
        ("news", [{"published": START, "text": "x", "sentiment": s} for s in (0.1, 0.2)], "differ about the same item"),
        ("events", [{"release_utc": START, "note": "x"}], "no column for the event's title"),
        ("events", [{"release_utc": START, "title": "x", "known_at": "soon"}], "known_at 'soon' is not a time"),
        ("events", [{"release_utc": START, "title": "x", "importance": "huge"}], "importance 'huge'"),
        ("events", [{"release_utc": START, "title": {"en": "x"}}], "row 1 .*: title is not plain text"),
        ("events", [{"release_utc": START, "title": "x", "kind": ["x"]}], "row 1 .*: kind is not plain text"),
        ("events", [{"release_utc": START, "title": "x", "impact": ["x"]}], "row 1 .*: impact is not plain text"),
    ],
)
def test_bad_rows_of_other_kinds_are_refused(tmp_path: Path, lake: Lake, kind: str, rows: Rows, says: str) -> None:
    with pytest.raises(UserError, match=says):
        import_paths(lake, [write(tmp_path / kind / "BTC.parquet", rows)])
    assert lake.list() == []


LONG = "word\x1b[2J\u202e " * 2_000


@pytest.mark.parametrize(
    ("name", "rows", "more"),
    [
        ("5m/BTC.csv", set_fields(3, high=LONG)(bar_rows()), {}),
        ("5m/BTC.csv", set_fields(3, date=LONG)(bar_rows()), {}),
        ("5m/BTC.csv", [row | {"interval": LONG} for row in bar_rows()], {}),
        (
            "5m/all.csv",
            [row | {"symbol": LONG + str(index)} for index, row in enumerate(bar_rows(3))],
            {"symbol": "BTC"},
        ),
        ("5m/BTC.csv", [{LONG: 1, "open": 2}], {}),
        ("some/BTC.csv", [{LONG: 1}], {}),
        ("funding/BTC.csv", [{"date": START, "rate": LONG}], {}),
        ("events/a.csv", [{"release_utc": START, "title": "x", "importance": LONG}], {}),
        ("events/a.csv", [{"release_utc": START, "title": "x", "known_at": LONG}], {}),
        ("l2/BTC.csv", [{"time": LONG, "side": "bid", "price": 1, "size": 1}], {"kind": "l2"}),
        ("l2/BTC.csv", [{"time": START, "side": LONG, "price": 1, "size": 1}], {"kind": "l2"}),
        ("l2/BTC.csv", [{"time": START, "side": "bid", "price": LONG, "size": 1}], {"kind": "l2"}),
        ("l2/BTC.csv", [{"time": START, "side": "bid", "price": "1" * 4_000, "size": 1}], {"kind": "l2"}),
        ("l2/BTC.csv", [{"time": START, "side": "bid", "price": "1e9999", "size": 1}], {"kind": "l2"}),
        ("listings/a.csv", [{"symbol": LONG, "listed_at": None, "delisted_at": None}], {"kind": "listings"}),
        ("meta/a.json", [{"name": LONG, "szDecimals": 99, "maxLeverage": 1}], {"kind": "meta"}),
        ("meta/a.json", [{"name": LONG, "szDecimals": 2, "maxLeverage": 1}] * 2, {"kind": "meta"}),
    ],
)
def test_a_refusal_shows_a_cell_cut_and_printable(
    tmp_path: Path, lake: Lake, name: str, rows: Rows, more: dict[str, str]
) -> None:
    with pytest.raises(UserError) as refused:
        import_paths(lake, [write(tmp_path / name, rows)], **more)
    shown = f"{refused.value.message} {refused.value.hint}".replace(str(tmp_path), "")
    assert shown.isprintable(), shown
    assert len(shown) < 500, shown


def test_an_empty_file_is_refused(tmp_path: Path, lake: Lake) -> None:
    for name in ("BTC.csv", "BTC.jsonl", "BTC.parquet"):
        path = tmp_path / "5m" / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"")
        with pytest.raises(UserError, match=f"{name}.*(empty|cannot be read)"):
            import_paths(lake, [path])
    path.with_name("B.csv").write_text("date,open,high,low,close,volume\n")
    with pytest.raises(UserError, match="empty"):
        import_paths(lake, [path.with_name("B.csv")])
    pl.DataFrame(schema={"date": pl.Int64, "open": pl.Float64}).write_parquet(path)
    with pytest.raises(UserError, match="empty"):
        import_paths(lake, [path])


def test_an_unknown_extension_is_refused(tmp_path: Path, lake: Lake) -> None:
    path = tmp_path / "5m" / "BTC.xlsx"
    path.parent.mkdir()
    path.write_bytes(b"x")
    with pytest.raises(UserError, match="unknown kind of file") as refused:
        import_paths(lake, [path])
    assert "parquet" in refused.value.hint
    with pytest.raises(UserError, match="no file in this folder"):
        import_paths(lake, [tmp_path])


@pytest.mark.parametrize("name", ["BTC.parquet", "BTC.feather", "BTC.csv.gz", "BTC.json"])
def test_garbage_under_a_good_name_is_one_clear_line(tmp_path: Path, lake: Lake, name: str) -> None:
    path = tmp_path / "5m" / name
    path.parent.mkdir()
    path.write_bytes(b"\x00\x01garbage" * 50)
    with pytest.raises(UserError, match="cannot be read"):
        import_paths(lake, [path])


def test_bad_json_is_named_by_line(tmp_path: Path, lake: Lake) -> None:
    path = write(tmp_path / "5m" / "BTC.jsonl", bar_rows(3))
    path.write_text(path.read_text() + '{"date": NaN}\n')
    with pytest.raises(UserError, match="line 4 is not valid JSON"):
        import_paths(lake, [path])
    path.write_text("[1, 2]\n")
    with pytest.raises(UserError, match="row 1 is not an object"):
        import_paths(lake, [path])


def test_a_missing_path_is_refused(tmp_path: Path, lake: Lake) -> None:
    with pytest.raises(UserError, match="no such file"):
        import_paths(lake, [tmp_path / "nowhere"])


def test_what_neither_path_nor_columns_tell_is_asked_for(tmp_path: Path, lake: Lake) -> None:
    path = write(tmp_path / "x" / "some prices.csv", bar_rows())
    with pytest.raises(UserError) as refused:
        import_paths(lake, [path])
    assert "--symbol" in refused.value.hint
    with pytest.raises(UserError) as refused:
        import_paths(lake, [path], symbol="BTC")
    assert refused.value.hint == "add --interval, for example --interval 5m; the rows look 5m apart"
    path = write(tmp_path / "x" / "things.csv", [{"a": 1, "b": 2}])
    with pytest.raises(UserError, match="cannot tell the kind of data") as refused:
        import_paths(lake, [path])
    assert "--kind" in refused.value.hint


@pytest.mark.parametrize(
    ("arguments", "says", "hint"),
    [
        ({"kind": "bar"}, "unknown kind of data 'bar'", "did you mean bars?"),
        ({"kind": "l2"}, "no column for the side", "one of side"),
        ({"interval": "7m"}, "unknown interval '7m'", "one of 1m"),
        ({"venue": "../x"}, "is not a venue name", "letters"),
    ],
)
def test_a_wrong_argument_is_refused_with_a_hint(
    tmp_path: Path, lake: Lake, arguments: dict, says: str, hint: str
) -> None:
    with pytest.raises(UserError, match=says) as refused:
        import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", bar_rows())], **arguments)
    assert refused.value.hint.startswith(hint)


def test_rows_that_name_another_interval_are_refused(tmp_path: Path, lake: Lake) -> None:
    rows = [row | {"interval": "1h"} for row in bar_rows(3, step=HOUR)]
    with pytest.raises(UserError, match="the rows have interval 1h, not 5m"):
        import_paths(lake, [write(tmp_path / "5m" / "BTC.csv", rows)])


@pytest.mark.parametrize("symbol", ["B\x1b[31mTC", "BTC\nETH", "BTC\x00", "BTC\u202e", "  "])
@pytest.mark.parametrize("place", ["column", "option", "meta", "listings"])
def test_a_symbol_that_cannot_be_printed_is_refused(tmp_path: Path, lake: Lake, symbol: str, place: str) -> None:
    rows: Rows = [{"symbol": symbol} | row for row in bar_rows(2)]
    option = None
    if place == "option":
        rows, option = bar_rows(2), symbol
    elif place == "meta":
        rows = [{"name": symbol, "szDecimals": 5, "maxLeverage": 40}]
    elif place == "listings":
        rows = [{"symbol": symbol, "listed_at": START}]
    elif not symbol.strip():
        return  # a row without a symbol
    interval = "5m" if place in ("column", "option") else None
    with pytest.raises(UserError, match=r"is not printable text|there is no symbol") as error:
        import_paths(lake, [write(tmp_path / "rows.jsonl", rows)], symbol=option, interval=interval)
    assert error.value.message.isprintable()
    assert list(lake.root.rglob("*.parquet")) == []


def test_spaces_around_a_symbol_in_a_column_do_not_count(tmp_path: Path, lake: Lake) -> None:
    rows = [{"symbol": name} | row for row in bar_rows(2) for name in (" BTC", "ETH ")]
    path = write(tmp_path / "rows.csv", rows)
    results = import_paths(lake, [path], interval="5m")
    assert [(result.symbol, result.rows) for result in results] == [("BTC", 2), ("ETH", 2)]


def test_a_name_of_an_asset_that_is_no_text_is_refused(tmp_path: Path, lake: Lake) -> None:
    path = tmp_path / "meta.json"
    path.write_text('{"universe": [{"name": ["BTC"], "szDecimals": 5, "maxLeverage": 40}]}')
    with pytest.raises(UserError, match="asset 1 of the universe lacks a usable name"):
        import_paths(lake, [path])


@pytest.mark.parametrize("name", ["BTC.json", "BTC.jsonl", "BTC.csv", "BTC.json.gz"])
def test_a_byte_order_mark_does_not_count(tmp_path: Path, lake: Lake, name: str) -> None:
    path = write(tmp_path / "5m" / name.removesuffix(".gz"), bar_rows())
    content = b"\xef\xbb\xbf" + path.read_bytes()
    path = path.with_name(name)
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    (result,) = import_paths(lake, [path])
    assert (result.symbol, result.rows) == ("BTC", 24)


def test_a_link_to_nothing_is_named_as_one(tmp_path: Path, lake: Lake) -> None:
    (tmp_path / "BTC-5m.csv").symlink_to(tmp_path / "gone.csv")
    with pytest.raises(UserError, match="a link to a file that does not exist"):
        import_paths(lake, [tmp_path / "BTC-5m.csv"])


def test_a_folder_that_cannot_be_read_is_not_passed_over(
    tmp_path: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "in" / "5m" / "BTC.csv", bar_rows())
    write(tmp_path / "in" / "closed" / "ETH-5m.csv", bar_rows())
    scandir = os.scandir

    def denied(folder: str) -> Any:
        if Path(folder).name == "closed":
            raise PermissionError(errno.EACCES, "Permission denied", str(folder))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", denied)
    with pytest.raises(UserError, match=r"closed cannot be read \(Permission denied\)"):
        import_paths(lake, [tmp_path / "in"])


@pytest.mark.parametrize("end", ["\n\n", "\r\n\r\n", "\n\n\n\n"])
def test_blank_lines_at_the_end_of_a_table_do_not_count(tmp_path: Path, lake: Lake, end: str) -> None:
    path = write(tmp_path / "5m" / "BTC.csv", bar_rows())
    path.write_bytes(path.read_text().rstrip("\n").encode() + end.encode())
    (result,) = import_paths(lake, [path])
    assert result.rows == 24
