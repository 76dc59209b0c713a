"""`pitboss community approvals`: what a person sees, decides, and what the rules then allow."""

import json
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from pitboss.core.errors import UserError
from pitboss.engine.guard import guard
from pitboss.terminal.workspace_options import WorkspaceOptions
from pitboss.venues.community.agent_world import AgentWorld
from pitboss.venues.community.approval_content import approval_content, approval_lines, read_content
from pitboss.venues.community.caps import CommunityCaps
from pitboss.venues.community.commands import APP
from pitboss.venues.community.intents import read_action
from pitboss.venues.community.plain_text import plain_text
from pitboss.venues.community.rule_book import CommunityRuleBook

VAULT = "0x5fbdb2315678afecb367f032d93f642f64180aa3"
LARGE = 2**255 + 1
CAPS = CommunityCaps(
    value_wei=Decimal(10**20),
    spend_wei_per_day=Decimal(10**21),
    chain="Sepolia",
    approval_above_wei=Decimal(500),
)


def world(argument: str = "uint256", name: str = "Vault") -> AgentWorld:
    inputs = [{"name": "amount", "type": argument}, {"name": "note", "type": "string"}]
    abi = [{"type": "function", "name": "pay", "inputs": inputs, "outputs": [], "stateMutability": "payable"}]
    contract = {"id": "k1", "name": name, "chain": "Sepolia", "address": VAULT, "abi": abi}
    thread = {"id": "t1", "type": "DISCUSSION", "title": "A", "comments": []}
    community = {"id": "c1", "slug": "vault", "status": "ACTIVE", "contracts": [contract], "threads": [thread]}
    return AgentWorld("a1", "alpha", community)


def payment(**changes: Any) -> dict[str, Any]:
    raw = {
        "action": "tx",
        "communitySlug": "vault",
        "threadId": "t1",
        "contractAddress": VAULT,
        "functionName": "pay",
        "args": [LARGE, "two\nlines \x1b[31m\u202ered"],
        "value": "1500000000000000001",
    }
    return raw | changes


def case_of(raw: dict[str, Any], seen: AgentWorld) -> Any:
    action, problems = read_action(raw)
    return CommunityRuleBook(CAPS, seen, 1_000).case(action, problems)


def request_approval(options: WorkspaceOptions, raw: dict[str, Any], run_id: str = "run1") -> Any:
    case = case_of(raw, world())
    with options.workspace() as workspace:
        return workspace.approval_requests.ask(
            case.approval_key, run_id, "community", "alpha", approval_content(case), 3_600_000
        )


def run_approvals(options: WorkspaceOptions, *arguments: str) -> int:
    command, bound, ignored = APP.parse_args(["approvals", *arguments], print_error=False, exit_on_error=False)
    return command(*bound.args, **bound.kwargs, **dict.fromkeys(ignored, options))


@pytest.fixture
def options(tmp_path: Path) -> WorkspaceOptions:
    return WorkspaceOptions(tmp_path / "home", None)


def test_a_workspace_without_requests_says_so_and_is_not_created(
    options: WorkspaceOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_approvals(options, "list") == 0
    assert capsys.readouterr().out == "nothing waits for an approval\n"
    assert options.home is not None
    assert not options.home.exists()
    with pytest.raises(UserError, match="no request"):
        run_approvals(options, "approve", "3f2a")
    assert not options.home.exists()


def test_the_list_shows_what_would_be_sent_in_plain_words(
    options: WorkspaceOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    request = request_approval(options, payment())
    request_approval(options, payment())
    assert run_approvals(options, "list") == 0
    printed = capsys.readouterr().out.splitlines()
    assert printed[0].startswith(f"{request.id[:12]}  pending until ")
    assert printed[0].endswith(", 2 times")
    assert printed[1:] == [
        "  by     alpha in run run1",
        "  calls  pay(uint256,string)",
        f"  of     Vault at {VAULT} on Sepolia",
        "  sends  1,500,000,000,000,000,001 wei (1.500000000000000001 ETH)",
        f"  with   argument 1: {LARGE}",
        "  with   argument 2: two lines �[31m�red",
    ]
    assert run_approvals(options, "list", "--json") == 0
    row = json.loads(capsys.readouterr().out)[0]
    assert (row["id"], row["state"], row["times_asked"], row["decided_at"]) == (request.id, "pending", 2, None)
    assert row["transaction"]["args"][0] == LARGE
    assert row["transaction"]["value_wei"] == "1500000000000000001"


def test_the_approved_transaction_passes_the_rule_in_its_run_and_no_other_does(
    options: WorkspaceOptions, capsys: pytest.CaptureFixture[str]
) -> None:
    def code(raw: dict[str, Any], seen: AgentWorld) -> str | None:
        with options.workspace() as workspace:
            seen = replace(seen, approved=workspace.approval_requests.approved("run1"))
        return guard(CommunityRuleBook(CAPS, seen, 2_000), {}, raw, 2_000).verdict.code

    request = request_approval(options, payment())
    assert code(payment(), world()) == "C17_APPROVAL"
    assert run_approvals(options, "approve", request.id[:8], "--json") == 0
    assert json.loads(capsys.readouterr().out)["state"] == "approved"
    assert code(payment(), world()) is None
    assert code(payment(value="1500000000000000002"), world()) == "C17_APPROVAL"
    assert code(payment(args=[1, "two"]), world()) == "C17_APPROVAL"
    changed_abi = world("uint256", "Vault").community | {"contracts": world("int256").rows("contracts")}  # type: ignore[operator]
    assert code(payment(args=[5, ""]), replace(world(), community=changed_abi)) == "C17_APPROVAL"


def test_what_the_same_words_call_is_part_of_the_key() -> None:
    keys = {case_of(payment(args=[5, ""]), world(kind)).approval_key for kind in ("uint256", "uint128", "int256")}
    assert len(keys) == 3


def test_decisions_are_made_once(options: WorkspaceOptions, capsys: pytest.CaptureFixture[str]) -> None:
    request = request_approval(options, payment())
    assert run_approvals(options, "deny", request.id) == 0
    assert "denied" in capsys.readouterr().out
    with pytest.raises(UserError, match="already denied"):
        run_approvals(options, "approve", request.id)
    assert run_approvals(options, "list") == 0
    assert capsys.readouterr().out == "nothing waits for an approval\n"
    assert run_approvals(options, "list", "--all", "--json") == 0
    assert [row["state"] for row in json.loads(capsys.readouterr().out)] == ["denied"]


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b"\xff", b'{"args":5,"value_wei":"-1"}'])
def test_content_of_another_form_is_shown_without_an_error(content: bytes) -> None:
    assert approval_lines(read_content(content))[-1] == "sends  an unreadable amount"


def test_long_values_are_cut() -> None:
    assert plain_text("x" * 130) == "x" * 120 + "… (and 10 more characters)"
