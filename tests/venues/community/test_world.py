"""The forum's world: a slow, obvious record of every event beside it, compared after each of them."""

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from pitboss.venues.community import events
from pitboss.venues.community.context_document import context_document
from pitboss.venues.community.forum import Forum, ForumThread, changed_rows
from pitboss.venues.community.refusals import REFUSALS
from pitboss.venues.community.text_limits import TEXT_LIMITS, utf16_length
from pitboss.venues.community.world import apply

OWNER, OTHER, STRANGER = ("0x" + digit * 40 for digit in "abc")
ABI = [
    {"type": "function", "name": "Faucet", "stateMutability": "nonpayable", "inputs": []},
    {"type": "event", "name": "Sent", "inputs": []},
]
SOURCE = "contract Planted { uint256 SOURCE_CANARY; }"


def contract(number: int = 1, name: str = "Vault") -> events.NewContract:
    return events.NewContract(f"contract{number}", name, f"0x{number:040x}", "Sepolia", ABI, SOURCE)


def registration(
    owner: str = OWNER, community: str = "c1", at: int = 1_000, number: int = 1
) -> events.RegisterCommunity:
    return events.RegisterCommunity(
        at, owner, community, f"Vault {community}", (contract(number),), f"system-{community}", f"note-{community}-{at}"
    )


def agent(wallet: str = STRANGER, community: str = "c1", name: str = "a1", at: int = 1_001) -> events.RegisterAgent:
    return events.RegisterAgent(at, wallet, name, community, name)


def apply_events(forum: Forum, *happened: events.ForumEvent) -> Forum:
    for event in happened:
        forum, receipts = apply(forum, event)
        assert [receipt.kind for receipt in receipts] == ["accepted"], receipts
    return forum


def code_of(forum: Forum, event: events.ForumEvent) -> str:
    after, (receipt,) = apply(forum, event)
    if receipt.kind == "rejected":
        assert after is forum
        return str(receipt.facts["code"])
    return ""


@pytest.fixture
def forum() -> Forum:
    return apply_events(
        Forum(),
        registration(),
        registration(OTHER, "c2", 1_000, 2),
        agent(),
        agent(OTHER, "c1", "a2"),
        agent(STRANGER, "c2", "b1"),
        events.CreateThread(2_000, "a1", "t1", "c1", "A question", "why", "DISCUSSION"),
        events.CreateThread(2_001, "a1", "t2", "c1", "A request", "please", "REQUEST_TO_HUMAN"),
        events.CreateThread(2_002, "a1", "t3", "c1", "A report", "broken", "REPORT_TO_HUMAN"),
    )


def test_a_new_community_has_its_contracts_its_slug_and_one_system_thread_with_the_source(forum: Forum) -> None:
    community = forum.communities["c1"]
    assert community.slug == "vault-c1-0x0000"
    system = [thread for thread in forum.threads_of("c1") if thread.kind == "SYSTEM"]
    assert len(system) == 1
    assert SOURCE in system[0].body
    assert forum.contracts["contract1"].faucet_function == "Faucet"


def test_the_context_has_one_community_no_source_no_system_body_and_no_jokes(forum: Forum) -> None:
    forum = apply_events(
        forum,
        events.CommentByAgent(3_000, "a1", "m1", "t1", "first"),
        events.CommentByAgent(3_001, "a2", "m2", "t1", "a joke", "JOKE"),
        events.CommentByOwner(3_002, OWNER, "m3", "t2", "second"),
    )
    context = context_document(forum, "a1", 50)
    (community,) = context["communities"]
    assert SOURCE not in str(context)
    assert [row["body"] for row in community["threads"] if row["type"] == "SYSTEM"] == [None]
    assert [row["id"] for row in community["threads"]] == ["t3", "t2", "t1", "system-c1"]
    assert [(row["id"], row["author"]) for row in community["recentComments"]] == [("m3", OWNER), ("m1", "a1")]
    assert community["totalComments"] == 2
    assert {row["id"]: row["commentCount"] for row in community["threads"]}["t1"] == 2
    assert context_document(forum, "a1", 1)["communities"][0]["recentComments"][0]["id"] == "m3"
    assert context_document(forum, "a1", 0)["communities"][0]["recentComments"] == []


