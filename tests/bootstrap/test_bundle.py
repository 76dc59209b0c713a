"""A run in one file: the same bytes each time, checked by a stranger, never trusted."""

import asyncio
import json
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pitboss.bootstrap.backtest import Request
from pitboss.bootstrap.bundle import ANSWERS, MANIFEST, MEMBERS, RECORDS, SKILL, STATE, seal_of
from pitboss.bootstrap.pack import write_bundle
from pitboss.bootstrap.runner import start, verify
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.unpack import check_bundle, take_in
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core import codec
from pitboss.core.errors import ReplayMismatch, UserError
from pitboss.core.instant import parse_instant
from pitboss.core.ports import ModelReply
from pitboss.data.demo import write_demo
from pitboss.data.lake import Lake
from pitboss.store.answers import Answers
from pitboss.store.runs import Run
from pitboss.testing.builders import plain_skill
from pitboss.testing.provider import FakeProvider

FROM, TO, END = (parse_instant(f"2025-03-{day}") for day in ("27", "28", "31"))
KEY = "a" * 64
Contents = dict[str, bytes]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workspace")
    write_demo(Lake(folder / "lake"), days=6, end=END)
    return folder


@pytest.fixture(scope="module")
def workspace(home: Path) -> Iterator[Workspace]:
    with open_workspace(load_settings(home)) as opened:
        yield opened


@pytest.fixture(scope="module")
def run(workspace: Workspace) -> Run:
    skill = plain_skill(["BTC"], "1h", model="standin/analyst", tools={"built_in": ["get_portfolio"]})
    made = asyncio.run(start(workspace, Request(skill, FROM, TO)))
    reply = ModelReply("paid for and not used", cost_usd=Decimal("0.01"))
    asyncio.run(Answers(workspace.database, workspace.now).put(KEY, "groq/m", made.id, Decimal("0.01"), reply))
    return made


@pytest.fixture(scope="module")
def whole(workspace: Workspace, run: Run, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return asyncio.run(write_bundle(workspace, run.id, tmp_path_factory.mktemp("bundle") / "run.pitboss.zip"))


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Workspace]:
    with open_workspace(load_settings(tmp_path / "other")) as opened:
        yield opened


def contents(path: Path) -> Contents:
    with zipfile.ZipFile(path) as bundle:
        return {name: bundle.read(name) for name in bundle.namelist()}


def packed(members: Contents, path: Path) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as bundle:
        for name, data in members.items():
            bundle.writestr(name, data)
    return path


def forged(whole: Path, path: Path, change: Callable[[Contents, dict[str, Any]], None]) -> Path:
    """A bundle with something changed and every digest made to fit again, as a forger would."""
    import hashlib

    members = contents(whole)
    manifest = json.loads(members[MANIFEST])
    change(members, manifest)
    for name in MEMBERS:
        data = members[name]
        manifest["contents"][name] = {"sha256": hashlib.sha256(data).hexdigest(), "bytes": len(data)}
    manifest["seal"] = seal_of(manifest)
    members[MANIFEST] = codec.dumps(manifest)
    return packed(members, path)


def test_the_same_run_gives_the_same_bytes(workspace: Workspace, run: Run, whole: Path, tmp_path: Path) -> None:
    again = asyncio.run(write_bundle(workspace, run.id, tmp_path / "again.zip"))

    assert again.read_bytes() == whole.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.zip"]


def test_a_stranger_finds_nothing_wrong_and_is_told_what_is_not_proven(whole: Path, run: Run) -> None:
    checked = check_bundle(whole)

    assert checked.problems == []
    assert (checked.run_id, checked.digest, checked.answers) == (run.id, run.digest, 1)
    assert any(str(run.data_digest) in line for line in checked.unproven)


def test_nothing_of_this_machine_is_inside(whole: Path, home: Path) -> None:
    assert all(str(home).encode() not in data for data in contents(whole).values())


def test_an_imported_run_is_the_run_with_its_answers(whole: Path, run: Run, elsewhere: Workspace) -> None:
    taken = take_in(elsewhere, whole)

    here = elsewhere.runs.get(run.id)
    assert (taken.new, taken.answers) == (True, 1)
    assert (here.digest, here.metrics, here.status, here.created_at) == (
        run.digest,
        run.metrics,
        "complete",
        run.created_at,
    )
    assert verify(elsewhere, run.id) == []
    kept = Answers(elsewhere.database, elsewhere.now).get(KEY)
    assert kept is not None
    assert (kept.run_id, kept.cost_usd) == (run.id, Decimal("0.01"))


