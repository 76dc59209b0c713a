"""A lake in object storage: pushed, and read as if it were here. Storage is a folder; `test_objects_s3.py` has a server."""

import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from object_lakes import END, copy_of, folder_storage, funding

from pitboss.core.errors import UserError
from pitboss.data.lake import Lake
from pitboss.data.lake_index import HEAD, IndexEntry, LakeIndex, head_bytes, is_lake_path, read_head, read_index
from pitboss.data.manifest import MANIFEST
from pitboss.data.object_storage import SECRET, VARIABLES, ObstoreStorage, open_objects, read_address
from pitboss.data.quality import check_lake


def objects_of(reads: list[str]) -> list[str]:
    return [name for name in reads if name.startswith("objects/")]


def part(kind: str, symbol: str, interval: str = "") -> str:
    middle = f"interval={interval}/" if interval else ""
    return f"{kind}/venue=demo/{middle}symbol={symbol}/year=2025/part.parquet"


# Addresses ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("s3://bucket/prefix/", "s3://bucket/prefix"),
        ("s3://bucket", "s3://bucket"),
        ("gs://bucket/a/b", "gs://bucket/a/b"),
        ("az://container/a", "az://container/a"),
        ("https://example.com:8443/lake", "https://example.com:8443/lake"),
        ("file:///srv/lake", "file:///srv/lake"),
        ("file:///srv/a%23b", "file:///srv/a%23b"),
    ],
)
def test_an_address_is_kept_as_it_is_meant(text: str, where: str) -> None:
    assert str(read_address(text)) == where
    pin = "a" * 64
    assert (str(read_address(f"{text}#{pin}")), read_address(f"{text}#{pin}").pin) == (where, pin)


@pytest.mark.parametrize("name", ["a#b", "a?b", "a%b", "a b"])
def test_a_folder_whose_name_needs_quoting_is_the_one_that_is_read(name: str, tmp_path: Path) -> None:
    (tmp_path / name / "objects").mkdir(parents=True)
    (tmp_path / name / "objects" / "x").write_bytes(b"12")
    storage = open_objects(read_address((tmp_path / name).as_uri()), {})
    assert storage.sizes("objects") == {"objects/x": 2}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/srv/lake",
        "lake",
        "s3:/bucket",
        "s3://",
        "ftp://host/x",
        "memory:///",
        "file://host/x",
        "file:///",
        "s3://bucket/../other",
        "s3://bucket/a//b",
        "s3://bucket/a\nb",
        "s3://bucket/a#123",
        "s3://bucket:x/a",
    ],
)
def test_what_is_no_address_is_refused(text: str) -> None:
    with pytest.raises(UserError):
        read_address(text)


@given(st.text("abcXYZ0189-_.~%+", min_size=4, max_size=30))
def test_an_address_with_a_password_is_refused_without_repeating_it(word: str) -> None:
    secret = f"pw-{word}"
    for text in (f"s3://me:{secret}@bucket/x", f"s3://{secret}@bucket/x", f"https://h/x?sig={secret}"):
        with pytest.raises(UserError) as refusal:
            read_address(text)
        assert secret not in f"{refusal.value.message} {refusal.value.hint}"


