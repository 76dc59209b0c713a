"""Secrets at rest: encrypted as one, private to their owner, refused when anything about them was changed."""

import os
import stat
import threading
from pathlib import Path

import orjson
import pytest
from cryptography.fernet import Fernet
from hypothesis import given, settings
from hypothesis import strategies as st

from pitboss.core.errors import UserError
from pitboss.store.secrets import FILE, KEY_FILE, VARIABLE, Secrets, check_name, check_value

VALUE = "gsk_Abc/def+123456"


def secrets(home: Path, master: str = "", at: int = 1_700_000_000_000) -> Secrets:
    return Secrets(home, master, lambda: at)


def refusal(home: Path, master: str = "") -> str:
    with pytest.raises(UserError) as told:
        secrets(home, master).names()
    assert VALUE not in f"{told.value.message} {told.value.hint}"
    assert told.value.hint
    return told.value.message


def test_what_was_set_is_found_again_by_another_process(tmp_path: Path) -> None:
    assert secrets(tmp_path).set("GROQ_API_KEY", VALUE) is False
    assert secrets(tmp_path).get("GROQ_API_KEY") == VALUE
    assert secrets(tmp_path).get("OPENAI_API_KEY") is None
    assert secrets(tmp_path).names() == {"GROQ_API_KEY": 1_700_000_000_000}


def test_a_second_value_takes_the_place_of_the_first(tmp_path: Path) -> None:
    secrets(tmp_path).set("GROQ_API_KEY", "first-value")
    assert secrets(tmp_path, at=1_700_000_000_001).set("GROQ_API_KEY", VALUE) is True
    assert secrets(tmp_path).get("GROQ_API_KEY") == VALUE
    assert secrets(tmp_path).names() == {"GROQ_API_KEY": 1_700_000_000_001}


def test_a_removed_secret_is_gone_and_the_others_stay(tmp_path: Path) -> None:
    store = secrets(tmp_path)
    store.set("GROQ_API_KEY", VALUE)
    store.set("OPENAI_API_KEY", "sk-other-value")
    store.remove("GROQ_API_KEY")
    assert list(store.names()) == ["OPENAI_API_KEY"]
    with pytest.raises(UserError, match="no secret GROQ_API_KEY"):
        store.remove("GROQ_API_KEY")


def test_removing_where_nothing_is_kept_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no secret GROQ_API_KEY"):
        secrets(tmp_path / "home").remove("GROQ_API_KEY")
    assert not (tmp_path / "home").exists()


def test_neither_name_nor_value_can_be_read_in_any_file(tmp_path: Path) -> None:
    secrets(tmp_path).set("GROQ_API_KEY", VALUE)
    for file in tmp_path.iterdir():
        assert VALUE.encode() not in file.read_bytes()
        assert b"GROQ" not in file.read_bytes()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o277])
def test_files_are_private_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        secrets(tmp_path).set("GROQ_API_KEY", VALUE)
    finally:
        os.umask(before)
    for name in (FILE, KEY_FILE):
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600


def test_looking_into_a_workspace_without_secrets_makes_nothing(tmp_path: Path) -> None:
    assert secrets(tmp_path / "none").names() == {}
    assert list(tmp_path.iterdir()) == []


def test_with_a_key_from_outside_no_key_file_is_made(tmp_path: Path) -> None:
    master = Fernet.generate_key().decode()
    secrets(tmp_path, master).set("GROQ_API_KEY", VALUE)
    assert not (tmp_path / KEY_FILE).exists()
    assert secrets(tmp_path, master + "\n").get("GROQ_API_KEY") == VALUE
    assert "missing" in refusal(tmp_path)


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o644, 0o666])
def test_a_key_file_that_others_can_read_is_refused_with_what_to_type(tmp_path: Path, mode: int) -> None:
    secrets(tmp_path).set("GROQ_API_KEY", VALUE)
    (tmp_path / KEY_FILE).chmod(mode)
    with pytest.raises(UserError, match="can be read by other users") as caught:
        secrets(tmp_path).get("GROQ_API_KEY")
    assert f"chmod 600 {tmp_path / KEY_FILE}" in caught.value.hint
    (tmp_path / KEY_FILE).chmod(0o600)
    assert secrets(tmp_path).get("GROQ_API_KEY") == VALUE


def test_a_lost_key_is_never_replaced_by_a_new_one(tmp_path: Path) -> None:
    secrets(tmp_path).set("GROQ_API_KEY", VALUE)
    (tmp_path / KEY_FILE).unlink()
    assert "missing" in refusal(tmp_path)
    with pytest.raises(UserError, match="missing"):
        secrets(tmp_path).set("OPENAI_API_KEY", "sk-other-value")
    assert not (tmp_path / KEY_FILE).exists()


