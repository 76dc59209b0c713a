"""Files as Binance publishes them: one CSV in a zip, with or without a heading, with a checksum beside it or not."""

import gzip
import hashlib
import io
import struct
import zipfile
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from import_files import HOUR, MIN5, START, bar_rows, write

from pitboss.core.errors import UserError
from pitboss.data import file_reader as reading
from pitboss.data.importing import import_paths
from pitboss.data.lake import Lake
from pitboss.data.path_inference import FileHints, hints_of

HEAD = (
    "open_time,open,high,low,close,volume,close_time,quote_volume,count,taker_buy_volume,taker_buy_quote_volume,ignore"
)


def klines(start: int = START, count: int = 12, head: bool = False, unit: int = 1) -> str:
    lines = [
        f"{row['date'] * unit},{row['open']},{row['high']},{row['low']},{row['close']},{row['volume']},0,0,0,0,0,0"
        for row in bar_rows(count, start)
    ]
    return "\n".join([*([HEAD] if head else []), *lines]) + "\n"


def funding(start: int = START, head: bool = True) -> str:
    lines = [f"{start + index * 8 * HOUR + index},8,0.000{index}" for index in range(1, 4)]
    return "\n".join([*(["calc_time,funding_interval_hours,last_funding_rate"] if head else []), *lines])


def zip_file(path: Path, text: str | bytes, name: str = "", checksum: bool = True) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name or f"{path.stem}.csv", text)
    if checksum:
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        path.with_name(f"{path.name}.CHECKSUM").write_text(f"{digest}  {path.name}\n")
    return path


def published_folder(root: Path) -> Path:
    """A folder as it is when the public files are fetched as they lie there."""
    um = root / "data" / "futures" / "um"
    zip_file(um / "monthly" / "klines" / "BTCUSDT" / "5m" / "BTCUSDT-5m-2025-01.zip", klines(head=True))
    zip_file(um / "daily" / "klines" / "BTCUSDT" / "5m" / "BTCUSDT-5m-2025-02-01.zip", klines(START + 31 * 24 * HOUR))
    zip_file(um / "monthly" / "fundingRate" / "BTCUSDT" / "BTCUSDT-fundingRate-2025-01.zip", funding())
    zip_file(um / "monthly" / "markPriceKlines" / "BTCUSDT" / "5m" / "BTCUSDT-5m-2025-01.zip", klines(head=True))
    metrics = "create_time,symbol,sum_open_interest,sum_open_interest_value\n2025-01-01 00:05:00,BTCUSDT,123.5,9e9\n"
    zip_file(um / "daily" / "metrics" / "BTCUSDT" / "BTCUSDT-metrics-2025-01-01.zip", metrics)
    return root


def test_a_folder_of_published_files_is_imported_in_one_command(tmp_path: Path, lake: Lake) -> None:
    results = import_paths(lake, [published_folder(tmp_path / "files")], venue="binance")
    assert {(result.kind, result.symbol, result.interval) for result in results} == {
        ("bars", "BTC", "5m"),
        ("funding", "BTC", None),
        ("mark", "BTC", None),
        ("open_interest", "BTC", None),
    }
    bars, rates = lake.bars("binance", "BTC", "5m"), lake.points("funding", "binance", "BTC")
    assert bars is not None
    assert bars.open_at[:12].tolist() == [START + index * MIN5 for index in range(12)]
    assert len(bars) == 24
    assert rates is not None
    assert rates.at.tolist() == [START + index * 8 * HOUR for index in range(1, 4)]  # on the hour, as downloads have it
    assert sum(result.unchanged for result in import_paths(lake, [tmp_path / "files"], venue="binance")) == sum(
        result.rows for result in results
    )


def test_files_without_a_heading_and_in_microseconds_mean_the_same(tmp_path: Path) -> None:
    rows = []
    for number, (head, unit) in enumerate(((True, 1), (False, 1), (True, 1000), (False, 1000))):
        lake = Lake(tmp_path / f"lake{number}")
        import_paths(lake, [zip_file(tmp_path / str(number) / "BTCUSDT-5m-2025-01.zip", klines(head=head, unit=unit))])
        bars = lake.bars("hyperliquid", "BTC", "5m")
        assert bars is not None
        rows.append((bars.open_at.tolist(), bars.close.tolist()))
    assert all(each == rows[0] for each in rows)