def test_every_variable_that_holds_a_secret_is_known_as_one() -> None:
    names = {name for each in VARIABLES.values() for name in each if SECRET.search(name)}
    assert {"AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "GOOGLE_SERVICE_ACCOUNT_KEY"} <= names
    assert {"AZURE_STORAGE_ACCOUNT_KEY", "AZURE_STORAGE_SAS_TOKEN", "AZURE_CLIENT_SECRET"} <= names


def test_without_the_package_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(UserError, match="needs the package obstore") as refusal:
        open_objects(read_address("s3://bucket/x"), {})
    assert "pitboss[objects]" in refusal.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "Generic S3 error: Error performing GET https://h/x?sig=QWERTY in 1ms - HTTP error: https://h/x?sig=QWERTY failed",
        "Generic error - key=QWERTY was refused",
        "Error performing PUT http://me:QWERTY@h/x - Server returned non-2xx status code: 403 Forbidden: QWERTY",
        "Error - status code: 404 Not Found: <Error><Code>NoSuchKey</Code><Key>QWERTY</Key></Error>",
    ],
)
@pytest.mark.parametrize("kind", ["GenericError", "PermissionDeniedError", "UnauthenticatedError"])
def test_what_the_library_says_is_reported_without_what_it_quotes(kind: str, text: str) -> None:
    from obstore import exceptions

    class FailingStore:
        def get(self, name: str) -> object:
            raise getattr(exceptions, kind)(text)

    with pytest.raises(UserError) as refusal:
        ObstoreStorage(read_address("s3://bucket/x"), FailingStore()).read("objects/a", lambda piece: None)
    assert refusal.value.message.startswith("s3://bucket/x")
    assert "QWERTY" not in f"{refusal.value.message} {refusal.value.hint}"


# Indexes --------------------------------------------------------------------------------------------------------------

NAMES = st.sampled_from([part("bars", symbol, "5m") for symbol in ("A", "B%2FC", "D")] + ["meta/venue=demo/SYNTHETIC"])
ENTRIES = st.builds(IndexEntry, st.text("0123456789abcdef", min_size=64, max_size=64), st.integers(0, 2**50))


@given(st.dictionaries(NAMES, ENTRIES), ENTRIES)
def test_an_index_is_read_as_it_was_written_whatever_its_order(files: dict[str, IndexEntry], own: IndexEntry) -> None:
    index, turned = LakeIndex({**files, MANIFEST: own}), LakeIndex({MANIFEST: own, **dict(reversed(files.items()))})
    assert index.dumps() == turned.dumps()
    assert read_index(index.dumps(), index.pin, "x").files == dict(sorted(index.files.items()))
    assert read_head(head_bytes(index.pin), "x") == index.pin


@pytest.mark.parametrize(
    "path",
    [
        "../bars/venue=x/interval=5m/symbol=A/year=2025/part.parquet",
        "/bars/venue=x/interval=5m/symbol=A/year=2025/part.parquet",
        "bars/venue=x/interval=5m/symbol=A/year=2025/../part.parquet",
        "bars/../venue=x/interval=5m/symbol=A/year=2025/part.parquet",
        "bars/venue=x/interval=5m/symbol=A\\..\\..\\B/year=2025/part.parquet",
        "bars/elsewhere/venue=x/interval=5m/symbol=A/year=2025/part.parquet",
        "bars//venue=x/interval=5m/symbol=A/year=2025/part.parquet",
        "bars/venue=x/interval=5m/symbol=A/year=2025/other.parquet",
        "bars/venue=x/part.parquet",
        "part.parquet",
        "settings.toml",
        "meta/venue=../SYNTHETIC",
        ".landing.json",
        "",
    ],
)
def test_no_file_is_made_where_a_lake_has_none(path: str) -> None:
    assert not is_lake_path(path)
    index = LakeIndex({path: IndexEntry("0" * 64, 1), MANIFEST: IndexEntry("0" * 64, 1)})
    with pytest.raises(UserError, match="is not what a push"):
        read_index(index.dumps(), index.pin, "x")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b'{"version":1}', b'{"version":1,"index":"zz"}'])
def test_a_head_that_is_none_is_refused(content: bytes) -> None:
    with pytest.raises(UserError, match="is not what a push"):
        read_head(content, "x")


# Pushing and reading --------------------------------------------------------------------------------------------------


