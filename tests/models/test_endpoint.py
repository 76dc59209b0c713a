"""The endpoint of a run: what is stored of it, and where a key may go when the variables have changed since."""

import pytest

from pitboss.core.errors import UserError
from pitboss.models.endpoint import check_unchanged, endpoint_of, read_endpoint, route_to
from pitboss.models.routes import route

THERE = {"LLM_BASE_URL": "https://there.example/v1", "LLM_API_KEY": "key-of-there", "LLM_MODEL": "m"}
ELSEWHERE = {"LLM_BASE_URL": "https://elsewhere.example/v1", "LLM_API_KEY": "key-of-elsewhere", "LLM_MODEL": "m"}


def test_a_custom_address_is_part_of_the_identity_and_a_listed_one_is_not() -> None:
    custom = endpoint_of("llm/m", route("llm/m", THERE))
    assert (custom.name, custom.text) == ("llm/m", "there.example/v1")
    assert custom.identity == "llm/m@https://there.example/v1"
    listed = endpoint_of("groq/m", route("groq/m", {"GROQ_API_KEY": "k"}))
    assert (listed.identity, listed.text) == ("groq/m", "api.groq.com")


def test_a_stored_endpoint_is_called_whatever_the_variables_say_now_and_gets_no_key_of_another() -> None:
    endpoint = endpoint_of("llm/m", route("llm/m", THERE))
    same = route_to(endpoint, THERE)
    assert (same.provider.base_url, same.key and same.key.reveal()) == (THERE["LLM_BASE_URL"], "key-of-there")
    for values in (ELSEWHERE, {}, {"LLM_PROVIDER": "openai", "OPENAI_API_KEY": "k"}):
        moved = route_to(endpoint, values)
        assert (moved.provider.base_url, moved.model, moved.key) == (THERE["LLM_BASE_URL"], "m", None)


def test_a_provider_of_the_preset_keeps_its_own_key() -> None:
    endpoint = endpoint_of("llm/m", route("llm/m", {"LLM_PROVIDER": "groq", "LLM_API_KEY": "k"}))
    assert (endpoint.name, endpoint.is_listed) == ("groq/m", True)
    found = route_to(endpoint, {**ELSEWHERE, "GROQ_API_KEY": "key-of-groq"})
    assert (found.name, found.provider.host, found.key and found.key.reveal()) == (
        "groq/m",
        "api.groq.com",
        "key-of-groq",
    )


def test_a_server_of_the_users_own_keeps_its_address() -> None:
    there, elsewhere = {"OLLAMA_BASE_URL": "http://127.0.0.1:1/v1"}, {"OLLAMA_BASE_URL": "http://127.0.0.1:2/v1"}
    endpoint = endpoint_of("ollama/m", route("ollama/m", there))
    assert route_to(endpoint, elsewhere).provider.base_url == "http://127.0.0.1:1/v1"
    with pytest.raises(UserError, match=r"the run began with ollama/m at 127\.0\.0\.1:1/v1"):
        check_unchanged(endpoint, elsewhere)
    check_unchanged(endpoint, there)
    check_unchanged(endpoint, {})


@pytest.mark.parametrize(
    "stored", [None, {}, "x", {"name": "a/b"}, {"requested": 1, "name": 2, "model": 3, "base_url": 4}]
)
def test_damaged_parameters_are_no_endpoint(stored: object) -> None:
    assert read_endpoint(stored) is None
