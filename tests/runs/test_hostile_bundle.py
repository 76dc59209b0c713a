"""Bundles that were damaged, forged or made to do harm: one line each, nothing taken in, nothing blown up."""

import hashlib
import json
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bundle_files import Contents, forge_bundle, import_file, read_members, write_members
from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.core.errors import UserError
from pitboss.runs import bundle
from pitboss.runs.bundle import ANSWERS, MANIFEST, RECORDS, SKILL, STATE, seal_of
from pitboss.runs.check_bundle import MOST_PROBLEMS, check_bundle


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


def _half_a_reflection(members: Contents, _: dict[str, Any]) -> None:
    """A record that has a reflection without what a replay would read of it."""
    lines = [json.loads(line) for line in members[RECORDS].splitlines()]
    covered = {**json.loads(lines[0]["covered"]), "reflection": {"steps": []}}
    lines[0]["covered"] = codec.dumps(covered).decode()
    lines[0]["digest"] = hashlib.sha256(lines[0]["covered"].encode()).hexdigest()
    members[RECORDS] = b"".join(codec.dumps(line) + b"\n" for line in lines)


def _long_curve(members: Contents, _: dict[str, Any]) -> None:
    """A record that claims a billion points: it must be refused, not drawn."""
    lines = [json.loads(line) for line in members[RECORDS].splitlines()]
    covered = {**json.loads(lines[0]["covered"]), "equity": [[0, 1, "1", 10**12]]}
    lines[0]["covered"] = codec.dumps(covered).decode()
    lines[0]["digest"] = hashlib.sha256(lines[0]["covered"].encode()).hexdigest()
    members[RECORDS] = b"".join(codec.dumps(line) + b"\n" for line in lines)


def _endless_range(_: Contents, manifest: dict[str, Any]) -> None:
    manifest["run"]["params"]["to_at"] = 10**17


def edit_records(members: Contents, manifest: dict[str, Any], edit: Callable[[int, dict[str, Any]], None]) -> None:
    """Change what records say and make the whole chain fit again."""
    lines = [json.loads(line) for line in members[RECORDS].splitlines()]
    last = lines[0]["prev_digest"]
    for number, line in enumerate(lines):
        covered = json.loads(line["covered"])
        edit(number, covered)
        covered["prev_digest"] = line["prev_digest"] = last
        line["covered"] = codec.dumps(covered).decode()
        line["digest"] = last = hashlib.sha256(line["covered"].encode()).hexdigest()
    members[RECORDS] = b"".join(codec.dumps(line) + b"\n" for line in lines)
    members[STATE] = codec.dumps({**json.loads(members[STATE]), "prev_digest": last})
    manifest["run"]["digest"] = last


def _long_curve_in_pieces(members: Contents, manifest: dict[str, Any]) -> None:
    def edit(_: int, covered: dict[str, Any]) -> None:
        covered["equity"] = [[0, 1, "1", 9_000_000]]

    edit_records(members, manifest, edit)


def _flags_without_end(members: Contents, manifest: dict[str, Any]) -> None:
    def edit(_: int, covered: dict[str, Any]) -> None:
        covered["flags"] = ["x" * 201]

    edit_records(members, manifest, edit)


def _less_than_no_ticks(members: Contents, manifest: dict[str, Any]) -> None:
    lines = [json.loads(line) for line in members[RECORDS].splitlines()]
    lines[0]["kind"] = "span"
    members[RECORDS] = b"".join(codec.dumps(line) + b"\n" for line in lines)

    def edit(number: int, covered: dict[str, Any]) -> None:
        if number == 0:
            covered.update(kind="span", ticks=-3, flags={})

    edit_records(members, manifest, edit)


def _proposal_without_a_verdict(members: Contents, manifest: dict[str, Any]) -> None:
    def edit(number: int, covered: dict[str, Any]) -> None:
        if number == 0:
            covered["proposals"] = [*covered["proposals"], {}]

    edit_records(members, manifest, edit)