def test_the_context_has_exactly_the_fields_of_the_seed(forum: Forum) -> None:
    context = context_document(apply_events(forum, events.CommentByAgent(3_000, "a1", "m1", "t1", "first")), "a1")
    (community,) = context["communities"]
    assert list(context) == ["constraints", "communities"]
    assert set(community) == {
        *("id", "slug", "name", "status", "description", "githubRepositoryUrl"),
        *("chain", "address", "abi", "abiFunctions", "contracts"),
        *("commentLimit", "totalComments", "recentComments", "threads"),
    }
    assert set(community["contracts"][0]) == {
        *("id", "name", "chain", "address", "abi", "faucetFunction", "abiFunctions"),
    }
    assert set(community["recentComments"][0]) == {"id", "threadId", "threadTitle", "body", "createdAt", "author"}
    for thread in community["threads"]:
        assert set(thread) == {"id", "title", "type", "body", "createdAt", "author", "commentCount"}
    newer = context_document(forum, "a1", with_status=True)["communities"][0]["threads"]
    assert [thread.get("requestStatus") for thread in newer] == [None, "pending", None, None]
    assert [thread.get("isIssued") for thread in newer] == [False, None, None, None]


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (events.CreateThread(9, "a1", "x", "c1", "T", "B", "SYSTEM"), "system_thread"),
        (events.CreateThread(9, "a1", "x", "c2", "T", "B"), "other_community"),
        (events.CreateThread(9, "nobody", "x", "c1", "T", "B"), "agent_missing"),
        (events.CreateThread(9, "a1", "x", "c9", "T", "B"), "community_missing"),
        (events.CreateThread(9, "a1", "t1", "c1", "T", "B"), "id_taken"),
        (events.CreateThread(9, "a1", "x", "c1", " ", "B"), "text_missing"),
        (events.CreateThread(9, "a1", "x", "c1", "T" * 181, "B"), "text_too_long"),
        (events.CreateThread(9, "a1", "x", "c1", "😀" * 91, "B"), "text_too_long"),
        (events.CreateThread(9, "a1", "x", "c1", "T", "B" * 12_001), "text_too_long"),
        (events.CreateThread(9, "a1", "x", "c1", "T", "\ud800"), "text_invalid"),
        (events.CreateThread(9, "a1", "x", "c1", "T", "a\0b"), "text_invalid"),
        (events.CommentByAgent(9, "a1", "x", "t9", "B"), "thread_missing"),
        (events.CommentByAgent(9, "b1", "x", "t1", "B"), "other_community"),
        (events.CommentByAgent(9, "a1", "x", "t1", "B" * 8_001), "text_too_long"),
        (events.CommentByOwner(9, OWNER, "x", "t1", "B"), "not_for_humans"),
        (events.CommentByOwner(9, OWNER, "x", "system-c1", "B"), "not_for_humans"),
        (events.CommentByOwner(9, OTHER, "x", "t2", "B"), "not_owner"),
        (events.SetStatusByAgent(9, "a1", "t2", "rejected"), "status_forbidden"),
        (events.SetStatusByAgent(9, "a2", "t2", "resolved"), "not_author"),
        (events.SetStatusByAgent(9, "a1", "t1", "resolved"), "not_request"),
        (events.SetStatusByOwner(9, OWNER, "t2", "resolved"), "status_forbidden"),
        (events.SetStatusByOwner(9, OTHER, "t2", "rejected"), "not_owner"),
        (events.SetStatusByOwner(9, OWNER, "t1", "rejected"), "not_request"),
        (events.MarkThreadIssued(9, "a1", "t2"), "not_report"),
        (events.MarkThreadIssued(9, "b1", "t3"), "other_community"),
        (events.MarkCommentIssued(9, "a1", "m9"), "comment_missing"),
        (events.RegisterAgent(9, STRANGER, "x", "c1", "no spaces"), "handle_invalid"),
        (events.RegisterAgent(9, "0x12", "x", "c1", "fine"), "wallet_invalid"),
        (events.UnregisterAgent(9, OTHER, "a1"), "not_agent_owner"),
        (events.UpdateAgent(9, STRANGER, "a1", "a1", "litellm", "m"), "base_url_missing"),
        (events.BanWallet(9, OTHER, "c1", STRANGER), "not_owner"),
        (events.BanWallet(9, OWNER, "c1", "0x12"), "wallet_invalid"),
        (events.UnbanWallet(9, OWNER, "c1", STRANGER), "ban_missing"),
        (events.CloseCommunity(9, OWNER, "c1", "another name"), "name_mismatch"),
        (events.CloseCommunity(9, OTHER, "c1", "Vault c1"), "not_owner"),
        (registration(OWNER, "c9", 9, 1), "contracts_registered"),
        (registration(STRANGER, "c9", 9, 1), "contract_of_another_owner"),
        (replace(registration(OWNER, "c9", 9, 9), contracts=()), "contracts_missing"),
        (replace(registration(OWNER, "c9", 9, 9), contracts=(replace(contract(9), address="0xz"),)), "address_invalid"),
        (events.AddContract(9, OWNER, "c1", replace(contract(2), id="new"), "x", "y"), "contract_registered"),
        (events.ChangeContract(9, OWNER, "c1", contract(1), "x", "y"), "contract_unchanged"),
        (events.ChangeContract(9, OWNER, "c1", contract(2), "x", "y"), "contract_missing"),
        (events.RemoveContract(9, OWNER, "c1", "contract1", "x", "y"), "last_contract"),
        (events.UpdateDescription(9, OWNER, "c1", None, None, "x", "y"), "community_unchanged"),
    ],
)
def test_a_refusal_is_a_receipt_with_a_code_and_the_forum_stays_as_it_was(
    forum: Forum, event: events.ForumEvent, code: str
) -> None:
    assert code_of(forum, event) == code
    assert code in REFUSALS or code.startswith("text_")


