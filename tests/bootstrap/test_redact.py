"""No text keeps a secret, in whatever form it got there; everything else stays as it was."""

import base64

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from key_encodings import BLOCKS, ENCODINGS, ESCAPES, SPLITS
from pitboss.bootstrap.redact import Redactor, keys_in, secrets_of
from pitboss.core.redaction import HIDDEN

KEY = 'gsk_A"b/c+d=&é?\\<12345>'
KEYS = st.text("abcdefXYZ0189_-/+=.~:", min_size=16, max_size=60)


def redactor(*values: str) -> Redactor:
    made = Redactor()
    made.add(*values)
    return made


@pytest.mark.parametrize("name", ENCODINGS)
@pytest.mark.parametrize("key", [KEY, "sk-proj-0123456789abcdef", "12345678"])
def test_every_form_of_a_secret_is_taken_out(name: str, key: str) -> None:
    written = ENCODINGS[name](key)
    said = redactor(key).redact(f"before {written} after")
    assert written not in said
    assert HIDDEN in said
    assert said.startswith("before ")
    assert said.endswith(" after")


@given(
    before=st.binary(max_size=7), key=st.text("abcXYZ0189_-/+", min_size=12, max_size=40), after=st.binary(max_size=7)
)
def test_a_secret_inside_something_that_was_encoded_as_a_whole_cannot_be_decoded(
    before: bytes, key: str, after: bytes
) -> None:
    said = redactor(key).redact(base64.b64encode(before + key.encode() + after).decode())
    rest = "".join(part for part in said.split(HIDDEN))
    assert HIDDEN in said
    assert len(rest) <= 4 * (len(before) + len(after)) // 3 + 12


@settings(max_examples=150)
@given(
    key=KEYS,
    first=st.sampled_from(["plain", "backwards"]),
    names=st.lists(st.sampled_from(sorted({**ESCAPES, **SPLITS, **BLOCKS})), min_size=1, max_size=3, unique=True),
)
def test_a_secret_is_taken_out_of_any_composition_of_the_encodings(key: str, first: str, names: list[str]) -> None:
    def written(text: str) -> str:
        for name in (first, *names):
            text = ENCODINGS[name](text)
        return text

    said = redactor(key, "another-secret-0123").redact(f"before, {written(key)}, after")
    assert said.startswith("before, ")
    assert said.endswith(", after")
    assert HIDDEN in said
    # What was around the key stays, and a few letters where an encoding writes several of them as one piece.
    assert len(said) - len("before, , after") - len(HIDDEN) <= len(written("abcdefgh"))
    assert redactor(key).redact(said) == said


@given(text=st.text(), key=st.text(st.characters(codec="ascii", categories=("L", "N")), min_size=16, max_size=60))
def test_text_without_the_secret_is_left_alone(text: str, key: str) -> None:
    assume(key[::-1].lower() not in text.lower() and key.lower() not in text.lower())
    assert redactor(key).redact(text) == text


@pytest.mark.parametrize("size", [1_000, 300_000])
def test_a_plain_secret_is_replaced_alone_in_a_text_of_any_size(size: int) -> None:
    text = "word, " * (size // 6)
    assert redactor("sk-proj-0123456789").redact(f"{text}sk-proj-0123456789.") == f"{text}{HIDDEN}."


def test_a_very_long_text_with_an_encoded_secret_is_replaced_whole() -> None:
    coded = base64.b64encode(b"sk-proj-0123456789").decode()
    assert redactor("sk-proj-0123456789").redact(f"{'word, ' * 50_000}{coded[:9]} {coded[9:]}") == HIDDEN


def test_words_too_short_to_be_secrets_are_left_alone() -> None:
    assert redactor("ollama", "", "none").redact("ollama has none") == "ollama has none"


def test_of_two_secrets_that_begin_alike_nothing_stays() -> None:
    said = redactor("sk-abcdefgh", "sk-abcdefgh-and-more").redact("sk-abcdefgh-and-more sk-abcdefgh")
    assert said == f"{HIDDEN} {HIDDEN}"


def test_blank_space_around_a_secret_is_no_part_of_it() -> None:
    assert redactor("  sk-abcdefgh\n").redact("(sk-abcdefgh)") == f"({HIDDEN})"


def test_a_redactor_that_forgot_changes_nothing() -> None:
    made = redactor("sk-abcdefgh")
    made.forget()
    assert made.redact("sk-abcdefgh") == "sk-abcdefgh"


def test_secrets_of_an_environment_are_found_by_name_and_in_addresses() -> None:
    found = set(
        secrets_of(
            {
                "GROQ_API_KEY": "one",
                "HF_TOKEN": "two",
                "PITBOSS_SECRET_KEY": "three",
                "AWS_SECRET_ACCESS_KEY": "four",
                "PITBOSS_DATABASE_URL": "postgresql://me:five@host/db",
                "HOME": "/somewhere",
                "KEYBOARD": "us",
                "BROKEN": "http://[::1@",
                "TOKENS": "no",
            }
        )
    )
    assert found == {"one", "two", "three", "four", "five"}


def test_the_key_in_an_address_is_removed_where_it_stands_alone() -> None:
    redactor = Redactor()
    redactor.add(
        *keys_in(
            "https://name:pass-word1@sepolia-testnet-node.example/v2/0123456789abcdefghij?token=ABCDEFGHIJKLMNOPQRST"
        )
    )
    text = "no project 0123456789abcdefghij (ABCDEFGHIJKLMNOPQRST, pass-word1) at sepolia-testnet-node.example"
    assert redactor.redact(text) == "no project *** (***, ***) at sepolia-testnet-node.example"
