"""A run in one file: the same bytes each time, and verifiable without the workspace."""

import asyncio
import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from bundle_files import FROM, KEY, TO, Contents, forge_bundle, import_file, read_members, write_members
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.workspace import Workspace, open_workspace
from pitboss.core.errors import UserError
from pitboss.runs.bundle import ANSWERS, MANIFEST, MEMBERS
from pitboss.runs.check_bundle import check_bundle
from pitboss.runs.pack import write_bundle
from pitboss.runs.run import start, verify
from pitboss.store.answers import Answers
from pitboss.store.runs import Run
from pitboss.testing.provider import FakeProvider
from pitboss.venues.perp.request import PerpRequest
from pitboss.venues.perp.testing import plain_skill


def test_the_same_run_gives_the_same_bytes(workspace: Workspace, run: Run, bundle_path: Path, tmp_path: Path) -> None:
    again = asyncio.run(write_bundle(workspace, run.id, tmp_path / "again.zip"))

    assert again.read_bytes() == bundle_path.read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.zip"]


def test_a_stranger_finds_nothing_wrong_and_is_shown_what_is_not_proven(bundle_path: Path, run: Run) -> None:
    checked = check_bundle(bundle_path)

    assert checked.problems == []
    assert (checked.run_id, checked.digest, checked.answers) == (run.id, run.digest, 1)
    assert any(str(run.data_digest) in line for line in checked.unproven)


def test_nothing_of_this_machine_is_inside(bundle_path: Path, home: Path) -> None:
    assert all(str(home).encode() not in data for data in read_members(bundle_path).values())


def test_an_imported_run_is_the_run_with_its_answers(bundle_path: Path, run: Run, other_workspace: Workspace) -> None:
    taken = import_file(other_workspace, bundle_path)

    here = other_workspace.runs.get(run.id)
    assert (taken.new, taken.answers) == (True, 1)
    assert (here.digest, here.metrics, here.status, here.created_at) == (
        run.digest,
        run.metrics,
        "complete",
        run.created_at,
    )
    assert verify(other_workspace, run.id) == []
    kept = Answers(other_workspace.database, other_workspace.now).get(KEY)
    assert kept is not None
    assert (kept.run_id, kept.cost_usd) == (run.id, Decimal("0.01"))


def test_a_run_that_went_around_comes_back_as_the_same_bytes(
    bundle_path: Path, run: Run, other_workspace: Workspace
) -> None:
    import_file(other_workspace, bundle_path)

    again = asyncio.run(write_bundle(other_workspace, run.id, bundle_path.with_name("around.zip")))

    assert again.read_bytes() == bundle_path.read_bytes()


def test_answers_can_be_left_out(bundle_path: Path, other_workspace: Workspace) -> None:
    import_file(other_workspace, bundle_path, with_answers=False)

    assert Answers(other_workspace.database, other_workspace.now).get(KEY) is None


def test_importing_twice_changes_nothing(bundle_path: Path, other_workspace: Workspace) -> None:
    import_file(other_workspace, bundle_path)

    assert not import_file(other_workspace, bundle_path).new
    assert len(other_workspace.runs.listing().runs) == 1


def test_another_run_under_the_same_id_is_refused(
    bundle_path: Path, other_workspace: Workspace, tmp_path: Path
) -> None:
    import_file(other_workspace, bundle_path)

    def cancelled(_: Contents, manifest: dict[str, Any]) -> None:
        manifest["run"].update(status="cancelled", metrics=None, baselines=None, digest=None)

    with pytest.raises(UserError, match="another run"):
        import_file(other_workspace, forge_bundle(bundle_path, tmp_path / "other.zip", cancelled))


@pytest.mark.parametrize("name", [*MEMBERS, MANIFEST])
def test_a_changed_byte_in_any_member_is_a_difference(bundle_path: Path, tmp_path: Path, name: str) -> None:
    members = read_members(bundle_path)
    place = members[name].find(b"0.01") if name == ANSWERS else members[name].rfind(b"9")
    members[name] = members[name][:place] + b"8" + members[name][place + 1 :]

    assert check_bundle(write_members(members, tmp_path / "changed.zip")).problems


@pytest.mark.parametrize("part", [0, 1, 100, 0.5, 0.99])
def test_a_file_that_was_cut_is_refused(bundle_path: Path, tmp_path: Path, part: float) -> None:
    data = bundle_path.read_bytes()
    cut = tmp_path / "cut.zip"
    cut.write_bytes(data[: int(part) if part >= 1 or not part else int(len(data) * part)])

    with pytest.raises(UserError, match="not a readable bundle"):
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
    request = PerpRequest(plain_skill(["BTC"], "1h", model="llm/m"), FROM, TO, any_price=True)

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
    lines = [json.loads(line) for line in read_members(tmp_path / "warm.zip")[ANSWERS].splitlines()]
    assert {line["run_id"] for line in lines} == {first.id}
    assert sorted(line["used"] for line in lines) == [[[tick, 0]] for tick in range(24)]
    assert all(b"sk-canary" not in data for data in read_members(tmp_path / "warm.zip").values())


@pytest.mark.parametrize("name", [".", "", "/"])
def test_a_bundle_cannot_be_a_folder(workspace: Workspace, run: Run, name: str) -> None:
    with pytest.raises(UserError, match="is a folder"):
        asyncio.run(write_bundle(workspace, run.id, Path(name)))


def test_a_link_in_the_place_of_the_unfinished_file_is_not_followed(
    workspace: Workspace, run: Run, tmp_path: Path
) -> None:
    (tmp_path / "precious").write_text("keep")
    (tmp_path / ".run.zip.part").symlink_to(tmp_path / "precious")

    asyncio.run(write_bundle(workspace, run.id, tmp_path / "run.zip"))

    assert (tmp_path / "precious").read_text() == "keep"
    assert not (tmp_path / "run.zip").is_symlink()
