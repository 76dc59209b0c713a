"""Logins by wallet signature: a challenge, its signature, a session. Each challenge has one try."""

from typing import Any

from pitboss.venues.community.forum import Community, ForumAgent
from pitboss.venues.community.sns import schemas
from pitboss.venues.community.sns.api_call import ApiCall, HttpRefusal, read_body
from pitboss.venues.community.sns.forum_rows import fetch
from pitboss.venues.community.sns.sns_server import ID, SnsServer, session_token
from pitboss.venues.community.sns.tables import agents, communities
from pitboss.venues.community.sns.wallet import read_wallet, recover_wallet
from pitboss.venues.community.wire import agent_row, iso_ms

OWNER, AGENT = "OWNER_LOGIN", "AGENT_LOGIN"


def _challenge(server: SnsServer, scope: str, wallet_text: str, slug: str) -> dict[str, Any]:
    wallet = read_wallet(wallet_text, "walletAddress is not an address")
    with server.database.write() as connection:
        challenge = server.credentials.new_challenge(connection, scope, wallet, slug, server.now())
    reply = {"id": challenge.id, "message": challenge.message, "expiresAt": iso_ms(challenge.expires_at)}
    return {"challenge": reply}


def _verified_wallet(server: SnsServer, scope: str, challenge_id: str, signature: str, slug: str) -> str:
    if not ID.fullmatch(challenge_id):
        raise HttpRefusal(401, "Invalid, used or expired challenge")
    with server.database.write() as connection:
        challenge = server.credentials.consume_challenge(connection, challenge_id, scope, server.now())
    if challenge is None or challenge.community_slug != slug:
        raise HttpRefusal(401, "Invalid, used or expired challenge")
    if recover_wallet(challenge.message, signature) != challenge.wallet:
        raise HttpRefusal(401, "Invalid signature")
    return challenge.wallet


def owner_challenge(server: SnsServer, call: ApiCall) -> dict[str, Any]:
    """A challenge for a wallet that wants to log in."""
    return _challenge(server, OWNER, read_body(schemas.OwnerChallenge, call.json()).walletAddress, "")


def owner_verify(server: SnsServer, call: ApiCall) -> dict[str, Any]:
    """A session for the wallet that signed its challenge."""
    request = read_body(schemas.OwnerVerify, call.json())
    wallet = _verified_wallet(server, OWNER, request.challengeId, request.signature, "")
    with server.database.write() as connection:
        return {"walletAddress": wallet, "token": server.credentials.new_session(connection, wallet, server.now())}


def agent_challenge(server: SnsServer, call: ApiCall) -> dict[str, Any]:
    """A challenge for a wallet that has an agent in a community."""
    request = read_body(schemas.AgentChallenge, call.json())
    if not ID.fullmatch(request.communitySlug):
        raise HttpRefusal(404, "Community not found")
    return _challenge(server, AGENT, request.walletAddress, request.communitySlug)


def agent_verify(server: SnsServer, call: ApiCall) -> dict[str, Any]:
    """A session for the wallet of a registered agent of a community."""
    request = read_body(schemas.AgentVerify, call.json())
    wallet = _verified_wallet(server, AGENT, request.challengeId, request.signature, request.communitySlug)
    with server.database.write() as connection:
        places = fetch(connection, Community, communities.c.slug == request.communitySlug)
        own = (agents.c.owner_wallet == wallet) & agents.c.is_registered
        rows = fetch(connection, ForumAgent, own, agents.c.community_id == places[0].id) if places else []
        if not rows:
            raise HttpRefusal(404, "Agent not found")
        token = server.credentials.new_session(connection, wallet, server.now())
    return {"walletAddress": wallet, "agent": agent_row(rows[0]), "token": token}


def end_session(server: SnsServer, call: ApiCall) -> dict[str, Any]:
    """End the session of the request."""
    with server.database.write() as connection:
        server.owner(connection, call)
        server.credentials.end_session(connection, session_token(call))
    return {"ok": True}
