"""`pitboss live accounts`, `notify` and `preflight`: what is added is read back, an account in use stays, what is missing is named."""

from pathlib import Path

import pytest
from run_command import pitboss, pitboss_ok, pitboss_refused

from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.trading_accounts import FILE, TradingAccount, add_account, read_accounts, remove_account
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core.errors import UserError
from pitboss.store.deployments import LISTED

ADDRESS = "0x" + "ab" * 20


def add(home: Path, name: str = "main", *more: object) -> None:
    pitboss_ok("live", "accounts", "add", name, "--address", ADDRESS, "--network", "testnet", *more, "--home", home)


def test_an_added_account_is_listed_and_a_removed_one_is_gone(tmp_path: Path) -> None:
    add(tmp_path)
    add(tmp_path, "second", "--signer", "/run/pitboss/signer.sock", "--owner", "kim")
    rows = pitboss_ok("live", "accounts", "list", "--json", "--home", tmp_path).json
    assert [(row["name"], row["network"], row["signer"], row["owner"]) for row in rows] == [
        ("main", "testnet", "signer/signer.sock", "local"),
        ("second", "testnet", "/run/pitboss/signer.sock", "kim"),
    ]
    assert ADDRESS in pitboss_ok("live", "accounts", "list", "--home", tmp_path).out
    pitboss_ok("live", "accounts", "rm", "main", "--home", tmp_path)
    assert set(read_accounts(tmp_path)) == {"second"}


@pytest.mark.parametrize(
    "words",
    [
        ("Main", "--address", ADDRESS, "--network", "testnet"),
        ("main", "--address", "0x12", "--network", "testnet"),
        ("main", "--address", ADDRESS, "--network", "testnet", "--venue", "nowhere"),
        ("main", "--address", ADDRESS, "--network", "devnet"),
    ],
)
def test_an_account_that_cannot_be_is_refused_and_no_file_is_written(tmp_path: Path, words: tuple[str, ...]) -> None:
    pitboss_refused("live", "accounts", "add", *words, "--home", tmp_path)
    assert not (tmp_path / FILE).exists()


def test_a_name_is_added_once_and_only_one_that_exists_is_removed(tmp_path: Path) -> None:
    add(tmp_path)
    words = ("live", "accounts", "add", "main", "--address", ADDRESS, "--network", "mainnet")
    assert "exists" in pitboss_refused(*words, "--home", tmp_path)
    assert "there is no account 'other'" in pitboss_refused("live", "accounts", "rm", "other", "--home", tmp_path)


def test_an_account_that_a_deployment_uses_is_not_removed(tmp_path: Path) -> None:
    add(tmp_path)
    with open_workspace(load_settings(tmp_path)) as workspace:
        deployment = workspace.deployments.create("r1", "trend", 1, "perp", "live", "main")
    assert deployment.id in pitboss_refused("live", "accounts", "rm", "main", "--home", tmp_path)
    with open_workspace(load_settings(tmp_path)) as workspace:
        workspace.deployments.stop(deployment.id, "stop", "")
    pitboss_ok("live", "accounts", "rm", "main", "--home", tmp_path)


def test_an_account_that_an_old_deployment_uses_is_not_removed_however_many_are_newer(tmp_path: Path) -> None:
    add(tmp_path)
    with open_workspace(load_settings(tmp_path)) as workspace:
        deployment = workspace.deployments.create("r1", "trend", 1, "perp", "live", "main")
        for number in range(LISTED):
            workspace.deployments.create(f"p{number}", "trend", 1, "perp", "paper")
    assert deployment.id in pitboss_refused("live", "accounts", "rm", "main", "--home", tmp_path)


def test_quotes_in_a_path_stay_text_and_comments_stay_where_they_are(tmp_path: Path) -> None:
    hostile = 'a"\n[other]\naddress = "x'
    account = TradingAccount(address=ADDRESS, network="testnet", signer=hostile)
    (tmp_path / FILE).write_text(f'# mine\n[first]\naddress = "{ADDRESS}"  # the old one\nnetwork = "testnet"\n')
    add_account(tmp_path, "main", account)
    assert read_accounts(tmp_path)["main"] == account
    remove_account(tmp_path, "main")
    assert (tmp_path / FILE).read_text().rstrip().endswith('# the old one\nnetwork = "testnet"')
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0


def test_a_file_in_another_form_is_not_changed(tmp_path: Path) -> None:
    content = f'main = {{address = "{ADDRESS}", network = "testnet"}}\n'
    (tmp_path / FILE).write_text(content)
    with pytest.raises(UserError, match="cannot be changed safely"):
        remove_account(tmp_path, "main")
    assert (tmp_path / FILE).read_text() == content


def test_notify_without_a_channel_fails_its_test_and_lists_nothing(tmp_path: Path) -> None:
    assert pitboss_ok("live", "notify", "--json", "--home", tmp_path).json["channels"] == []
    answer = pitboss("live", "notify", "--test", "--json", "--home", tmp_path)
    assert (answer.code, answer.json["ok"]) == (1, False)
    (tmp_path / "settings.toml").write_text('notify_webhook_url = "http://127.0.0.1:9/hook"\n')
    answer = pitboss("live", "notify", "--test", "--json", "--home", tmp_path)
    assert answer.code == 1
    assert [(row["name"], row["ok"]) for row in answer.json["channels"]] == [("webhook", False)]


def test_an_empty_workspace_gives_a_document_with_everything_that_is_missing(tmp_path: Path) -> None:
    answer = pitboss("live", "preflight", "--json", "--home", tmp_path)
    assert answer.code == 1
    assert answer.json["ok"] is False
    assert {row["name"]: row["ok"] for row in answer.json["checks"]} == {
        "account": False,
        "database": True,
        "watchdog": False,
        "notifications": False,
        "trial": False,
    }
    assert all(set(row) == {"name", "ok", "detail"} for row in answer.json["checks"])
