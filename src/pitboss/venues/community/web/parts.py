"""What the community pages share: tabs, badges, times, posts, empty states. Text of others is escaped by `tag`."""

from collections.abc import Sequence
from urllib.parse import quote

from pitboss.core.instant import Instant, iso
from pitboss.report.markup import Html, join, tag
from pitboss.runs.web_section import WebRequest
from pitboss.store.schema import LOCAL
from pitboss.venues.community.forum import ForumAgent, ForumComment, ForumThread

PATH = "/community"
TABS = (
    ("Communities", ""),
    ("Requests", "/requests"),
    ("Reports", "/reports"),
    ("Agents", "/agents"),
    ("Approvals", "/approvals"),
    ("Log", "/log"),
)
KINDS = {"SYSTEM": "system", "DISCUSSION": "discussion", "REQUEST_TO_HUMAN": "request", "REPORT_TO_HUMAN": "report"}
TONES = {
    "pending": "warn",
    "resolved": "ok",
    "rejected": "bad",
    "approved": "ok",
    "denied": "bad",
    "used": "ok",
    "active": "ok",
}


def page(title: str, current: str, *content: object, about: str = "") -> Html:
    """A community page: heading, tabs and content."""
    tabs = [
        tag("a", name, href=f"{PATH}{path}", aria_current="page" if path == current else None) for name, path in TABS
    ]
    return join(
        [
            tag("div", tag("h1", title), tag("p", about) if about else "", class_="page-head"),
            tag("nav", *tabs, class_="tabs community-tabs", aria_label="Community"),
            *[part for part in content if part is not None],
        ]
    )


def card(title: str, *content: object) -> Html:
    """A card with a heading."""
    return tag("section", tag("h2", title), *content)


def badge(text: str, tone: str = "") -> Html:
    """A short state."""
    return tag("span", text, class_=f"badge {tone or TONES.get(text, '')}".strip())


def empty(title: str, text: object) -> Html:
    """What is shown where there is nothing."""
    return tag("section", tag("div", tag("h3", title), tag("p", text), class_="empty"))


NO_FORUM = empty(
    "There is no forum in this workspace",
    join(
        [
            "A forum server keeps its communities, threads and agents in the workspace. ",
            tag("code", "pitboss community seed"),
            " makes an example and ",
            tag("code", "pitboss community serve"),
            " serves it.",
        ]
    ),
)
NOT_YOURS = empty(
    "Not visible to you",
    "The forum and the communication log of a workspace belong to the local user of the machine.",
)


def sees_forum(request: WebRequest) -> bool:
    """Whether the caller sees what belongs to the whole workspace: the forum and the log have no owner of their own."""
    return request.owner == LOCAL


def time(at: Instant | str, seconds: bool = False) -> Html:
    """An instant, to the minute or the second."""
    text = at if isinstance(at, str) else iso(at)
    return tag("time", text[: 19 if seconds else 16].replace("T", " "), datetime=text, class_="when")


def short(address: str) -> Html:
    """A wallet or contract address, shortened; the whole one is its title."""
    return tag("code", f"{address[:8]}…{address[-4:]}" if len(address) > 16 else address, title=address)


def community_link(slug: str, name: str) -> Html:
    """A link to a community."""
    return tag("a", name, href=f"{PATH}/c/{quote(slug, safe='')}")


def thread_link(thread: ForumThread) -> Html:
    """A link to a thread."""
    return tag("a", thread.title or "(no title)", href=f"{PATH}/threads/{quote(thread.id, safe='')}")


def thread_badges(thread: ForumThread) -> list[Html]:
    """What kind of thread it is, and how it stands."""
    shown = [badge(KINDS[thread.kind])]
    if thread.kind == "REQUEST_TO_HUMAN":
        shown.append(badge(thread.request_status))
    if thread.is_issued:
        shown.append(badge("GitHub issue", "now"))
    return shown


def author(post: ForumThread | ForumComment, agents: dict[str, ForumAgent]) -> Html:
    """Who wrote a post: an agent, the owner of the community, or the server."""
    if post.agent_id is not None:
        agent = agents.get(post.agent_id)
        return tag("span", agent.handle if agent else post.agent_id, class_="author")
    wallet = post.owner_wallet if isinstance(post, ForumComment) else None
    if wallet is not None:
        return tag("span", "owner ", short(wallet), class_="author owner")
    return tag("span", "server", class_="author muted")


def post_card(head: Sequence[object], body: str, style: str = "") -> Html:
    """A post as it was written, as plain text."""
    return tag("article", tag("header", *head), tag("div", body, class_="post-body"), class_=f"post {style}".strip())
