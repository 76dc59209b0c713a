"""No text keeps a secret, in whatever form it got there; everything else stays as it was."""

import base64
import html
import json
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pitboss.bootstrap.redact import GONE, LEAST, Redactor, secrets_of
from pitboss.models.secret import forms

KEY = 'gsk_A"b/c+d=&é?\\<12345>'
ENCODINGS = {
    "plain": lambda key: key,
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 unpadded": lambda key: base64.b64encode(key.encode()).decode().rstrip("="),
    "base64url": lambda key: base64.urlsafe_b64encode(key.encode()).decode(),
    "basic authorization": lambda key: base64.b64encode(f"user:{key}".encode()).decode(),
    "url": lambda key: quote(key, safe=""),
    "url, slashes kept": quote,
    "form": quote_plus,
    "url, lower case": lambda key: quote(key, safe="").lower(),
    "json": lambda key: json.dumps(key)[1:-1],
    "json, not ascii": lambda key: json.dumps(key, ensure_ascii=False)[1:-1],
    "json, slashes escaped": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "hex": lambda key: key.encode().hex(),
    "hex, upper case": lambda key: key.encode().hex().upper(),
    "html": html.escape,
}


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
    assert GONE in said
    assert said.startswith("before ")
    assert said.endswith(" after")


@given(
    before=st.binary(max_size=7), key=st.text("abcXYZ0189_-/+", min_size=12, max_size=40), after=st.binary(max_size=7)
)
def test_a_secret_inside_something_that_was_encoded_as_a_whole_cannot_be_decoded(
    before: bytes, key: str, after: bytes
) -> None:
    said = redactor(key).redact(base64.b64encode(before + key.encode() + after).decode())
    rest = "".join(part for part in said.split(GONE))
    assert GONE in said
    assert len(rest) <= 4 * (len(before) + len(after)) // 3 + 12


@given(text=st.text(), key=st.text(min_size=LEAST, max_size=60))
def test_text_without_the_secret_is_left_alone(text: str, key: str) -> None:
    assume(key.strip() and not any(form.lower() in text.lower() for form in forms(key.strip())))
    assert redactor(key).redact(text) == text or any(form.casefold() in text.casefold() for form in forms(key.strip()))


def test_words_too_short_to_be_secrets_are_left_alone() -> None:
    assert redactor("ollama", "", "none").redact("ollama has none") == "ollama has none"


def test_of_two_secrets_that_begin_alike_nothing_stays() -> None:
    said = redactor("sk-abcdefgh", "sk-abcdefgh-and-more").redact("sk-abcdefgh-and-more sk-abcdefgh")
    assert said == f"{GONE} {GONE}"


def test_blank_space_around_a_secret_is_no_part_of_it() -> None:
    assert redactor("  sk-abcdefgh\n").redact("(sk-abcdefgh)") == f"({GONE})"


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