def test_texts_of_exactly_the_limit_are_accepted(forum: Forum) -> None:
    limits = TEXT_LIMITS["thread"]
    title, body = "😀" * (limits["title"] // 2), "b" * limits["body"]
    assert utf16_length(title) == limits["title"]
    after = apply_events(forum, events.CreateThread(9, "a1", "x", "c1", title, body))
    assert after.threads["x"].title == title


def test_a_wallet_owns_three_communities_at_most() -> None:
    forum = apply_events(Forum(), *(registration(OWNER, f"c{number}", number, number) for number in (1, 2, 3)))
    assert code_of(forum, registration(OWNER, "c4", 4, 4)) == "too_many_communities"
    assert code_of(forum, registration(OTHER, "c4", 4, 4)) == ""


def test_a_known_address_extends_the_owners_community_and_two_communities_are_refused(forum: Forum) -> None:
    more = replace(registration(OWNER, "c9", 5_000, 1), contracts=(contract(1), contract(7, "Bank")))
    after = apply_events(forum, more)
    assert [row.name for row in after.contracts_of("c1")] == ["Vault", "Bank"]
    assert "c9" not in after.communities
    assert after.threads["system-c1"].comment_count == 1
    assert "Bank" in after.threads["system-c1"].body
    both = replace(registration(OWNER, "c5", 5_001, 8))
    after = apply_events(after, both)
    mixed = replace(registration(OWNER, "c6", 5_002, 1), contracts=(contract(1), contract(8)))
    assert code_of(after, mixed) == "contracts_of_two_communities"


def contract_on(chain: str, number: int = 1, name: str = "again") -> events.NewContract:
    return replace(contract(number), id=f"{name}{number}", chain=chain)


@pytest.mark.parametrize(
    ("stored", "spelt"),
    [
        *(("Sepolia", spelt) for spelt in ("sepolia", "Sepolia ", " SEPOLIA")),
        *(("Mainnet", spelt) for spelt in ("Ethereum", "ethereum ", "MAINNET")),
        *((stored, "Sepolia") for stored in ("sepolia", " Sepolia ")),
        ("Base", "base"),
    ],
)
def test_a_contract_has_one_owner_however_its_chain_is_spelt(stored: str, spelt: str) -> None:
    forum = apply_events(Forum(), registration())
    forum = forum.put(replace(forum.contracts["contract1"], chain=stored))  # as an earlier version stored it
    theirs = replace(registration(OTHER, "c2", 1_001), contracts=(contract_on(spelt),))
    assert code_of(forum, theirs) == "contract_of_another_owner"
    forum = apply_events(forum, registration(OTHER, "c2", 1_001, 2))
    assert code_of(forum, events.AddContract(1_002, OTHER, "c2", contract_on(spelt), "s", "n")) == "contract_registered"
    moved = replace(contract_on(spelt), id="contract2")
    assert code_of(forum, events.ChangeContract(1_003, OTHER, "c2", moved, "s", "n")) == "contract_registered"
    own = replace(
        registration(OWNER, "c3", 1_004),
        contracts=(contract_on(spelt), contract_on(spelt, 5), contract_on(stored, 5, "twice")),
    )
    assert len(apply_events(forum, own).contracts_of("c1")) == 2


def test_another_chain_is_another_contract_and_the_name_of_a_chain_is_stored_without_space(forum: Forum) -> None:
    forum = apply_events(forum, replace(registration(OTHER, "c3", 1_001), contracts=(contract_on(" Base "),)))
    assert forum.contracts["again1"].chain == "Base"


def test_a_contract_that_two_owners_registered_before_can_still_be_changed_by_both(forum: Forum) -> None:
    forum = forum.put(replace(forum.contracts["contract2"], address=contract(1).address, chain="sepolia"))
    for owner, community, chain, number in ((OWNER, "c1", "Sepolia", 1), (OTHER, "c2", "sepolia", 2)):
        renamed = replace(contract(1, "Safe"), id=f"contract{number}", chain=chain)
        forum = apply_events(forum, events.ChangeContract(4_000, owner, community, renamed, "s", f"n{number}"))
        assert forum.contracts[f"contract{number}"].name == "Safe"


def test_a_change_of_a_contract_rewrites_the_system_thread_and_notes_it(forum: Forum) -> None:
    changed = replace(contract(1), source="contract Second {}")
    after = apply_events(forum, events.ChangeContract(5_000, OWNER, "c1", changed, "x", "note"))
    assert after.contracts["contract1"].changed_at == 5_000
    assert after.contracts["contract1"].created_at == 1_000
    assert "contract Second" in after.threads["system-c1"].body
    assert SOURCE not in after.threads["system-c1"].body
    assert after.comments["note"].body.startswith("Contract changed")
    assert after.communities["c1"].system_sha256 != forum.communities["c1"].system_sha256


def test_a_second_registration_of_a_wallet_in_a_community_changes_the_same_agent(forum: Forum) -> None:
    after = apply_events(forum, replace(agent(), agent_id="other", handle="renamed"))
    assert after.agents["a1"].handle == "renamed"
    assert "other" not in after.agents


def test_an_unregistered_agent_may_not_write_and_keeps_its_posts(forum: Forum) -> None:
    after = apply_events(forum, events.UnregisterAgent(4_000, STRANGER, "a1"))
    assert code_of(after, events.CreateThread(5_000, "a1", "x", "c1", "T", "B")) == "agent_unregistered"
    assert after.threads["t1"].agent_id == "a1"
    assert code_of(apply_events(after, agent(at=6_000)), events.CreateThread(7_000, "a1", "x", "c1", "T", "B")) == ""


def test_an_event_changes_only_the_rows_it_concerns_so_a_partial_forum_gives_the_same(forum: Forum) -> None:
    event = events.CommentByAgent(9_000, "a2", "m1", "t1", "hello")
    partial = Forum(
        communities={"c1": forum.communities["c1"]},
        agents={"a2": forum.agents["a2"]},
        threads={"t1": forum.threads["t1"]},
    )
    whole_after, whole_receipts = apply(forum, event)
    after, receipts = apply(partial, event)
    assert receipts == whole_receipts
    written, removed = changed_rows(partial, after)
    assert written == changed_rows(forum, whole_after)[0]
    assert removed == []
    assert {type(row).__name__ for row in written} == {"ForumThread", "ForumComment"}


WALLETS = [OWNER, OTHER, STRANGER]
COMMUNITIES = ["c1", "c2"]
AGENTS = [f"{wallet[2]}-{community}" for wallet in WALLETS for community in COMMUNITIES]
KINDS: Any = st.sampled_from(["SYSTEM", "DISCUSSION", "REQUEST_TO_HUMAN", "REPORT_TO_HUMAN"])
STATUSES: Any = st.sampled_from(["pending", "resolved", "rejected"])
TEXTS = st.one_of(st.just("text"), st.just("x" * 181), st.just(""), st.just("😀" * 95))


class ForumMachine(RuleBasedStateMachine):
    """Random events, compared with an independent record of what each wallet was allowed to do."""

    def __init__(self) -> None:
        super().__init__()
        self.forum, self.at, self.numbers = Forum(), 0, 0
        self.closed: dict[str, Any] = {}
        self.banned: set[tuple[str, str]] = set()
        self.rejected_by_owner: set[str] = set()
        self.posts = Counter[str]()

    def happen(self, make: Any) -> bool:
        self.at, self.numbers = self.at + 1, self.numbers + 1
        event = make(self.at, f"n{self.numbers}")
        before = self.forum
        self.forum, (receipt,) = apply(before, event)
        if receipt.kind == "rejected":
            assert self.forum is before
            assert receipt.facts["code"]
            assert receipt.facts["text"]
        return receipt.kind == "accepted"

    @rule(community=st.sampled_from(COMMUNITIES))
    def register(self, community: str) -> None:
        number = COMMUNITIES.index(community)
        self.happen(lambda at, new: registration(WALLETS[number], community, at, number + 1))

    @rule(wallet=st.sampled_from(WALLETS), community=st.sampled_from(COMMUNITIES))
    def join(self, wallet: str, community: str) -> None:
        name = f"{wallet[2]}-{community}"
        accepted = self.happen(lambda at, new: events.RegisterAgent(at, wallet, name, community, "h"))
        if accepted:
            assert (community, wallet) not in self.banned
            assert community not in self.closed

    @rule(wallet=st.sampled_from(WALLETS), name=st.sampled_from(AGENTS))
    def leave(self, wallet: str, name: str) -> None:
        if self.happen(lambda at, new: events.UnregisterAgent(at, wallet, name)):
            assert name[0] == wallet[2]

    @rule(name=st.sampled_from(AGENTS), community=st.sampled_from(COMMUNITIES), title=TEXTS, kind=KINDS)
    def post(self, name: str, community: str, title: str, kind: Any) -> None:
        if self.happen(lambda at, new: events.CreateThread(at, name, new, community, title, "body", kind)):
            self.allowed(name, community)
            assert title == "text"
            assert kind != "SYSTEM"

    @rule(name=st.sampled_from(AGENTS), data=st.data(), joke=st.booleans())
    def comment(self, name: str, data: st.DataObject, joke: bool) -> None:
        thread = self.thread(data)
        kind = "JOKE" if joke else "DISCUSSION"
        if self.happen(lambda at, new: events.CommentByAgent(at, name, new, thread.id, "body", kind)):
            self.allowed(name, thread.community_id)
            self.posts[thread.id] += 1

    @rule(wallet=st.sampled_from(WALLETS), data=st.data())
    def answer(self, wallet: str, data: st.DataObject) -> None:
        thread = self.thread(data)
        if self.happen(lambda at, new: events.CommentByOwner(at, wallet, new, thread.id, "body")):
            assert self.owns(wallet, thread.community_id)
            assert thread.kind in ("REQUEST_TO_HUMAN", "REPORT_TO_HUMAN")
            self.posts[thread.id] += 1

    @rule(name=st.sampled_from(AGENTS), data=st.data(), status=STATUSES)
    def status_by_agent(self, name: str, data: st.DataObject, status: Any) -> None:
        thread = self.thread(data)
        if self.happen(lambda at, new: events.SetStatusByAgent(at, name, thread.id, status)):
            self.allowed(name, thread.community_id)
            assert thread.agent_id == name
            assert status != "rejected"
            self.rejected_by_owner.discard(thread.id)

    @rule(wallet=st.sampled_from(WALLETS), data=st.data(), status=STATUSES)
    def status_by_owner(self, wallet: str, data: st.DataObject, status: Any) -> None:
        thread = self.thread(data)
        if self.happen(lambda at, new: events.SetStatusByOwner(at, wallet, thread.id, status)):
            assert self.owns(wallet, thread.community_id)
            assert status != "resolved"
            (self.rejected_by_owner.add if status == "rejected" else self.rejected_by_owner.discard)(thread.id)

    @rule(name=st.sampled_from(AGENTS), data=st.data())
    def issue(self, name: str, data: st.DataObject) -> None:
        thread = self.thread(data)
        if self.happen(lambda at, new: events.MarkThreadIssued(at, name, thread.id)):
            self.allowed(name, thread.community_id)
            assert thread.kind == "REPORT_TO_HUMAN"

    @rule(
        wallet=st.sampled_from(WALLETS),
        banned=st.sampled_from(WALLETS),
        community=st.sampled_from(COMMUNITIES),
        lift=st.booleans(),
    )
    def ban(self, wallet: str, banned: str, community: str, lift: bool) -> None:
        make = events.UnbanWallet if lift else events.BanWallet
        if self.happen(lambda at, new: make(at, wallet, community, banned)):
            assert self.owns(wallet, community)
            (self.banned.discard if lift else self.banned.add)((community, banned))

    @rule(wallet=st.sampled_from(WALLETS), community=st.sampled_from(COMMUNITIES))
    def close(self, wallet: str, community: str) -> None:
        name = f" VAULT{community} "
        if self.happen(lambda at, new: events.CloseCommunity(at, wallet, community, name)):
            assert self.owns(wallet, community)
            assert community not in self.closed
            self.closed[community] = self.content(community)

    @invariant()
    def a_closed_community_takes_no_writes(self) -> None:
        for community, content in self.closed.items():
            assert self.content(community) == content

    @invariant()
    def only_the_owner_rejects(self) -> None:
        rejected = {thread.id for thread in self.forum.threads.values() if thread.is_rejected}
        assert rejected == self.rejected_by_owner
        assert not any(thread.is_rejected and thread.is_resolved for thread in self.forum.threads.values())

    @invariant()
    def counts_are_those_of_the_comments(self) -> None:
        for thread in self.forum.threads.values():
            comments = [row for row in self.forum.comments.values() if row.thread_id == thread.id]
            assert thread.comment_count == len(comments)
            assert thread.discussion_count == sum(row.kind == "DISCUSSION" for row in comments)
            if thread.kind != "SYSTEM":
                assert thread.comment_count == self.posts[thread.id]

    @invariant()
    def there_is_one_system_thread_per_community_and_one_agent_per_wallet_in_it(self) -> None:
        system = Counter(row.community_id for row in self.forum.threads.values() if row.kind == "SYSTEM")
        assert set(system.values()) <= {1}
        places = Counter((row.owner_wallet, row.community_id) for row in self.forum.agents.values())
        assert set(places.values()) <= {1}

    def allowed(self, name: str, community: str) -> None:
        assert name[2:] == community
        wallet = next(wallet for wallet in WALLETS if wallet[2] == name[0])
        assert (community, wallet) not in self.banned
        assert community not in self.closed

    def owns(self, wallet: str, community: str) -> bool:
        return wallet == WALLETS[COMMUNITIES.index(community)]

    def thread(self, data: st.DataObject) -> ForumThread:
        threads = list(self.forum.threads.values())
        return data.draw(st.sampled_from(threads)) if threads else ForumThread("t", "c1", "DISCUSSION", "", "", 0)

    def content(self, community: str) -> Any:
        threads = self.forum.threads_of(community)
        ids = {thread.id for thread in threads}
        comments = [row for row in self.forum.comments.values() if row.thread_id in ids]
        bans = [row for row in self.forum.bans.values() if row.community_id == community]
        return self.forum.communities[community], self.forum.contracts_of(community), threads, comments, bans


ForumMachine.TestCase.settings = settings(
    max_examples=30, stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestForumMachine = ForumMachine.TestCase


@pytest.mark.proof
class TestForumMachineForLong(ForumMachine.TestCase):
    settings = settings(max_examples=3_000, stateful_step_count=80, deadline=None)
