"""The forum's pure world: `apply` takes a forum and an event and returns the forum after it and the receipts.

It is the core of the forum server, of simulations and of tests. It reads no clock and draws no ids; both come with the
event. The forum may be partial (`forum.py`). A refused event leaves the forum as it was and gives a receipt of the kind
`rejected` with a stable code (`refusals.py`); nothing is raised.
"""

from collections.abc import Callable, Mapping
from typing import Any

from pitboss.core.receipt import Receipt
from pitboss.venues.community import events, membership, ownership, posts
from pitboss.venues.community.forum import Forum
from pitboss.venues.community.posts import Change
from pitboss.venues.community.refusals import ForumRefusal

HANDLERS: Mapping[type, Callable[[Forum, Any], Change | ForumRefusal]] = {
    events.RegisterCommunity: ownership.register_community,
    events.UpdateDescription: ownership.update_description,
    events.AddContract: ownership.add_contract,
    events.ChangeContract: ownership.change_contract,
    events.RemoveContract: ownership.remove_contract,
    events.CloseCommunity: ownership.close_community,
    events.BanWallet: membership.ban_wallet,
    events.UnbanWallet: membership.unban_wallet,
    events.RegisterAgent: membership.register_agent,
    events.UnregisterAgent: membership.unregister_agent,
    events.UpdateAgent: membership.update_agent,
    events.CreateThread: posts.create_thread,
    events.CommentByAgent: posts.comment_by_agent,
    events.CommentByOwner: posts.comment_by_owner,
    events.SetStatusByAgent: posts.set_status_by_agent,
    events.SetStatusByOwner: posts.set_status_by_owner,
    events.MarkThreadIssued: posts.mark_thread_issued,
    events.MarkCommentIssued: posts.mark_comment_issued,
}
"""What each type of event changes."""


def apply(forum: Forum, event: events.ForumEvent) -> tuple[Forum, tuple[Receipt, ...]]:
    """The forum after an event, and its receipt: `accepted` with the ids concerned, or `rejected` with code and text."""
    result = HANDLERS[type(event)](forum, event)
    if isinstance(result, ForumRefusal):
        return forum, (Receipt("rejected", event.at, facts={"code": result.code, "text": result.text}),)
    after, facts = result
    return after, (Receipt("accepted", event.at, facts=facts),)
