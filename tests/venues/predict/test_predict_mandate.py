"""A mandate in a file: read beside the document only, and counted by its text."""

import json
import os
from pathlib import Path

import pytest

from pitboss.core.errors import UserError
from pitboss.skill.document import to_plain
from pitboss.skill.load import MANDATE_CHARS
from venues.predict.predict_documents import check_plain, check_text, document, load_skill


def write(folder: Path, mandate: str) -> Path:
    file = folder / "s.json"
    file.write_text(json.dumps(document(strategy={"mandate": mandate})))
    return file


def test_the_text_of_the_file_takes_the_place_of_its_name(tmp_path: Path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "mine.md").write_bytes(b"\xef\xbb\xbfBuy what is cheap.\r\nHold otherwise.\n")
    made = load_skill(write(tmp_path, "notes/mine.md"))
    assert made.strategy.text == "Buy what is cheap.\nHold otherwise."
    assert made.strategy.mandate is None
    assert check_plain(to_plain(made)).skill == made, "what is stored needs no file any more"


def test_the_digest_follows_the_text_and_not_the_name(tmp_path: Path):
    def digest(name: str, text: str) -> str | None:
        (tmp_path / name).write_text(text)
        file = write(tmp_path, name)
        return check_text(file.read_text(), file.suffix, tmp_path).digest

    first = digest("a.md", "Words.")
    assert first is not None
    assert digest("b.MD", "Words.\n") == first
    assert check_plain(document(strategy={"text": "Words."})).digest == first
    assert digest("a.md", "Other words.") != first


def test_a_file_can_be_named_on_the_command_line(tmp_path: Path):
    (tmp_path / "mine.md").write_text("Words.")
    file = write(tmp_path, "momentum")
    assert load_skill(file, ["strategy.mandate=mine.md"]).strategy.text == "Words."


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("../secret.md", "lies outside the folder of the document"),
        ("sub/../../secret.md", "lies outside the folder of the document"),
        ("link.md", "lies outside the folder of the document"),
        ("elsewhere/secret.md", "lies outside the folder of the document"),
        ("absent.md", "no such file beside the document"),
        ("folder.md", "is not a file"),
        ("pipe.md", "is not a file"),
        ("circle.md", "cannot be read"),
        ("a\0b.md", "cannot be read"),
        ("x" * 5_000 + ".md", "cannot be read"),
        ("long.md", "is longer than 20,000 characters"),
        ("huge.md", "is longer than 20,000 characters"),
        ("bytes.md", "is not UTF-8 text"),
        ("empty.md", "must not be empty"),
        ("control.md", "must not contain control characters"),
    ],
)
def test_a_file_that_cannot_be_taken_is_reported_at_the_mandate(tmp_path: Path, name: str, message: str):
    home = tmp_path / "home"
    (home / "folder.md").mkdir(parents=True)
    (tmp_path / "secret.md").write_text("secret")
    (home / "link.md").symlink_to(tmp_path / "secret.md")
    (home / "elsewhere").symlink_to(tmp_path)
    (home / "circle.md").symlink_to(home / "circle.md")
    os.mkfifo(home / "pipe.md")
    (home / "long.md").write_text("x" * (MANDATE_CHARS + 1))
    (home / "huge.md").write_text("é" * (5 * MANDATE_CHARS))
    (home / "bytes.md").write_bytes(b"a\xff")
    (home / "empty.md").write_text(" \n")
    (home / "control.md").write_text("a\x07")
    (error,) = check_plain(document(strategy={"mandate": name}), home).errors
    assert error.path == "strategy.mandate"
    assert message in error.message
    assert "secret" not in error.message.replace(name, "")
    assert error.hint


def test_an_absolute_path_is_refused_even_if_it_leads_inside(tmp_path: Path):
    (tmp_path / "mine.md").write_text("Words.")
    (error,) = check_plain(document(strategy={"mandate": str(tmp_path / "mine.md")}), tmp_path).errors
    assert "outside the folder" in error.message


def test_the_longest_text_is_taken(tmp_path: Path):
    (tmp_path / "mine.md").write_text("🎲" * MANDATE_CHARS)
    assert len(load_skill(write(tmp_path, "mine.md")).strategy.text or "") == MANDATE_CHARS


def test_a_link_that_stays_inside_is_followed(tmp_path: Path):
    (tmp_path / "real.md").write_text("Words.")
    (tmp_path / "mine.md").symlink_to("real.md")
    assert load_skill(write(tmp_path, "mine.md")).strategy.text == "Words."


def test_loading_raises_one_line_that_names_the_place(tmp_path: Path):
    file = tmp_path / "s.yaml"
    file.write_text("pitboss: 1\nname: x\nvenue: predict\nmodel: a/b\nstrategy:\n  mandate: absent.md\n")
    with pytest.raises(UserError) as caught:
        load_skill(file)
    assert caught.value.message == "s.yaml: line 6: strategy.mandate: 'absent.md': no such file beside the document"
    file.write_text("venue: perp\npitboss: 1\n")
    with pytest.raises(UserError, match=r"s\.yaml: line 1: venue: must be predict here, not 'perp'"):
        load_skill(file)
    file.write_text("a: [\n")
    with pytest.raises(UserError, match="not valid YAML"):
        load_skill(file)
