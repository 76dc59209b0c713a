"""What owners change over HTTP: fields that are not sent stay, repositories are GitHub's, a contract has one owner."""

from pathlib import Path
from typing import Any

import pytest
from forum_server import RunningForum, serving
from owner_client import login, request_json

REPOSITORY = "https://github.com/owner/bank"
MIXED = "0xABCDEFabcdefABCDEFabcdefABCDEFabcdefABCd"


def update(forum_server: RunningForum, session: dict[str, str], **fields: Any) -> tuple[int, Any]:
    body = {"communityId": forum_server.seeded["community"]["id"], "action": "UPDATE_DESCRIPTION", **fields}
    return request_json(forum_server, session, "POST", "/api/contracts/update", body)


def stored_description(forum_server: RunningForum, session: dict[str, str]) -> tuple[Any, Any]:
    (row,) = request_json(forum_server, session, "GET", "/api/communities/owned")[1]["communities"]
    return row["description"], row["githubRepositoryUrl"]


def test_a_field_that_is_not_sent_stays_and_null_or_empty_text_erases_it(
    forum_server: RunningForum, session: dict[str, str]
) -> None:
    for fields, after in (
        ({"description": "a", "githubRepositoryUrl": REPOSITORY}, ("a", REPOSITORY)),
        ({"description": "b"}, ("b", REPOSITORY)),
        ({"githubRepositoryUrl": f"{REPOSITORY}2"}, ("b", f"{REPOSITORY}2")),
        ({"githubRepositoryUrl": ""}, ("b", None)),
        ({"githubRepositoryUrl": f" {REPOSITORY}.git/ "}, ("b", REPOSITORY)),
        ({"description": None}, (None, REPOSITORY)),
        ({"description": "c", "githubRepositoryUrl": None}, ("c", None)),
    ):
        status, answer = update(forum_server, session, **fields)
        assert status == 200, answer
        assert (answer["community"]["description"], answer["community"]["githubRepositoryUrl"]) == after
        assert stored_description(forum_server, session) == after


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "has not changed"),
        ({"description": "kept"}, "has not changed"),
        ({"description": "kept", "githubRepositoryUrl": REPOSITORY}, "has not changed"),
        ({"descripton": "x"}, "descripton is not a field"),
        ({"description": "x", "githubUrl": REPOSITORY}, "githubUrl is not a field"),
        ({"description": 5}, "description"),
        ({"githubRepositoryUrl": "javascript:alert(1)"}, "https://github.com/owner/name"),
        ({"githubRepositoryUrl": "https://gitlab.com/owner/bank"}, "https://github.com/owner/name"),
        ({"githubRepositoryUrl": "https://github.com/owner"}, "https://github.com/owner/name"),
        ({"githubRepositoryUrl": "   "}, "https://github.com/owner/name"),
    ],
)
def test_an_update_that_changes_nothing_or_cannot_be_meant_is_refused_and_erases_nothing(
    forum_server: RunningForum, session: dict[str, str], fields: dict[str, Any], words: str
) -> None:
    before = ("kept", REPOSITORY)
    if stored_description(forum_server, session) != before:
        assert update(forum_server, session, description=before[0], githubRepositoryUrl=before[1])[0] == 200
    status, answer = update(forum_server, session, **fields)
    assert (status, list(answer)) == (400, ["error"])
    assert words in answer["error"]
    assert stored_description(forum_server, session) == before


def test_the_repository_of_a_new_community_is_checked_too_and_may_be_on_a_server_of_ones_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PITBOSS_GITHUB_API_URL", "https://git.corp.example/api/v3")
    wish = {"serviceName": "Bank", "contracts": [{"name": "Bank", "address": "0x" + "12" * 20, "abi": []}]}
    with serving(tmp_path) as own:
        session = login(own, "0x" + "33" * 32)
        for url, expected in ((REPOSITORY, 400), ("javascript:x", 400), ("https://git.corp.example/o/r", 200)):
            status, answer = request_json(
                own, session, "POST", "/api/contracts/register", {**wish, "githubRepositoryUrl": url}
            )
            assert status == expected, answer
        assert answer["community"]["githubRepositoryUrl"] == "https://git.corp.example/o/r"


def test_a_contract_of_another_owner_is_refused_however_its_chain_is_spelt(
    forum_server: RunningForum, session: dict[str, str]
) -> None:
    stranger = login(forum_server, "0x" + "44" * 32)
    contract = {"name": "Mine", "address": forum_server.seeded["contracts"][0]["address"], "abi": []}
    for chain in ("Sepolia", "sepolia", "Sepolia ", " SEPOLIA"):
        wish = {"serviceName": "Mine", "chain": chain, "contracts": [contract]}
        assert request_json(forum_server, stranger, "POST", "/api/contracts/register", wish)[0] == 403, chain


def test_a_wrong_checksum_is_named_as_such(forum_server: RunningForum, session: dict[str, str]) -> None:
    contract = {"name": "Bank", "address": MIXED, "abi": []}
    ban = {"communityId": forum_server.seeded["community"]["id"], "ownerWallet": MIXED, "action": "BAN"}
    for path, body in (
        ("/api/contracts/register", {"serviceName": "Bank", "contracts": [contract]}),
        ("/api/contracts/update", {"communityId": "c", "action": "ADD_CONTRACT", "contract": contract}),
        ("/api/communities/bans", ban),
        ("/api/auth/owner/challenge", {"walletAddress": MIXED}),
    ):
        status, answer = request_json(forum_server, session, "POST", path, body)
        assert status == 400
        assert "checksum" in answer["error"], path
        assert "lower case" in answer["error"], path
    status, answer = request_json(
        forum_server, session, "POST", "/api/communities/bans", {**ban, "ownerWallet": "0x12"}
    )
    assert (status, answer["error"]) == (400, "The wallet address must be 0x and 40 hex digits")


@pytest.mark.parametrize("character", ["\ud800", "\0"])
def test_abi_and_source_with_a_character_that_no_database_stores_are_refused(
    forum_server: RunningForum, session: dict[str, str], character: str
) -> None:
    plain = {"name": "Other", "address": "0x" + "7" * 40, "abi": []}
    for field, fields in (
        ("source", {"source": f"a{character}"}),
        ("source", {"source": {f"a{character}.sol": "contract A {}"}}),
        ("abi", {"abi": [{"type": "function", "name": character}]}),
    ):
        status, answer = update(forum_server, session, action="ADD_CONTRACT", contract={**plain, **fields})
        assert (status, answer) == (
            400,
            {"error": f"serviceContract.{field} contains a character that cannot be stored"},
        )


def test_a_contract_that_is_changed_without_its_chain_stays_on_it(
    forum_server: RunningForum, session: dict[str, str]
) -> None:
    contract = {"name": "Bank", "address": "0x" + "8" * 40, "abi": [], "source": "a"}
    added = update(forum_server, session, action="ADD_CONTRACT", chain="Mainnet", contract=contract)
    (row,) = [row for row in added[1]["contracts"] if row["name"] == "Bank"]
    changed = {**contract, "source": "b"}
    for fields, chain in (
        ({}, "Mainnet"),
        ({"chain": "Elsewhere"}, "Elsewhere"),
        ({"contract": contract}, "Elsewhere"),
    ):
        fields = {"contract": changed, "contractId": row["id"], **fields}
        status, answer = update(forum_server, session, action="UPDATE_CONTRACT", **fields)
        assert status == 200, answer
        assert [each["chain"] for each in answer["contracts"] if each["id"] == row["id"]] == [chain]