def test_a_run_that_went_around_comes_back_as_the_same_bytes(whole: Path, run: Run, elsewhere: Workspace) -> None:
    take_in(elsewhere, whole)

    again = asyncio.run(write_bundle(elsewhere, run.id, whole.with_name("around.zip")))

    assert again.read_bytes() == whole.read_bytes()


def test_answers_can_be_left_out(whole: Path, elsewhere: Workspace) -> None:
    take_in(elsewhere, whole, with_answers=False)

    assert Answers(elsewhere.database, elsewhere.now).get(KEY) is None


def test_importing_twice_changes_nothing(whole: Path, elsewhere: Workspace) -> None:
    take_in(elsewhere, whole)

    assert not take_in(elsewhere, whole).new
    assert len(elsewhere.runs.list()) == 1


def test_another_run_under_the_same_id_is_refused(whole: Path, elsewhere: Workspace, tmp_path: Path) -> None:
    take_in(elsewhere, whole)

    def cancelled(_: Contents, manifest: dict[str, Any]) -> None:
        manifest["run"].update(status="cancelled", metrics=None, digest=None)

    with pytest.raises(UserError, match="another run"):
        take_in(elsewhere, forged(whole, tmp_path / "other.zip", cancelled))


@pytest.mark.parametrize("name", [*MEMBERS, MANIFEST])
def test_a_changed_byte_in_any_member_is_a_difference(whole: Path, tmp_path: Path, name: str) -> None:
    members = contents(whole)
    place = members[name].find(b"0.01") if name == ANSWERS else members[name].rfind(b"9")
    members[name] = members[name][:place] + b"8" + members[name][place + 1 :]

    assert check_bundle(packed(members, tmp_path / "changed.zip")).problems


def _other_metric(_: Contents, manifest: dict[str, Any]) -> None:
    manifest["run"]["metrics"]["total_return_pct"] = 99.0


def _other_digest(_: Contents, manifest: dict[str, Any]) -> None:
    manifest["run"]["digest"] = "0" * 64


def _without_its_last_record(members: Contents, _: dict[str, Any]) -> None:
    members[RECORDS] = b"".join(members[RECORDS].splitlines(keepends=True)[:-1])


def _other_record(members: Contents, _: dict[str, Any]) -> None:
    members[RECORDS] = members[RECORDS].replace(b"stand-in, not", b"stand-in, now", 1)


def _other_skill(members: Contents, _: dict[str, Any]) -> None:
    members[SKILL] = members[SKILL].replace(b"rise", b"fall")


def _other_state(members: Contents, _: dict[str, Any]) -> None:
    members[STATE] = b"null"


def _answer_in_a_wrong_place(members: Contents, _: dict[str, Any]) -> None:
    line = json.loads(members[ANSWERS])
    members[ANSWERS] = codec.dumps({**line, "used": [[0, 0]]}) + b"\n"


def _long_curve(members: Contents, _: dict[str, Any]) -> None:
    """A record that claims a billion points: it must be refused, not drawn."""
    import hashlib

    lines = [json.loads(line) for line in members[RECORDS].splitlines()]
    covered = {**json.loads(lines[0]["covered"]), "equity": [[0, 1, "1", 10**12]]}
    lines[0]["covered"] = codec.dumps(covered).decode()
    lines[0]["digest"] = hashlib.sha256(lines[0]["covered"].encode()).hexdigest()
    members[RECORDS] = b"".join(codec.dumps(line) + b"\n" for line in lines)


def _endless_range(_: Contents, manifest: dict[str, Any]) -> None:
    manifest["run"]["params"]["to_at"] = 10**17