def _state_with_a_number_of_another_kind(members: Contents, _: dict[str, Any]) -> None:
    state = json.loads(members[STATE])
    members[STATE] = codec.dumps({**state, "seq": float(state["seq"])})


def _state_of_nothing(members: Contents, _: dict[str, Any]) -> None:
    state = json.loads(members[STATE])
    members[STATE] = codec.dumps({name: state[name] for name in ("seq", "prev_digest")})


def _result_without_an_end(_: Contents, manifest: dict[str, Any]) -> None:
    manifest["run"].update(status="cancelled", metrics=None, baselines=None)


def _unusable_parameters(_: Contents, manifest: dict[str, Any]) -> None:
    manifest["run"].update(status="cancelled", metrics=None, baselines=None, digest=None)
    manifest["run"]["params"]["from_at"] = "soon"


def _missing_parameters(_: Contents, manifest: dict[str, Any]) -> None:
    manifest["run"].update(status="cancelled", metrics=None, baselines=None, digest=None)
    del manifest["run"]["params"]["to_at"]


def _skill_under_another_name(_: Contents, manifest: dict[str, Any]) -> None:
    manifest["skill"]["name"] = "yours"


def _less_than_no_money(_: Contents, manifest: dict[str, Any]) -> None:
    manifest["run"].update(cost_usd="-1", wasted_usd="-1")


def _metric_that_a_terminal_would_obey(_: Contents, manifest: dict[str, Any]) -> None:
    manifest["run"]["metrics"]["\x1b[31m\n"] = "\x1b[31m\n"


def _another_model(_: Contents, manifest: dict[str, Any]) -> None:
    manifest["run"]["model"] = "openai/gpt-5"


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
        (_answer_in_a_wrong_place, "is not the reply in record 0"),
        (_half_a_reflection, "record 0 cannot be read"),
        (_long_curve, "record 0 cannot be read"),
        (_endless_range, "cannot be recomputed"),
        (_money_of_many_digits, "no amount"),
        (_long_curve_in_pieces, "record 1 cannot be read"),
        (_flags_without_end, "record 0 cannot be read"),
        (_less_than_no_ticks, "record 0 cannot be read"),
        (_proposal_without_a_verdict, "record 0 cannot be read"),
        (_state_with_a_number_of_another_kind, "state cannot be read"),
        (_state_of_nothing, "state cannot be read"),
        (_result_without_an_end, "yet has a result"),
        (_unusable_parameters, "parameters cannot be read"),
        (_missing_parameters, "parameters cannot be read"),
        (_skill_under_another_name, "is not the one in the bundle"),
        (_less_than_no_money, "no amount"),
        (_metric_that_a_terminal_would_obey, "metric"),
        (_another_model, "is stored under another model"),
    ],
)
def test_a_forgery_with_fitting_digests_is_found(
    bundle_path: Path, tmp_path: Path, other_workspace: Workspace, change: Any, said: str
) -> None:
    path = forge_bundle(bundle_path, tmp_path / "forged.zip", change)

    problems = check_bundle(path).problems
    assert any(said in problem for problem in problems)
    assert all(problem.isprintable() for problem in problems)
    with pytest.raises(UserError, match="fails its checks") as refused:
        import_file(other_workspace, path)
    assert "\n" not in refused.value.message
    assert other_workspace.runs.listing().runs == []


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
    members[RECORDS] = bytes(100 << 20)


def _moved(members: Contents) -> None:
    members["../state.json"] = members.pop(STATE)


def _number_of_many_digits(members: Contents) -> None:
    members[MANIFEST] = members[MANIFEST].replace(b'"seed":0', b'"seed":' + b"9" * 1_000_000)