def test_a_pushed_lake_says_the_same_as_the_one_here(stock: Lake, tmp_path: Path) -> None:
    there = folder_storage(tmp_path / "there")
    there.push(stock)
    far = there.remote_lake(tmp_path / "cache")
    assert far.venues() == stock.venues() == ["demo", "hyperliquid"]
    assert far.venues("bars") == ["demo"]
    assert far.symbols("demo") == stock.symbols("demo")
    assert far.intervals("demo", "BTC") == stock.intervals("demo", "BTC") == ["1m", "5m"]
    assert far.intervals("demo", "DOGE") == []
    assert far.synthetic_note("demo") == stock.synthetic_note("demo")
    assert far.is_synthetic("demo")
    assert not far.is_synthetic("hyperliquid")
    assert far.list() == stock.list()
    assert check_lake(far) == check_lake(stock)
    assert far.news("demo") == stock.news("demo")
    assert far.events("demo") == stock.events("demo")
    mine, theirs = stock.points("funding", "hyperliquid", "xyz:A/B"), far.points("funding", "hyperliquid", "xyz:A/B")
    assert mine is not None
    assert theirs is not None
    assert mine.value.tobytes() == theirs.value.tobytes()


def test_only_what_is_read_is_fetched_and_only_once(stock: Lake, tmp_path: Path) -> None:
    there, watched = folder_storage(tmp_path / "there"), None
    there.push(stock)
    watched = there.storage()
    far = there.remote_lake(tmp_path / "cache", objects=watched)
    assert far.venues("news") == ["demo"]
    assert far.bars("demo", "BTC", "5m") is not None
    wanted = {far.index.files[name].object for name in (MANIFEST, part("bars", "BTC", "5m"))}
    assert sorted(objects_of(watched.reads)) == sorted(wanted)

    again = there.storage()
    second = there.remote_lake(tmp_path / "cache", objects=again)
    assert second.bars("demo", "BTC", "5m") is not None
    assert again.reads == [HEAD], "a second run fetched something"
    pinned = there.remote_lake(tmp_path / "cache", pin=far.pin, objects=again)
    assert pinned.bars("demo", "BTC", "5m") is not None
    assert again.reads == [HEAD], "a pinned lake that is here was looked for elsewhere"


def test_a_push_sends_what_is_missing_and_the_head_last(stock: Lake, tmp_path: Path) -> None:
    there, lake = folder_storage(tmp_path / "there"), copy_of(stock, tmp_path / "lake")
    first = there.storage()
    results = there.push(lake, first)
    assert (results.sent_files, results.sent_bytes, results.changed) == (results.files, results.bytes, True)
    assert first.writes[-2:] == [f"indexes/{results.pin}.json", HEAD]

    same = there.storage()
    again = there.push(lake, same)
    assert (again.pin, again.sent_files, again.changed, same.writes) == (results.pin, 0, False, [])

    lake.put("funding", "hyperliquid", "NEW", None, funding(lake).head(5))
    more = there.storage()
    grown = there.push(lake, more)
    assert grown.sent_files == 2, "not only the new file and the manifest were sent"
    assert grown.pin != results.pin
    assert there.remote_lake(tmp_path / "cache", pin=results.pin).points("funding", "hyperliquid", "NEW") is None
    assert there.remote_lake(tmp_path / "cache").points("funding", "hyperliquid", "NEW") is not None


def test_a_reader_keeps_to_the_push_it_began_with(stock: Lake, tmp_path: Path) -> None:
    there, lake = folder_storage(tmp_path / "there"), copy_of(stock, tmp_path / "lake")
    there.push(lake)
    far = there.remote_lake(tmp_path / "cache")
    before = far.bars("demo", "BTC", "5m")
    rows = funding(lake).with_columns(value=funding(lake)["value"] + 1)
    lake.put("funding", "demo", "BTC", None, rows, replace=True)
    there.push(lake)
    points, fresh = (
        far.points("funding", "demo", "BTC"),
        there.remote_lake(tmp_path / "cache").points("funding", "demo", "BTC"),
    )
    mine = stock.points("funding", "demo", "BTC")
    assert before is not None
    assert points is not None
    assert fresh is not None
    assert mine is not None
    assert points.value.tobytes() == mine.value.tobytes(), "one reader saw two pushes"
    assert fresh.value.tobytes() != mine.value.tobytes()


