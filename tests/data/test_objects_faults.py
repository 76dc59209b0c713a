"""A lake in object storage when something goes wrong: killed pushes, damaged objects, damaged copies, several at once."""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest
from object_lakes import ObjectLake, copy_of, folder_storage, funding

from pitboss.core.errors import UserError
from pitboss.data import lake_cache as cache
from pitboss.data.lake import Lake
from pitboss.data.lake_index import HEAD
from pitboss.data.quality import check_lake
from simulated_kill import Killed

FUNDING = "funding/venue=demo/symbol=BTC/year=2025/part.parquet"


@pytest.fixture(scope="module")
def pushed_folder(stock: Lake, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an object storage with the stock lake; tests get copies."""
    folder = tmp_path_factory.mktemp("pushed") / "there"
    folder_storage(folder).push(stock)
    return folder


@pytest.fixture
def object_lake(pushed_folder: Path, tmp_path: Path) -> ObjectLake:
    shutil.copytree(pushed_folder, tmp_path / "there")
    return folder_storage(tmp_path / "there")


def object_of(object_lake: ObjectLake, tmp_path: Path, name: str = FUNDING) -> Path:
    """Where the bytes of a file are stored."""
    return tmp_path / "there" / object_lake.remote_lake(tmp_path / "looked").index.files[name].object


def partial_files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.name.endswith(".part")]


# Pushes ---------------------------------------------------------------------------------------------------------------


def test_a_push_that_is_killed_anywhere_leaves_the_old_lake_and_is_gone_on_with(stock: Lake, tmp_path: Path) -> None:
    lake = Lake(tmp_path / "lake")
    lake.put("funding", "hyperliquid", "OLD", None, funding(stock).head(9))
    grown = copy_of(lake, tmp_path / "grown")
    for number in range(4):
        grown.put("funding", "hyperliquid", f"NEW{number}", None, funding(stock).head(10 + number))
    seen: set[int] = set()
    for dies in range(8):
        object_lake, copies = folder_storage(tmp_path / f"there-{dies}"), tmp_path / f"cache-{dies}"
        object_lake.push(lake)
        first, second = object_lake.storage(dies), object_lake.storage()
        try:
            object_lake.push(grown, first)
        except Killed:
            far = object_lake.remote_lake(copies)
            assert far.list() == lake.list(), f"half a push was seen after {dies} writes"
            assert check_lake(far) == check_lake(lake)
        else:
            assert dies == 7  # four files, the manifest, the index and the head
        results = object_lake.push(grown, second)
        assert not set(first.writes) & {name for name in second.writes if name.startswith("objects/")}
        assert object_lake.remote_lake(copies).list() == grown.list()
        seen.add(results.sent_files)
    assert seen == {0, 1, 2, 3, 4, 5}


def test_a_first_push_that_is_killed_is_no_lake(stock: Lake, tmp_path: Path) -> None:
    object_lake = folder_storage(tmp_path / "there")
    with pytest.raises(Killed):
        object_lake.push(stock, object_lake.storage(3))
    with pytest.raises(UserError, match="there is no lake at"):
        object_lake.remote_lake(tmp_path / "cache").venues()


def test_two_who_push_at_once_leave_one_whole_lake(stock: Lake, tmp_path: Path) -> None:
    object_lake, other = folder_storage(tmp_path / "there"), copy_of(stock, tmp_path / "other")
    other.put("funding", "hyperliquid", "NEW", None, funding(stock).head(5))
    lakes, start = [stock, other], Barrier(2)

    def go(lake: Lake) -> None:
        start.wait()
        object_lake.push(lake, replace=True)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(go, lakes))
    far = object_lake.remote_lake(tmp_path / "cache")
    assert far.list() in [lake.list() for lake in lakes]
    assert [each for each in check_lake(far) if not each.usable] == []


# Objects --------------------------------------------------------------------------------------------------------------

HARMS: dict[str, tuple[Callable[[Path], object], str]] = {
    "truncated": (lambda path: path.write_bytes(path.read_bytes()[:-7]), "bytes instead of"),
    "longer": (lambda path: path.write_bytes(path.read_bytes() + b"more"), "it has more than"),
    "wrong": (lambda path: path.write_bytes(path.read_bytes()[:-1] + b"\0"), "its digest differs"),
    "empty": (lambda path: path.write_bytes(b""), "it has 0 bytes instead of"),
    "missing": (lambda path: path.unlink(), "lacks the object of"),
}


@pytest.mark.parametrize("harm", HARMS)
def test_an_object_that_is_not_what_was_pushed_is_refused_by_name(
    harm: str, object_lake: ObjectLake, stock: Lake, tmp_path: Path
) -> None:
    spoil, said = HARMS[harm]
    spoil(object_of(object_lake, tmp_path))
    far = object_lake.remote_lake(tmp_path / "cache")
    with pytest.raises(UserError, match=said) as refusal:
        far.points("funding", "demo", "BTC")
    assert FUNDING in refusal.value.message
    assert object_lake.address in refusal.value.message
    assert "--again" in refusal.value.hint
    assert partial_files(tmp_path / "cache") == []
    assert not (far.root / FUNDING).exists()
    with pytest.raises(UserError, match=said):
        far.list()
    assert far.points("funding", "demo", "ETH") is not None, "the others are whole"

    object_lake.push(stock, again=True)
    assert object_lake.remote_lake(tmp_path / "cache").list() == stock.list()


def test_what_has_another_size_is_sent_again_without_being_reported(
    object_lake: ObjectLake, stock: Lake, tmp_path: Path
) -> None:
    path = object_of(object_lake, tmp_path)
    path.write_bytes(path.read_bytes()[:-7])
    assert object_lake.push(stock).sent_files == 1
    assert object_lake.remote_lake(tmp_path / "cache").list() == stock.list()


@pytest.mark.parametrize("content", [b"", b"{}", b"not json at all", b'{"version":99,"index":""}'])
def test_a_damaged_head_or_index_is_refused_and_can_be_put_right(
    content: bytes, object_lake: ObjectLake, stock: Lake, tmp_path: Path
) -> None:
    pin = object_lake.remote_lake(tmp_path / "looked").pin
    for name in (HEAD, f"indexes/{pin}.json"):
        path = tmp_path / "there" / name
        path.write_bytes(content)
        with pytest.raises(UserError, match=path.name):
            object_lake.remote_lake(tmp_path / f"cache-{path.name}").venues()
        object_lake.push(stock, again=True)
        assert object_lake.remote_lake(tmp_path / "cache").list() == stock.list()


def test_an_endless_object_is_not_taken(
    object_lake: ObjectLake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cache, "MOST_HEAD_BYTES", 1_000)
    (tmp_path / "there" / HEAD).write_bytes(b" " * 5_000)
    with pytest.raises(UserError, match="larger than any"):
        object_lake.remote_lake(tmp_path / "cache").venues()


def test_a_push_that_was_deleted_is_said(object_lake: ObjectLake, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="has no push aaaaaaaaaaaa…"):
        object_lake.remote_lake(tmp_path / "cache", pin="a" * 64).venues()


# Copies ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("linked", "harm"), [(True, "truncated"), (True, "wrong"), (True, "missing"), (False, "wrong")]
)
def test_a_damaged_copy_is_noticed_and_fetched_anew(
    linked: bool, harm: str, object_lake: ObjectLake, stock: Lake, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not linked:
        monkeypatch.setattr(cache.os, "link", _no_links)
    far = object_lake.remote_lake(tmp_path / "cache")
    assert far.points("funding", "demo", "BTC") is not None
    copy, kept = far.root / FUNDING, tmp_path / "cache" / "files" / far.index.files[FUNDING].sha256
    assert copy.samefile(kept) is linked
    spoil = HARMS[harm][0]
    spoil(copy)
    if harm == "wrong":  # of the same size, which is not looked into each time: `data check` does
        assert [each.problem for each in check_lake(far) if not each.usable] in (["changed"], ["unreadable"])
        copy.unlink()
    again = object_lake.remote_lake(tmp_path / "cache")
    assert again.list() == stock.list()
    assert check_lake(again) == check_lake(stock)


def _no_links(source: Path, target: Path) -> None:
    raise OSError(95, "Operation not supported")


def test_what_a_killed_fetch_left_is_not_taken_for_a_file(object_lake: ObjectLake, stock: Lake, tmp_path: Path) -> None:
    name = object_lake.remote_lake(tmp_path / "looked").index.files[FUNDING].sha256
    half = tmp_path / "cache" / "files" / f".{name}.part"
    half.parent.mkdir(parents=True)
    half.write_bytes(b"half of it")
    assert object_lake.remote_lake(tmp_path / "cache").list() == stock.list()
    assert partial_files(tmp_path / "cache") == []


def test_copies_that_are_deleted_under_a_reader_are_fetched_again(
    object_lake: ObjectLake, stock: Lake, tmp_path: Path
) -> None:
    far = object_lake.remote_lake(tmp_path / "cache")
    before = far.bars("demo", "BTC", "5m")
    shutil.rmtree(tmp_path / "cache")
    after = far.bars("demo", "BTC", "5m")
    assert before is not None
    assert after is not None
    assert before.close.tobytes() == after.close.tobytes()


def test_a_disk_that_cannot_be_written_is_said(object_lake: ObjectLake, tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("a file where the folder should be")
    with pytest.raises(UserError, match="cannot write to"):
        object_lake.remote_lake(tmp_path / "cache").venues()


def test_many_who_read_at_once_fetch_every_file_once(object_lake: ObjectLake, stock: Lake, tmp_path: Path) -> None:
    count, watched = 6, object_lake.storage()
    start, expected = Barrier(count), stock.points("funding", "demo", "SOL")

    def go(_: int) -> bytes:
        far = object_lake.remote_lake(tmp_path / "cache", objects=watched)
        start.wait()
        far.fetch_all()
        return b"".join(sorted((far.root / name).read_bytes()[:64] for name in far.index.files))

    with ThreadPoolExecutor(count) as pool:
        result = list(pool.map(go, range(count)))
    assert len(set(result)) == 1
    fetched = [name for name in watched.reads if name.startswith("objects/")]
    assert len(fetched) == len(set(fetched)), "a file was fetched twice"
    points = object_lake.remote_lake(tmp_path / "cache").points("funding", "demo", "SOL")
    assert points is not None
    assert expected is not None
    assert points.value.tobytes() == expected.value.tobytes()
    assert partial_files(tmp_path / "cache") == []
