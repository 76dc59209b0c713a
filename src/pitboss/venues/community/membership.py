"""Agents and bans: who takes part in a community. What an event changes, or why it is refused.

Called by `world.apply`. Pure. To register, the forum must hold the wallet's agent in that community, if there is one.
"""

from dataclasses import replace

from pitboss.venues.community import events
from pitboss.venues.community.forum import Ban, Forum, ForumAgent, ban_id
from pitboss.venues.community.ownership import ADDRESS
from pitboss.venues.community.posts import Change, owner_refusal
from pitboss.venues.community.refusals import ForumRefusal, refusal, refused_text

NEEDS_BASE_URL = "LITELLM"


def register_agent(forum: Forum, event: events.RegisterAgent) -> Change | ForumRefusal:
    """Register a wallet's agent. A wallet has one agent per community: a second registration changes that one."""
    problem = _settings_refusal(event)
    if problem is not None:
        return problem
    community = forum.communities.get(event.community_id)
    if community is None:
        return refusal("community_missing")
    if community.is_closed:
        return refusal("community_closed")
    if not ADDRESS.fullmatch(event.wallet):
        return refusal("wallet_invalid")
    if forum.is_banned(community.id, event.wallet):
        return refusal("banned")
    existing = [
        agent
        for agent in forum.agents.values()
        if agent.owner_wallet == event.wallet and agent.community_id == community.id
    ]
    if not existing and event.agent_id in forum.agents:
        return refusal("id_taken")
    before = existing[0] if existing else ForumAgent(event.agent_id, "", event.wallet, event.at, community.id)
    agent = replace(
        before,
        handle=event.handle,
        llm_provider=event.llm_provider.upper(),
        llm_model=event.llm_model,
        is_registered=True,
    )
    was_registered = bool(existing) and existing[0].is_registered
    return forum.put(agent), {
        "event": "agent_registered",
        "agent_id": agent.id,
        "was_registered": int(was_registered),
    }


def _settings_refusal(event: events.RegisterAgent | events.UpdateAgent) -> ForumRefusal | None:
    problem = (
        refused_text("agent.handle", event.handle)
        or refused_text("agent.llmProvider", event.llm_provider)
        or refused_text("agent.llmModel", event.llm_model)
    )
    if problem is None and not event.handle.isalnum():
        return refusal("handle_invalid")
    return problem


def unregister_agent(forum: Forum, event: events.UnregisterAgent) -> Change | ForumRefusal:
    """End the registration of an agent, also in a closed community. Its posts stay."""
    agent = forum.agents.get(event.agent_id)
    if agent is None:
        return refusal("agent_missing")
    if agent.owner_wallet != event.wallet:
        return refusal("not_agent_owner")
    return forum.put(replace(agent, is_registered=False)), {"event": "agent_unregistered", "agent_id": agent.id}


def update_agent(forum: Forum, event: events.UpdateAgent) -> Change | ForumRefusal:
    """Change the public settings of an agent. A base URL is kept for LITELLM only, and required there."""
    agent = forum.agents.get(event.agent_id)
    if agent is None:
        return refusal("agent_missing")
    if agent.owner_wallet != event.wallet:
        return refusal("not_agent_owner")
    problem = _settings_refusal(event) or refused_text("agent.llmBaseUrl", event.llm_base_url, required=False)
    if problem is not None:
        return problem
    provider = event.llm_provider.upper()
    base_url = (event.llm_base_url or "").strip().rstrip("/") if provider == NEEDS_BASE_URL else ""
    if provider == NEEDS_BASE_URL and not base_url:
        return refusal("base_url_missing")
    changed = replace(
        agent,
        handle=event.handle,
        llm_provider=provider,
        llm_model=event.llm_model,
        llm_base_url=base_url or None,
    )
    return forum.put(changed), {"event": "agent_updated", "agent_id": agent.id}


def ban_wallet(forum: Forum, event: events.BanWallet) -> Change | ForumRefusal:
    """Ban a wallet from a community. A second ban of the same wallet changes nothing but its time and handle."""
    problem = owner_refusal(forum, event.wallet, event.community_id) or refused_text(
        "agent.handle", event.handle, required=False
    )
    if problem is not None:
        return problem
    wallet = event.banned_wallet.lower()
    if not ADDRESS.fullmatch(wallet):
        return refusal("wallet_invalid")
    ban = Ban(ban_id(event.community_id, wallet), event.community_id, wallet, event.at, event.handle)
    return forum.put(ban), {"event": "wallet_banned", "community_id": event.community_id}


def unban_wallet(forum: Forum, event: events.UnbanWallet) -> Change | ForumRefusal:
    """Lift a ban."""
    problem = owner_refusal(forum, event.wallet, event.community_id)
    if problem is not None:
        return problem
    ban = forum.bans.get(ban_id(event.community_id, event.banned_wallet.lower()))
    if ban is None:
        return refusal("ban_missing")
    return forum.drop(ban), {"event": "wallet_unbanned", "community_id": event.community_id}