def test_a_lake_that_lacks_what_is_there_takes_its_place_only_when_asked(stock: Lake, tmp_path: Path) -> None:
    there, other = folder_storage(tmp_path / "there"), Lake(tmp_path / "other")
    there.push(stock)
    other.put("funding", "hyperliquid", "NEW", None, funding(stock).head(5))
    with pytest.raises(UserError, match="files that this lake lacks, such as bars/"):
        there.push(other)
    assert there.remote_lake(tmp_path / "cache").venues() == ["demo", "hyperliquid"]
    there.push(other, replace=True)
    assert there.remote_lake(tmp_path / "cache").venues() == ["hyperliquid"]


def test_an_import_during_a_push_does_not_mix_two_lakes(stock: Lake, tmp_path: Path) -> None:
    there, lake = folder_storage(tmp_path / "there"), copy_of(stock, tmp_path / "lake")
    watched = there.storage()
    rows = funding(lake).with_columns(value=funding(lake)["value"] + 1)

    def import_once() -> None:
        watched.before_write = lambda: None
        for symbol in ("BTC", "ETH", "SOL"):
            lake.put("open_interest", "demo", symbol, None, rows, replace=True)

    watched.before_write = import_once
    there.push(lake, watched)
    far = there.remote_lake(tmp_path / "cache")
    assert far.list() == lake.list()
    assert check_lake(far) == check_lake(lake)


@pytest.mark.parametrize("harm", ["changed", "unknown", "gone", "no manifest"])
def test_a_lake_that_is_not_in_order_is_not_spread(harm: str, stock: Lake, tmp_path: Path) -> None:
    there, lake = folder_storage(tmp_path / "there"), copy_of(stock, tmp_path / "lake")
    path = lake.root / part("funding", "BTC")
    if harm == "changed":
        funding(lake).head(3).write_parquet(path)
    elif harm == "unknown":
        copy = lake.root / part("funding", "OTHER")
        copy.parent.mkdir(parents=True)
        copy.write_bytes(path.read_bytes())
    elif harm == "gone":
        path.unlink()
    else:
        (lake.root / MANIFEST).unlink()
    with pytest.raises(UserError) as refusal:
        there.push(lake)
    assert "data check" in refusal.value.hint
    with pytest.raises(UserError, match="there is no lake at"):
        there.remote_lake(tmp_path / "cache").venues()


def test_what_is_not_there_is_said_and_nothing_is_made(tmp_path: Path) -> None:
    there = folder_storage(tmp_path / "nowhere")
    with pytest.raises(UserError, match="there is no lake at file://"):
        there.remote_lake(tmp_path / "cache").venues()
    assert not (tmp_path / "nowhere").exists()
    assert not (tmp_path / "cache").exists()
    with pytest.raises(UserError, match="there is no data here"):
        there.push(Lake(tmp_path / "empty"))


def test_a_lake_elsewhere_is_never_written(stock: Lake, tmp_path: Path) -> None:
    there = folder_storage(tmp_path / "there")
    there.push(stock)
    far = there.remote_lake(tmp_path / "cache")
    for write in (
        lambda: far.put("funding", "x", "A", None, funding(stock)),
        lambda: far.writing(END),
        lambda: far.mark_synthetic("x", "y"),
        lambda: far.drop_synthetic("demo"),
    ):
        with pytest.raises(UserError, match="read-only"):
            write()


def test_a_lake_is_read_over_plain_http_and_not_written_there(stock: Lake, tmp_path: Path) -> None:
    from object_lakes import ObjectLake, web_server

    folder_storage(tmp_path / "there").push(stock)
    with web_server(tmp_path / "there") as address:
        far = ObjectLake(address).remote_lake(tmp_path / "cache")
        assert far.list() == stock.list()
        with pytest.raises(UserError, match="is read-only"):
            ObjectLake(address).push(stock)