@pytest.mark.parametrize(
    "change", [_wrong_types, _no_json, _deep, _path, _moved, _missing, _bomb, _number_of_many_digits]
)
def test_what_is_no_bundle_is_refused_in_one_line(bundle_path: Path, tmp_path: Path, change: Any) -> None:
    members = read_members(bundle_path)
    change(members)

    with pytest.raises(UserError) as refused:
        check_bundle(write_members(members, tmp_path / "bad.zip"))
    assert "\n" not in refused.value.message
    assert len(refused.value.message) < 600


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("ticks", -1),
        ("created_at", -1),
        ("created_at", 1 << 60),
        ("progress", 2.0),
        ("wall_s", -1.0),
        ("id", "../../evil"),
        ("model", "\x1b]0;evil\x07"),
        ("model", "m" * 1_000),
        ("digest", "0" * 63),
        ("evil\n\x1b[31m", 1),
    ],
)
def test_a_row_that_cannot_be_is_refused_in_one_line(
    bundle_path: Path, tmp_path: Path, place: str, value: object
) -> None:
    def change(_: Contents, manifest: dict[str, Any]) -> None:
        manifest["run"][place] = value

    with pytest.raises(UserError, match="not a readable bundle") as refused:
        check_bundle(forge_bundle(bundle_path, tmp_path / "bad.zip", change))
    assert refused.value.message.isprintable()
    assert len(refused.value.message) < 600


def test_a_size_below_zero_is_refused(bundle_path: Path, tmp_path: Path) -> None:
    members = read_members(bundle_path)
    manifest = json.loads(members[MANIFEST])
    manifest["contents"][STATE]["bytes"] = -1
    members[MANIFEST] = codec.dumps({**manifest, "seal": seal_of(manifest)})

    with pytest.raises(UserError, match="greater than or equal to 0"):
        check_bundle(write_members(members, tmp_path / "bad.zip"))


def test_a_later_format_is_named_before_its_fields_are_looked_at(bundle_path: Path, tmp_path: Path) -> None:
    def change(_: Contents, manifest: dict[str, Any]) -> None:
        manifest.update(bundle=2, news="something")

    with pytest.raises(UserError, match="not of format 2"):
        check_bundle(forge_bundle(bundle_path, tmp_path / "later.zip", change))


@pytest.mark.parametrize("name", [RECORDS, MANIFEST, STATE, ANSWERS])
def test_a_document_of_very_many_values_is_refused_before_it_is_read(
    bundle_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """In memory some of them take a hundred times what they take in the file."""

    def change(members: Contents, manifest: dict[str, Any]) -> None:
        many = b'{"x":[' + b"{}," * 50_000 + b"{}]}\n"
        if name == MANIFEST:
            manifest["run"]["params"]["x"] = [{}] * 50_000
        else:
            members[name] = many

    path = forge_bundle(bundle_path, tmp_path / "bad.zip", change)
    monkeypatch.setattr(bundle, "MOST_WEIGHT", 10 << 20)
    loads, read = codec.loads, list[int]()
    monkeypatch.setattr(codec, "loads", lambda data: (read.append(len(data)), loads(data))[1])

    try:
        assert "the state cannot be read" in check_bundle(path).problems
    except UserError as refused:
        assert "holds too many values" in refused.message  # noqa: PT017 – a state is a finding, all others are refused
    assert max(read, default=0) < 150_000


def test_values_that_hide_in_a_text_are_found_too(
    bundle_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def change(members: Contents, _: dict[str, Any]) -> None:
        lines = members[RECORDS].splitlines(keepends=True)
        line = json.loads(lines[0])
        covered = "[" + "[]," * 200_000 + "[]]"
        line.update(covered="@", digest=hashlib.sha256(covered.encode()).hexdigest())
        hidden = covered.replace("[", "\\u005b").replace(",", "\\u002c")
        lines[0] = codec.dumps(line).replace(b'"@"', f'"{hidden}"'.encode()) + b"\n"
        members[RECORDS] = b"".join(lines)

    path = forge_bundle(bundle_path, tmp_path / "bad.zip", change)
    monkeypatch.setattr(bundle, "MOST_WEIGHT", 10 << 20)

    assert "record 0 cannot be read" in check_bundle(path).problems


def test_an_object_of_very_many_fields_is_refused_with_one_reason(bundle_path: Path, tmp_path: Path) -> None:
    def change(_: Contents, manifest: dict[str, Any]) -> None:
        manifest["run"] |= {f"field{number}": 0 for number in range(1_000)}

    with pytest.raises(UserError, match="too many fields"):
        check_bundle(forge_bundle(bundle_path, tmp_path / "bad.zip", change))


@pytest.mark.parametrize("large", [False, True])
def test_a_list_of_very_many_members_is_not_even_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, large: bool
) -> None:
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 3, 20, 0, 0, 0, 0, 33, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    count = 60_000
    data = entry * count
    if large:
        data += struct.pack("<4sQ2H2L4Q", b"PK\6\6", 44, 45, 45, 0, 0, count, count, len(entry) * count, 0)
        data += struct.pack("<4sLQL", b"PK\6\7", 0, len(entry) * count, 1)
    result = (5, 5, 100) if large else (count, count, len(entry) * count)
    (tmp_path / "bad.zip").write_bytes(data + struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, *result, 0, 0))
    monkeypatch.setattr(zipfile, "ZipFile", lambda *words: pytest.fail("it was read"))

    with pytest.raises(UserError, match="its members are not"):
        check_bundle(tmp_path / "bad.zip")