def test_filed_elsewhere_the_import_says_whose_files_they_are(tmp_path: Path, lake: Lake) -> None:
    (done,) = import_paths(lake, [zip_file(tmp_path / "BTCUSDT-5m-2025-01.zip", klines())])
    assert "--venue binance keeps the two apart" in done.notes[-1]


def test_a_zip_that_does_not_match_its_checksum_is_refused_and_nothing_is_stored(tmp_path: Path, lake: Lake) -> None:
    good = zip_file(tmp_path / "BTCUSDT-5m-2025-01.zip", klines())
    bad = zip_file(tmp_path / "ETHUSDT-5m-2025-01.zip", klines())
    bad.with_name(f"{bad.name}.CHECKSUM").write_text("0" * 64 + "  x")
    with pytest.raises(UserError, match=r"does not match its checksum in ETHUSDT-5m-2025-01.zip.CHECKSUM"):
        import_paths(lake, [good, bad])
    assert lake.list() == []


@pytest.mark.parametrize("name", ["../../evil.csv", "/etc/passwd.csv", "C:\\x.csv", "a" * 300 + ".csv"])
def test_a_strange_name_inside_is_never_a_path(tmp_path: Path, lake: Lake, name: str) -> None:
    import_paths(lake, [zip_file(tmp_path / "in" / "BTCUSDT-5m-2025-01.zip", klines(), name)])
    inside = {path.name for path in tmp_path.rglob("*")}
    assert not {"evil.csv", "passwd.csv"} & inside


def test_a_bomb_is_refused_before_and_while_it_unpacks(
    tmp_path: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reading, "MOST_UNPACKED", 50_000)
    bomb = zip_file(tmp_path / "BTCUSDT-5m-2025-01.zip", b"0" * 60_000, checksum=False)
    with pytest.raises(UserError, match="the CSV inside is larger than"):
        import_paths(lake, [bomb])
    # one that lies about its size in every place where it stands
    content = bomb.read_bytes().replace(struct.pack("<I", 60_000), struct.pack("<I", 40_000))
    bomb.write_bytes(content)
    with pytest.raises(UserError, match=r"not a whole zip file|larger than"):
        import_paths(lake, [bomb])
    monkeypatch.setattr(reading, "MOST_UNPACKED", 50)
    with pytest.raises(UserError, match="larger than 0 MB"):
        import_paths(lake, [zip_file(tmp_path / "ETHUSDT-5m-2025-01.zip", klines(), checksum=False)])


class CountingFile(io.BytesIO):
    """A file without an end that counts what was read of it."""

    count = 0

    def read(self, size: int | None = -1) -> bytes:
        assert size is not None
        assert size >= 0
        self.count += size
        return bytes(size)


def test_no_more_than_the_bound_and_a_piece_is_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "MOST_UNPACKED", 3 * 2**20)
    endless = CountingFile()
    with pytest.raises(reading.TooLarge, match="it unpacks to more than 3 MB"):
        reading.unpack(endless.read)
    assert endless.count == 4 * 2**20


@pytest.mark.parametrize(("name", "most"), [("5m/BTC.csv.gz", 256), ("5m/BTC.jsonl.gz", 16), ("5m/BTC.json.gz", 16)])
def test_a_gz_bomb_is_refused_before_it_is_unpacked(
    tmp_path: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch, name: str, most: int
) -> None:
    if most != reading.MOST_UNPACKED >> 20:  # to unpack as much as may be takes long: one of them does
        monkeypatch.setattr(reading, "MOST_UNPACKED", most << 20)
    path = tmp_path / name
    path.parent.mkdir()
    piece = gzip.compress(b"0" * 2**20)
    path.write_bytes(piece * (most + 44))  # a gzip file may have many members; a kilobyte stands for a megabyte
    assert path.stat().st_size < 400_000
    with pytest.raises(UserError, match=rf"it unpacks to more than {most} MB") as caught:
        import_paths(lake, [path])
    assert caught.value.hint == "import it in smaller files, or unpack it first"


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("5m/BTC.csv.gz", b"date,open,high,low,close,volume\n" + b"1\n" * 200),
        ("5m/BTC.csv.gz", b"," * 2_000),
        ("5m/BTC.json.gz", b"[" + b"{}," * 1_500 + b"{}]"),
        ("5m/BTC.jsonl.gz", b"{}\n" * 1_500),
    ],
)
def test_a_gz_file_of_more_values_than_memory_holds_is_refused(
    tmp_path: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch, name: str, content: bytes
) -> None:
    for bound in ("MOST_CELLS", "MOST_JSON_VALUES", "MOST_COLUMNS"):
        monkeypatch.setattr(reading, bound, 1_000)
    path = tmp_path / name
    path.parent.mkdir()
    path.write_bytes(gzip.compress(content))
    with pytest.raises(UserError, match=r"it has [\d,]+ (values|columns); at most 1,000 are read"):
        import_paths(lake, [path])