def _money_of_many_digits(_: Contents, manifest: dict[str, Any]) -> None:
    manifest["run"]["cost_usd"] = "1E+999999999"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_other_metric, "metric total_return_pct"),
        (_other_digest, "digest is not that of its last record"),
        (_without_its_last_record, "does not close it"),
        (_other_record, "does not hash"),
        (_other_skill, "skill does not hash"),
        (_other_state, "state does not belong"),
        (_answer_in_a_wrong_place, "is not what record 0 says"),
        (_long_curve, "record 0 cannot be read"),
        (_endless_range, "cannot be recomputed"),
        (_money_of_many_digits, "no amount"),
    ],
)
def test_a_forgery_with_fitting_digests_is_found(
    whole: Path, tmp_path: Path, elsewhere: Workspace, change: Any, said: str
) -> None:
    path = forged(whole, tmp_path / "forged.zip", change)

    assert any(said in problem for problem in check_bundle(path).problems)
    with pytest.raises(ReplayMismatch, match="not taken in"):
        take_in(elsewhere, path)
    assert elsewhere.runs.list() == []


def _wrong_types(members: Contents) -> None:
    members[MANIFEST] = members[MANIFEST].replace(b'"ticks":', b'"ticks":"many","tocks":')


def _no_json(members: Contents) -> None:
    members[MANIFEST] = b"\xff" * 100


def _deep(members: Contents) -> None:
    members[MANIFEST] = b"[" * 100_000


def _path(members: Contents) -> None:
    members["../../evil"] = b"x"


def _missing(members: Contents) -> None:
    del members[STATE]


def _bomb(members: Contents) -> None:
    members[RECORDS] = bytes(400 << 20)


@pytest.mark.parametrize("change", [_wrong_types, _no_json, _deep, _path, _missing, _bomb])
def test_what_is_no_bundle_is_refused_in_one_line(whole: Path, tmp_path: Path, change: Any) -> None:
    members = contents(whole)
    change(members)

    with pytest.raises(UserError) as refused:
        check_bundle(packed(members, tmp_path / "bad.zip"))
    assert "\n" not in refused.value.message
    assert len(refused.value.message) < 600


def test_records_of_the_wrong_form_are_refused_in_one_line(whole: Path, tmp_path: Path) -> None:
    def change(members: Contents, _: dict[str, Any]) -> None:
        members[RECORDS] = b'{"seq":"one"}\n'

    with pytest.raises(UserError, match="line 1"):
        check_bundle(forged(whole, tmp_path / "bad.zip", change))


@pytest.mark.parametrize("part", [0, 1, 100, 0.5, 0.99])
def test_a_file_that_was_cut_is_refused(whole: Path, tmp_path: Path, part: float) -> None:
    data = whole.read_bytes()
    cut = tmp_path / "cut.zip"
    cut.write_bytes(data[: int(part) if part >= 1 or not part else int(len(data) * part)])

    with pytest.raises(UserError, match="no bundle"):
        check_bundle(cut)


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there is no file"):
        check_bundle(tmp_path / "none.zip")


def test_a_folder_that_cannot_be_written_is_said_so(workspace: Workspace, run: Run, tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot write"):
        asyncio.run(write_bundle(workspace, run.id, tmp_path / "nowhere" / "run.zip"))


def test_a_run_that_lived_on_the_answers_of_another_has_them_inside(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = load_settings(home).model_copy(update={"database_url": str(tmp_path / "pitboss.db")})
    request = Request(plain_skill(["BTC"], "1h", model="llm/m"), FROM, TO, any_price=True)

    async def main(workspace: Workspace) -> tuple[Run, Run, Run, int]:
        async with FakeProvider() as provider:
            monkeypatch.setenv("LLM_BASE_URL", provider.url)
            monkeypatch.setenv("LLM_API_KEY", "sk-canary")
            first = await start(workspace, request)
            asked = provider.calls
            second = await start(workspace, request)
            await write_bundle(workspace, second.id, tmp_path / "warm.zip")
            third = await start(workspace, replace(request, model=f"replay/{first.id}"))
            return first, second, third, provider.calls - asked

    with open_workspace(settings) as workspace:
        first, second, third, asked_again = asyncio.run(main(workspace))

    assert (second.digest, third.digest, asked_again) == (first.digest, first.digest, 0)
    checked = check_bundle(tmp_path / "warm.zip")
    assert (checked.problems, checked.answers) == ([], 24)
    lines = [json.loads(line) for line in contents(tmp_path / "warm.zip")[ANSWERS].splitlines()]
    assert {line["run_id"] for line in lines} == {first.id}
    assert sorted(line["used"] for line in lines) == [[[tick, 0]] for tick in range(24)]
    assert all(b"sk-canary" not in data for data in contents(tmp_path / "warm.zip").values())
