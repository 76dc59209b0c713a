"""`pitboss deploy`, `deployments` and `command`, without a process that works on them."""

from pathlib import Path

import pytest
from run_command import pitboss, pitboss_ok, pitboss_refused

from pitboss.bootstrap.trading_accounts import TradingAccount, add_account
from pitboss.jobs.executors import live
from pitboss.runs.venues import venue_named
from pitboss.terminal import question

ADDRESS = "0x" + "ab" * 20


@pytest.fixture(autouse=True)
def _no_host(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PITBOSS_EXECUTOR", "none")


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "skill.yaml").write_text(venue_named("perp").examples()["trend-thesis.yaml"], "utf-8")
    return tmp_path / "home"


def deploy(home: Path, *words: object, mode: str = "paper") -> dict[str, str]:
    return pitboss_ok("deploy", "skill.yaml", "--mode", mode, "--json", *words, "--home", home).json


def test_a_deployment_is_made_listed_shown_and_commanded(place: Path) -> None:
    made = deploy(place)
    assert made["state"] == "running"
    (row,) = pitboss_ok("deployments", "list", "--json", "--home", place).json
    assert (row["deployment_id"], row["mode"], row["attended"]) == (made["deployment_id"], "paper", False)

    said = pitboss_ok("command", made["deployment_id"][:6], "pause", "--reason", "news", "--json", "--home", place).json
    assert set(said) >= {"command_id", "acked_at", "state"}
    assert (said["state"], said["acked_at"] is not None) == ("paused", True)
    shown = pitboss_ok("deployments", "show", made["deployment_id"], "--json", "--home", place).json
    assert (shown["state"], shown["reason"]) == ("paused", "news")
    assert [each["command"] for each in shown["commands"]] == ["pause"]
    assert "paused" in pitboss_ok("deployments", "show", made["deployment_id"], "--home", place).out
    assert "paper" in pitboss_ok("deployments", "list", "--home", place).out
    read = pitboss_ok(
        "deployments", "acknowledge", made["deployment_id"], "--reason", "seen", "--json", "--home", place
    ).json
    assert (read["state"], read["acked_at"] is not None) == ("paused", True)
    pitboss_ok("command", made["deployment_id"], "stop", "--home", place)
    assert "is stopped" in pitboss_refused("command", made["deployment_id"], "resume", "--home", place)


def test_an_empty_model_is_a_mistake_and_deploys_nothing(place: Path) -> None:
    refused = pitboss_refused("deploy", "skill.yaml", "--mode", "paper", "--model", "", "--home", place)
    assert "--model: the value is empty" in refused
    assert not place.exists() or pitboss_ok("deployments", "list", "--json", "--home", place).json == []


def test_the_run_of_a_deployment_is_left_to_its_commands(place: Path) -> None:
    made = deploy(place)
    deployment, run = made["deployment_id"], made["run_id"]
    for words, name in (
        (("runs", "cancel", run), "pause"),
        (("jobs", "cancel", run), "pause"),
        (("runs", "delete", run, "--yes"), "stop"),
        (("runs", "delete", run, "--yes", "--force"), "stop"),
        (("runs", "resume", run), "resume"),
        (("jobs", "again", run), "resume"),
    ):
        said = pitboss_refused(*words, "--home", place)
        assert f"run {run} belongs to a deployment" in said
        assert f"`pitboss command {run if name == 'resume' else deployment} {name}`" in " ".join(said.split())
    prune = ("runs", "prune", "--keep", "0", "--yes", "--json", "--home", place)
    assert pitboss_ok(*prune).json["runs"] == []
    pitboss_ok("command", deployment, "stop", "--home", place)
    assert pitboss_ok(*prune).json["runs"] == [run]


def test_a_command_that_needs_the_account_waits_for_a_process(place: Path) -> None:
    made = deploy(place)
    said = pitboss("command", made["deployment_id"], "flatten", "--json", "--home", place)
    assert (said.code, said.json["acked_at"], said.json["state"]) == (1, None, "running")