@pytest.mark.parametrize("key", ["", "short", "é" * 44, "A" * 200])
def test_a_key_that_is_none_is_refused(tmp_path: Path, key: str) -> None:
    secrets(tmp_path).set("GROQ_API_KEY", VALUE)
    (tmp_path / KEY_FILE).write_text(key)
    assert "not a master key" in refusal(tmp_path)


def test_a_wrong_key_from_outside_is_named_by_its_variable_and_not_shown(tmp_path: Path) -> None:
    secrets(tmp_path).set("GROQ_API_KEY", VALUE)
    message = refusal(tmp_path, "my passphrase")
    assert VARIABLE in message
    assert "passphrase" not in message


def test_a_file_of_another_workspace_is_refused(tmp_path: Path) -> None:
    for name in ("mine", "other"):
        secrets(tmp_path / name).set("GROQ_API_KEY", VALUE)
    (tmp_path / "mine" / FILE).write_bytes((tmp_path / "other" / FILE).read_bytes())
    assert "changed, or encrypted with another key" in refusal(tmp_path / "mine")


@pytest.mark.parametrize(
    "content",
    [b"", b"{}", b"[]", b"null", b"\xff\xfe", b'{"pitboss_secrets": 1}', b'{"pitboss_secrets": 1, "token": 5}'],
)
def test_a_foreign_file_is_refused_in_one_line(tmp_path: Path, content: bytes) -> None:
    secrets(tmp_path).set("GROQ_API_KEY", VALUE)
    (tmp_path / FILE).write_bytes(content)
    message = refusal(tmp_path)
    assert "cannot be opened" in message
    assert "\n" not in message


@settings(max_examples=30, deadline=None)
@given(place=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_a_single_changed_bit_never_gives_a_wrong_secret(
    tmp_path_factory: pytest.TempPathFactory, place: int, bit: int
) -> None:
    home = tmp_path_factory.mktemp("flipped")
    secrets(home).set("GROQ_API_KEY", VALUE)
    data = bytearray((home / FILE).read_bytes())
    data[place % len(data)] ^= 1 << bit
    (home / FILE).write_bytes(data)
    try:
        value = secrets(home).get("GROQ_API_KEY")
    except UserError:
        return
    assert value == VALUE  # a change of the wrapping that means the same, such as blank space


def test_a_file_of_a_newer_version_says_so(tmp_path: Path) -> None:
    secrets(tmp_path).set("GROQ_API_KEY", VALUE)
    (tmp_path / FILE).write_bytes(orjson.dumps({"pitboss_secrets": 2, "token": "later"}))
    assert "newer version" in refusal(tmp_path)


def test_two_writers_at_once_lose_nothing(tmp_path: Path) -> None:
    names = [f"KEY_{number}" for number in range(12)]
    gate = threading.Barrier(len(names))

    def write(name: str) -> None:
        gate.wait()
        secrets(tmp_path).set(name, f"value-of-{name}")

    threads = [threading.Thread(target=write, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: secrets(tmp_path).get(name) for name in names} == {name: f"value-of-{name}" for name in names}


def test_what_a_dead_writer_left_is_no_obstacle(tmp_path: Path) -> None:
    (tmp_path / f"{FILE}.new").write_text("half")
    (tmp_path / f"{KEY_FILE}.new").write_text("half")
    secrets(tmp_path).set("GROQ_API_KEY", VALUE)
    assert secrets(tmp_path).get("GROQ_API_KEY") == VALUE
    assert list(tmp_path.glob("*.new")) == []


def test_a_workspace_that_cannot_be_used_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UserError, match="file"):
        secrets(tmp_path / "file" / "home").set("GROQ_API_KEY", VALUE)


@pytest.mark.parametrize("name", ["", "sk-live-1234", "groq key", "9KEY", "KEY\n", "ключ", "A" * 80, VARIABLE])
def test_what_is_not_a_name_is_refused_without_being_repeated(name: str) -> None:
    with pytest.raises(UserError) as caught:
        check_name(name)
    assert name == VARIABLE or not name or name not in caught.value.message + caught.value.hint


@pytest.mark.parametrize("value", ["", "two words", "line\nend", "tab\there", "ключ", "x" * 9_000, "nul\0"])
def test_what_cannot_be_a_key_is_refused_without_being_repeated(value: str) -> None:
    with pytest.raises(UserError) as caught:
        check_value(value)
    assert not value or value not in caught.value.message + caught.value.hint