@pytest.mark.parametrize("name", ["5m/BTC.parquet", "5m/BTC.feather"])
def test_a_table_whose_file_says_that_it_is_too_large_is_not_read(
    tmp_path: Path, lake: Lake, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(reading, "MOST_CELLS", 1_000)
    path = write(tmp_path / name, bar_rows(200))
    for reader in ("read_parquet", "read_ipc"):
        monkeypatch.setattr(pl, reader, None)
    with pytest.raises(UserError, match=r"it has 1,200 values; at most 1,000 are read"):
        import_paths(lake, [path])


def test_a_zip_with_no_table_or_several_is_refused(tmp_path: Path, lake: Lake) -> None:
    for number, names in enumerate(([], ["a.csv", "b.csv"], ["a.txt"], ["inner.zip"])):
        path = tmp_path / f"{number}" / "BTCUSDT-5m-2025-01.zip"
        path.parent.mkdir()
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, klines())
        with pytest.raises(UserError, match="not a zip with one CSV inside"):
            import_paths(lake, [path])


@settings(max_examples=32)
@given(st.data())
def test_a_damaged_zip_is_refused_or_read_without_a_difference(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = zip_file(tmp_path_factory.mktemp("zip") / "x.zip", klines(), checksum=False)
    original, content = reading.read(path), bytearray(path.read_bytes())
    for _ in range(data.draw(st.integers(0, 5))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content[: data.draw(st.integers(0, len(content)))])
    try:
        table, refusal = reading.read(path), ""
    except UserError as error:
        table, refusal = None, error.message
    if table is None:
        assert refusal.startswith(str(path))
        assert "\n" not in refusal
    else:
        assert table.equals(original)  # the bytes that differ are no part of the CSV, which has a checksum


@pytest.mark.parametrize(
    ("path", "clue"),
    [
        ("klines/BTCUSDT/5m/BTCUSDT-5m-2024-01.zip", FileHints("bars", "BTC", "5m")),
        ("x/1000PEPEUSDT-1h-2024-01-31.zip", FileHints("bars", "1000PEPE", "1h")),
        ("x/BTCUSDC-1h-2024-01-31.csv", FileHints("bars", "BTCUSDC", "1h")),
        ("x/BTCUSDT-fundingRate-2024-01.zip", FileHints("funding", "BTC")),
        ("markPriceKlines/BTCUSDT/8h/BTCUSDT-8h-2024-01.zip", FileHints("mark", "BTC")),
        ("indexPriceKlines/BTCUSDT/1h/BTCUSDT-1h-2024-01.zip", FileHints("oracle", "BTC")),
        ("klines/BTCUSDT/1mo/BTCUSDT-1mo-2024-01.zip", FileHints("bars", "BTC")),
    ],
)
def test_the_name_of_a_published_file_says_what_it_is(path: str, clue: FileHints) -> None:
    assert hints_of(Path("/data") / path) == clue


def test_premium_index_klines_are_not_taken_for_prices(tmp_path: Path, lake: Lake) -> None:
    path = zip_file(tmp_path / "premiumIndexKlines" / "BTCUSDT" / "5m" / "BTCUSDT-5m-2024-01.zip", klines())
    with pytest.raises(UserError, match="premium index klines"):
        import_paths(lake, [path])
