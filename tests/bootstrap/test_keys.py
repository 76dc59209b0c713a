"""Where a key comes from: the environment, else the store; found keys are known to the redactor at once."""

from pathlib import Path

import pytest

from pitboss.bootstrap.keys import Values, key_for, open_secrets, owners, variable_of
from pitboss.bootstrap.redact import Redactor
from pitboss.core.errors import UserError
from pitboss.core.redaction import HIDDEN
from pitboss.models.providers import PROVIDERS
from pitboss.models.routes import route
from pitboss.store.secrets import Secrets

KEPT, SET = "kept-key-123456", "set-key-1234567"


@pytest.fixture
def store(tmp_path: Path) -> Secrets:
    made = open_secrets(tmp_path, {}.get, Redactor())
    made.set("GROQ_API_KEY", KEPT)
    made.set("GEMINI_API_KEY", KEPT)
    return made


def key_value(variables: tuple[str, ...], environment: dict[str, str], store: Secrets | None) -> str | None:
    redactor = Redactor()
    key = key_for(variables, environment.get, store, redactor)
    if key is None:
        return None
    assert repr(key) == HIDDEN
    assert redactor.redact(key.reveal()) == HIDDEN
    return key.reveal()


def test_the_environment_wins_over_the_store(store: Secrets) -> None:
    assert key_value(("GROQ_API_KEY",), {"GROQ_API_KEY": SET}, store) == SET
    assert key_value(("GROQ_API_KEY",), {}, store) == KEPT
    assert key_value(("GROQ_API_KEY",), {"GROQ_API_KEY": "  "}, store) == KEPT
    assert key_value(("OPENAI_API_KEY",), {}, store) is None
    assert key_value(("GROQ_API_KEY",), {}, None) is None


def test_any_name_in_the_environment_wins_over_every_name_in_the_store(store: Secrets) -> None:
    names = ("GEMINI_API_KEY", "GOOGLE_API_KEY")
    assert key_value(names, {"GOOGLE_API_KEY": f"{SET}\n"}, store) == SET
    values = Values({"GOOGLE_API_KEY": SET}.get, store, Redactor())
    key = route("google/gemini-2.5-flash", values).key
    assert key is not None
    assert key.reveal() == SET


def test_a_route_gets_the_kept_key_where_the_environment_has_none(store: Secrets) -> None:
    key = route("groq/llama-3.3-70b-versatile", Values({}.get, store, Redactor())).key
    assert key is not None
    assert key.reveal() == KEPT


def test_an_address_never_comes_from_the_store(store: Secrets) -> None:
    store.set("LLM_BASE_URL", "https://elsewhere.example/v1")
    assert "LLM_BASE_URL" not in Values({}.get, store, Redactor())
    assert Values({"LLM_BASE_URL": "http://mine/v1"}.get, store, Redactor())["LLM_BASE_URL"] == "http://mine/v1"


def test_a_store_that_cannot_be_opened_does_not_matter_while_the_environment_has_the_key(tmp_path: Path) -> None:
    (tmp_path / "secrets.json").write_text("garbage")
    broken = open_secrets(tmp_path, {}.get, Redactor())
    assert Values({"GROQ_API_KEY": SET}.get, broken, Redactor())["GROQ_API_KEY"] == SET
    with pytest.raises(UserError):
        Values({}.get, broken, Redactor()).get("GROQ_API_KEY")


def test_values_show_nothing_when_printed(store: Secrets) -> None:
    values = Values({"OPENAI_API_KEY": SET}.get, store, Redactor())
    assert sorted(values) == ["GEMINI_API_KEY", "GROQ_API_KEY", "OPENAI_API_KEY"]
    assert len(values) == 3
    assert KEPT not in f"{values!r} {values}"
    assert SET not in f"{values!r} {values}"


@pytest.mark.parametrize(
    ("typed", "variable"),
    [
        ("groq", "GROQ_API_KEY"),
        ("Groq", "GROQ_API_KEY"),
        ("google", "GEMINI_API_KEY"),
        ("anthropic-chat", "ANTHROPIC_API_KEY"),
        ("llm", "LLM_API_KEY"),
        ("OPENAI_API_KEY", "OPENAI_API_KEY"),
        ("MY_OWN_KEY", "MY_OWN_KEY"),
    ],
)
def test_a_provider_stands_for_its_variable(typed: str, variable: str) -> None:
    assert variable_of(typed) == variable


def test_a_misspelt_provider_gets_a_suggestion_and_a_pasted_key_is_not_repeated() -> None:
    with pytest.raises(UserError) as caught:
        variable_of("gorq")
    assert "groq" in caught.value.hint
    with pytest.raises(UserError) as caught:
        variable_of("gsk_live_abcdefgh123456")
    assert "gsk_live" not in caught.value.message + caught.value.hint


def test_every_key_of_every_provider_has_an_owner_and_a_host() -> None:
    known = owners()
    for provider in PROVIDERS.values():
        for variable in provider.key_names:
            names, hosts = known[variable]
            assert provider.name in names
            assert provider.host in hosts
