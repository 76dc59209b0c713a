"""What a run records about its model: endpoints, token limits, rejected settings, ticks without a decision."""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pitboss_process import provider_environment, run_in_process

from bundle_files import Contents, forge_bundle
from pitboss.testing import provider
from pitboss.testing.provider import FakeProvider, Play, body, call, decide, message
from provider_thread import fake_provider

TWO_HOURS = ("--from", "2025-03-20", "--to", "2025-03-20T02:00:00Z")
TICKS = 8


def command(home: Path, skill: Path, *options: str) -> tuple[object, ...]:
    prices = ("--price-in", "1", "--price-out", "2", "--speculate", "0")
    return ("backtest", skill, *TWO_HOURS, "--model", "llm/fake", *prices, *options, "--json", "--home", home)


def truncated_reply(question: Mapping[str, Any]) -> Play:
    """A model that thought until its limit of tokens and said nothing."""
    reply = message(question, "")
    reply["choices"][0]["finish_reason"] = "length"
    return body(reply)


def limit_of(question: Mapping[str, Any]) -> int:
    return question.get("max_tokens") or question["max_completion_tokens"]


def test_one_model_name_at_two_servers_is_two_models(home: Path, skill: Path) -> None:
    buys = call("propose_order", {"action": "open_long", "symbol": "SOL", "size_usd": 500, "reason": "Up."})
    with fake_provider(decide) as first, fake_provider(lambda question: buys) as second:
        held = run_in_process(*command(home, skill), **provider_environment(first)).json
        bought = run_in_process(*command(home, skill), **provider_environment(second)).json
        again = run_in_process(*command(home, skill), **provider_environment(second)).json
    assert (first.calls, second.calls) == (TICKS, TICKS), "each server answered its own run, the cache the repeated one"
    assert (held["model"], bought["model"]) == ("llm/fake", "llm/fake")
    assert (held["endpoint"], bought["endpoint"]) == (address(first), address(second))
    assert held["digest"] != bought["digest"] == again["digest"]
    assert again["saved_usd"] == bought["cost_usd"] > 0


def address(server: FakeProvider) -> str:
    return server.url.removeprefix("http://")


def test_the_stored_name_is_that_of_the_provider_and_the_model(home: Path, skill: Path) -> None:
    with fake_provider(decide) as server:
        result = run_in_process(*command(home, skill), **provider_environment(server, LLM_PROVIDER="groq")).json
    assert (result["model"], result["endpoint"]) == ("groq/fake", address(server))
    listed = run_in_process("runs", "list", "--json", "--home", home).json
    assert [row["model"] for row in listed] == ["groq/fake"]
    shown = run_in_process("runs", "show", result["run_id"], "--json", "--home", home).json
    assert shown["endpoint"] == address(server)
    assert f"groq/fake at {address(server)}" in run_in_process("runs", "show", result["run_id"], "--home", home).out


def test_an_estimate_counts_the_earlier_runs_of_the_model_behind_a_preset_name(home: Path, skill: Path) -> None:
    with fake_provider(decide) as server:
        for _ in range(2):
            result = run_in_process(*command(home, skill), **provider_environment(server, LLM_PROVIDER="groq")).json
    assert "as 1 earlier run of this skill and model cost" in " ".join(result["estimate"]["basis"])


def test_a_run_goes_on_with_the_server_that_it_began_with_or_not_at_all(home: Path, skill: Path) -> None:
    with fake_provider([provider.error(503)]) as broken, fake_provider(decide) as other:
        begun = run_in_process(
            *command(home, skill), code=1, **provider_environment(broken, PITBOSS_MODEL_ATTEMPTS="1")
        ).json
        resume = ("runs", "resume", begun["run_id"], "--json", "--home", home)
        refused = run_in_process(*resume, code=2, **provider_environment(other))
        assert f"the run began with llm/fake at {address(broken)}" in refused.err
        assert address(other) in refused.err
        broken.script = decide
        done = run_in_process(*resume, **provider_environment(broken)).json
    assert (done["status"], done["ticks"], other.calls) == ("complete", TICKS, 0)


def test_a_bundle_that_claims_another_model_than_that_of_its_answers_is_found(
    home: Path, skill: Path, tmp_path: Path
) -> None:
    with fake_provider(decide) as server:
        run_id = run_in_process(*command(home, skill), **provider_environment(server)).json["run_id"]
    path = tmp_path / "run.zip"
    run_in_process("runs", "export", run_id, "--bundle", path, "--home", home)
    checked = run_in_process("runs", "verify", path, "--json").json
    assert any("only the provider can confirm that llm/fake gave these answers" in line for line in checked["unproven"])

    def claim(_: Contents, manifest: dict[str, Any]) -> None:
        run = manifest["run"]
        run["model"] = run["params"]["answered_by"]["name"] = "openai/gpt-5"

    claimed = run_in_process(
        "runs", "verify", forge_bundle(path, tmp_path / "claimed.zip", claim), "--json", code=1
    ).json
    assert all("is of another model than the run" in problem for problem in claimed["problems"])