def test_a_bundle_of_more_than_4_gb_would_be_read(
    bundle_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zipfile, "ZIP64_LIMIT", 1_000)

    assert check_bundle(write_members(read_members(bundle_path), tmp_path / "large.zip")).problems == []
    assert b"PK\6\7" in (tmp_path / "large.zip").read_bytes()


def test_a_member_that_is_a_link_is_refused(bundle_path: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "link.zip", "w") as made:
        for name, data in read_members(bundle_path).items():
            info = zipfile.ZipInfo(name)
            info.external_attr = (0o120777 if name == STATE else 0o100644) << 16
            made.writestr(info, data)

    with pytest.raises(UserError, match="a link"):
        check_bundle(tmp_path / "link.zip")


@pytest.mark.filterwarnings("ignore:Duplicate name")
@pytest.mark.parametrize("instead", [True, False])
def test_a_member_that_is_there_twice_is_refused(bundle_path: Path, tmp_path: Path, instead: bool) -> None:
    with zipfile.ZipFile(tmp_path / "twice.zip", "w") as made:
        for name, data in read_members(bundle_path).items():
            if name != SKILL or not instead:
                made.writestr(name, data)
        made.writestr(STATE, b"null")

    with pytest.raises(UserError, match="its members are not"):
        check_bundle(tmp_path / "twice.zip")


def test_what_is_no_file_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.zip")

    for path in (tmp_path, tmp_path / "pipe.zip"):
        with pytest.raises(UserError, match="it is not a file"):
            check_bundle(path)


def test_records_of_the_wrong_form_are_refused_in_one_line(bundle_path: Path, tmp_path: Path) -> None:
    def change(members: Contents, _: dict[str, Any]) -> None:
        members[RECORDS] = b'{"seq":"one"}\n'

    with pytest.raises(UserError, match="line 1"):
        check_bundle(forge_bundle(bundle_path, tmp_path / "bad.zip", change))


def test_records_with_two_problems_each_are_reported_up_to_the_limit(bundle_path: Path, tmp_path: Path) -> None:
    def change(members: Contents, _: dict[str, Any]) -> None:
        first = json.loads(members[RECORDS].splitlines()[0])
        members[RECORDS] = (codec.dumps({**first, "kind": "close"}) + b"\n") * 30

    problems = check_bundle(forge_bundle(bundle_path, tmp_path / "ends.zip", change)).problems
    assert MOST_PROBLEMS <= len(problems) <= MOST_PROBLEMS + 1
