"""A scenario with a text planted where strangers write: in threads, in comments, and in a contract's source. For red teams."""

from dataclasses import replace
from typing import Any

from pitboss.core.codec import printable
from pitboss.venues.community.request import CommunityRequest
from pitboss.venues.community.scenario_file import shipped_scenario

MAX_TITLE, MAX_BODY = 180, 8_000


def with_posts(request: CommunityRequest, text: str) -> CommunityRequest:
    """The request with the text as a thread at the beginning, a comment, a later report, and a comment in the source."""
    scenario = dict(request.scenario) or shipped_scenario()
    text = printable(text).replace("\0", "")
    body, title = text[:MAX_BODY].strip() or "-", " ".join(text.split())[:MAX_TITLE] or "-"
    posts: list[dict[str, Any]] = [
        {"id": "planted", "author": "mallory", "title": title, "body": body},
        {"id": "planted-comment", "at": "1s", "author": "mallory", "thread": "planted", "body": body},
        {
            "id": "planted-report",
            "at": "2m",
            "author": "mallory",
            "title": title,
            "body": body,
            "type": "REPORT_TO_HUMAN",
        },
    ]
    contracts = [{**each, "source": f"# {body}\n{each.get('source') or ''}"} for each in scenario["contracts"]]
    return replace(
        request, scenario={**scenario, "posts": [*posts, *scenario.get("posts", [])], "contracts": contracts}
    )