def test_a_reply_that_was_cut_off_is_asked_for_once_more_with_a_higher_limit(home: Path, skill: Path) -> None:
    with fake_provider(
        lambda question: decide(question) if limit_of(question) > 4_096 else truncated_reply(question)
    ) as server:
        result = run_in_process(*command(home, skill), **provider_environment(server)).json
    assert Counter(map(limit_of, server.questions)) == {4_096: TICKS, 16_384: TICKS}
    assert result["quality"] == {"asked": TICKS, "no_decision": 0, "model_error": 0}


def test_a_reasoning_model_may_think_longer_from_the_start(home: Path, skill: Path) -> None:
    with fake_provider(decide) as server:
        asked = command(home, skill)
        words = [word if word != "llm/fake" else "llm/deepseek-r1" for word in asked]
        run_in_process(*words, **provider_environment(server))
    assert set(map(limit_of, server.questions)) == {16_384}


def test_a_limit_that_a_server_does_not_accept_becomes_the_one_that_it_names(home: Path, skill: Path) -> None:
    def script(question: Mapping[str, Any]) -> Play:
        if limit_of(question) > 8_192:
            return provider.error(400, "max_tokens is too large: this model supports at most 8192 completion tokens")
        return decide(question) if limit_of(question) == 8_192 else truncated_reply(question)

    with fake_provider(script) as server:
        result = run_in_process(*command(home, skill), **provider_environment(server)).json
    assert Counter(map(limit_of, server.questions)) == {4_096: TICKS, 16_384: 1, 8_192: TICKS}
    assert result["quality"]["no_decision"] == 0
    assert result["metrics"]["rejected_settings"] == ["max_tokens above 8192"]


def test_a_model_that_never_gets_to_a_decision_is_asked_twice_a_tick_and_everything_says_so(
    home: Path, skill: Path
) -> None:
    with fake_provider(truncated_reply) as server:
        asked = run_in_process(*command(home, skill), code=1, **provider_environment(server))
    result = asked.json
    assert (server.calls, result["status"], result["ticks"]) == (2 * TICKS, "complete", TICKS)
    assert result["quality"] == {"asked": TICKS, "no_decision": TICKS, "model_error": 0}
    sentence = "8 of 8 ticks brought no decision of the model (8 without a decision in the reply)"
    assert sentence in asked.err
    assert sentence in run_in_process("runs", "show", result["run_id"], "--home", home).out
    assert sentence in Path(result["report"]).read_text()


@pytest.mark.parametrize("setting", ["temperature", "seed"])
def test_a_setting_that_the_provider_rejects_is_left_out_once_and_the_run_says_so(
    home: Path, skill: Path, setting: str
) -> None:
    def script(question: Mapping[str, Any]) -> Play:
        if setting in question:
            return provider.error(400, f"Unsupported value: '{setting}' does not support 0.5 with this model.")
        return decide(question)

    value = {"temperature": "0.5", "seed": "7"}[setting]
    with fake_provider(script) as server:
        asked = run_in_process(
            *command(home, skill, "--set", f"model_settings.{setting}={value}"), **provider_environment(server)
        )
    assert server.calls == TICKS + 1, "rejected once, then left out"
    assert asked.json["metrics"]["rejected_settings"] == [setting]
    sentence = f"The provider rejected {setting}: left out of the requests, or replaced."
    assert sentence in asked.err
    assert sentence in run_in_process("runs", "show", asked.json["run_id"], "--home", home).out
    assert sentence in Path(asked.json["report"]).read_text()
    assert run_in_process("runs", "verify", asked.json["run_id"], "--home", home).code == 0


def test_at_most_the_promised_number_of_calls_is_made_in_a_tick(home: Path, skill: Path) -> None:
    with fake_provider(lambda question: provider.say("I would rather not.")) as server:
        run_in_process(*command(home, skill, "--set", "max_steps=3"), code=1, **provider_environment(server))
    assert server.calls == 3 * TICKS


def test_a_name_that_stands_for_other_weights_now_is_asked_anew(home: Path, skill: Path) -> None:
    digests = iter(["sha256:aaaa", "sha256:aaaa", "sha256:bbbb"])

    def tags() -> dict[str, Any]:
        return {"models": [{"name": "fake:latest", "digest": next(digests)}]}

    asked = [word if word != "llm/fake" else "ollama/fake" for word in command(home, skill)]
    with fake_provider(decide, other={"/api/tags": tags}) as server:
        spent = [run_in_process(*asked, OLLAMA_BASE_URL=server.url) and server.calls for _ in range(3)]
    assert spent == [TICKS, TICKS, 2 * TICKS]