def test_a_command_without_a_process_starts_one_or_says_how(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = deploy(place)["deployment_id"]
    for words in (("flatten",), ("pause",), ("resume",)):
        said = pitboss("command", made, *words, "--home", place)
        assert "no process works on the deployment; `pitboss live host` runs one" in " ".join(said.err.split())
    started = list[list[str]]()
    monkeypatch.setenv("PITBOSS_EXECUTOR", "local")
    monkeypatch.setattr(live, "ensure_host", lambda workspace: started.append([str(workspace.home)]) or True)
    assert "one is started on this machine" in " ".join(
        pitboss_ok("command", made, "resume", "--home", place).err.split()
    )
    assert started == [[str(place)]]
    assert pitboss_ok("command", made, "stop", "--home", place).err == ""
    assert len(started) == 1


def test_caps_can_be_tightened_and_not_loosened(place: Path) -> None:
    first = deploy(place)
    answer = pitboss_ok(
        "deploy", "skill.yaml", "--mode", "paper", "--set", "risk.max_leverage=1", "--json", "--home", place
    )
    made = answer.json
    assert (first["skill"], made["skill"]) == ("trend-thesis@1", "trend-thesis@2")
    assert "the skill with these caps is saved as trend-thesis@2" in answer.err
    shown = pitboss_ok("deployments", "show", made["deployment_id"], "--json", "--home", place).json
    assert shown["caps"]["max_leverage"] == 1
    loose = pitboss_refused("deploy", "skill.yaml", "--mode", "paper", "--set", "risk.max_leverage=50", "--home", place)
    assert "risk.max_leverage would be looser" in loose
    other = pitboss_refused("deploy", "skill.yaml", "--mode", "paper", "--set", "max_steps=1", "--home", place)
    assert "changes only caps" in other


def test_caps_are_lowered_at_once_and_raised_later_after_a_confirmation(place: Path) -> None:
    made = deploy(place)["deployment_id"]
    change = ("deployments", "caps", made, "--json", "--home", place)
    limit = pitboss_ok(*change).json["caps"]["max_leverage"]
    assert pitboss_ok(*change).json["pending"] is None
    lowered = pitboss_ok(*change, "--set", "risk.max_leverage=1", "--reason", "news").json
    assert (lowered["caps"]["max_leverage"], lowered["skill_caps"]["max_leverage"]) == (1, limit)
    assert "would be raised: nothing was done" in pitboss_refused(*change, "--set", "risk.max_leverage=2")
    assert "looser than in the skill" in pitboss_refused(*change, "--set", f"risk.max_leverage={limit + 1}", "--yes")
    assert "is not a cap" in pitboss_refused(*change, "--set", "max_steps=1")
    assert "in effect already" in pitboss_refused(*change, "--set", "risk.max_leverage=1")
    assert "no change of caps is pending" in pitboss_refused(*change, "--cancel")
    both = ("--set", "risk.max_leverage=2", "--set", "risk.max_orders_per_hour=1", "--yes")
    mixed = pitboss_ok(*change, *both).json
    assert (mixed["caps"]["max_leverage"], mixed["caps"]["max_orders_per_hour"]) == (1, 1)
    assert mixed["pending"]["changes"] == [{"cap": "max_leverage", "from": 1, "to": 2}]
    text = pitboss_ok("deployments", "caps", made, "--home", place).out
    assert "pending until" in text
    assert "max_leverage 1 to 2 (by local)" in text
    assert pitboss_ok(*change, "--cancel").json["pending"] is None
    assert pitboss_ok("deployments", "show", made, "--json", "--home", place).json["caps"]["max_leverage"] == 1


def test_caps_of_a_live_deployment_are_raised_with_the_typed_name_of_its_account(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_account(place, "main", TradingAccount(address=ADDRESS, network="testnet"))
    made = deploy(place, "--account", "main", "--confirm", "main", mode="live")["deployment_id"]
    change = ("deployments", "caps", made, "--json", "--home", place)
    pitboss_ok(*change, "--set", "risk.max_leverage=1")
    assert "was not confirmed" in pitboss_refused(*change, "--set", "risk.max_leverage=2", "--yes")
    monkeypatch.setenv("PITBOSS_RAISE_CAPS_DELAY_S", "0")
    raised = pitboss_ok(*change, "--set", "risk.max_leverage=2", "--yes", "--confirm", "main").json
    assert (raised["caps"]["max_leverage"], raised["pending"]) == (2, None)


def test_real_orders_need_an_account_its_typed_name_and_a_free_account(place: Path) -> None:
    assert "--mode live needs --account" in pitboss_refused("deploy", "skill.yaml", "--mode", "live", "--home", place)
    add_account(place, "main", TradingAccount(address=ADDRESS, network="testnet"))
    live = ("deploy", "skill.yaml", "--mode", "live", "--account")
    assert "was not confirmed" in pitboss_refused(*live, "main", "--home", place)
    assert "did you mean main?" in pitboss_refused(*live, "mian", "--confirm", "mian", "--home", place)
    first = deploy(place, "--account", "main", "--confirm", "main", mode="live")
    again = pitboss_refused(*live, "main", "--confirm", "main", "--home", place)
    assert f"{first['deployment_id']} already trades on account" in again
    assert len(pitboss_ok("runs", "list", "--json", "--home", place).json) == 1
    assert "paper money has no account" in pitboss_refused(
        "deploy", "skill.yaml", "--mode", "paper", "--account", "main", "--home", place
    )


def test_an_account_that_does_not_exist_is_refused_before_its_name_is_asked_for(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_account(place, "main", TradingAccount(address=ADDRESS, network="testnet"))
    questions: list[str] = []
    monkeypatch.setattr(question, "has_terminal", lambda: True)
    monkeypatch.setattr(question, "ask", lambda text: questions.append(text) or "")
    live = ("deploy", "skill.yaml", "--mode", "live", "--home", place, "--account")
    assert "there is no account 'nope'" in pitboss_refused(*live, "nope")
    assert questions == []
    assert "was not confirmed" in pitboss_refused(*live, "main")
    assert len(questions) == 1


def test_a_skill_that_was_saved_is_deployed_by_its_name(place: Path) -> None:
    deploy(place)
    (row,) = pitboss_ok("deployments", "list", "--json", "--home", place).json
    again = pitboss_ok("deploy", row["skill"], "--mode", "paper", "--json", "--home", place).json
    assert again["deployment_id"] != row["deployment_id"]
    assert "no skill" in pitboss_refused("deploy", "nobody-saved-this", "--mode", "paper", "--home", place)
