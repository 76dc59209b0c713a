"""The pages of the forum: communities, one community, threads, requests, reports, agents with their credentials."""

from collections.abc import Callable, Sequence

from pitboss.report.figures import plural
from pitboss.report.markup import Html, join, tag
from pitboss.report.table import LEFT, RIGHT, facts, table
from pitboss.runs.listing import result_text
from pitboss.runs.listing import short as short_run
from pitboss.runs.web_section import PageNotFound, WebRequest
from pitboss.venues.community.forum import ForumAgent, ForumThread, ThreadKind
from pitboss.venues.community.web.forum_reader import CredentialState, ForumReader, ThreadCounts, open_forum
from pitboss.venues.community.web.parts import (
    NO_FORUM,
    NOT_YOURS,
    PATH,
    author,
    badge,
    card,
    community_link,
    empty,
    page,
    post_card,
    sees_forum,
    short,
    thread_badges,
    thread_link,
    time,
)

VENUE = "community"
MOST_RUNS, SCANNED_RUNS = 10, 200


def _with_forum(request: WebRequest, show: Callable[[ForumReader], Html]) -> Html:
    """Content from the forum, or why there is none."""
    if not sees_forum(request):
        return NOT_YOURS
    with open_forum(request.workspace.home) as forum:
        return NO_FORUM if forum is None else show(forum)


def overview(request: WebRequest) -> Html:
    """The first page: communities, what waits for a person, the latest runs."""
    waiting = len(request.workspace.approval_requests.listing(VENUE))
    notice = None
    if waiting:
        words = "1 transaction waits" if waiting == 1 else f"{waiting} transactions wait"
        notice = tag("div", f"{words} for approval. ", tag("a", "Decide", href=f"{PATH}/approvals"), class_="notice")
    return page(
        "Community",
        "",
        notice,
        _with_forum(request, _communities),
        _runs(request),
        about="Communities around smart contracts, and the agents of this workspace that take part in them.",
    )


def _communities(forum: ForumReader) -> Html:
    communities, counts = forum.communities(), forum.counts()
    if not communities:
        return empty("There are no communities yet", "An owner registers one with the forum server.")
    columns = [
        ("Community", LEFT), ("Status", LEFT), ("Owner", LEFT), ("Threads", RIGHT), ("Open requests", RIGHT), ("Reports", RIGHT),
        ("Agents", RIGHT), ("Created", LEFT),
    ]  # fmt: skip
    rows = []
    for community in communities:
        count = counts.get(community.id, ThreadCounts())
        numbers = (count.threads, count.open_requests, count.reports, count.agents)
        rows.append(
            (
                community_link(community.slug, community.name),
                badge(community.status.lower()),
                short(community.owner_wallet),
                *numbers,
                time(community.created_at),
            )
        )
    return card("Communities", table("Communities", columns, rows))


def _runs(request: WebRequest) -> Html | None:
    listed = request.workspace.runs.listing(SCANNED_RUNS).runs
    runs = [run for run in listed if run.params["skill"].get("venue") == VENUE][:MOST_RUNS]
    if not runs:
        return None
    columns = [("Run", LEFT), ("Skill", LEFT), ("Model", LEFT), ("Kind", LEFT), ("Status", LEFT), ("Result", RIGHT)]
    rows = [
        (
            tag("a", run.id, href=f"/runs/{run.id}"),
            run.params["skill"].get("name", ""),
            run.model,
            str(run.params.get("mode") or "backtest"),
            badge(run.status.replace("_", " "), "ok" if run.status == "complete" else "now"),
            result_text(short_run(run, request.workspace.now())),
        )
        for run in runs
    ]
    return card("Latest runs", table("Latest runs of the community venue", columns, rows))


def community(request: WebRequest) -> Html:
    """One community: its contracts, threads and agents."""

    def show(forum: ForumReader) -> Html:
        place = forum.community(request.values.get("slug", ""))
        if place is None:
            raise PageNotFound("there is no such community")
        agents = forum.agents(place.id)
        shown = [
            ("Status", badge(place.status.lower())),
            ("Owner", short(place.owner_wallet)),
            ("Created", time(place.created_at)),
            *([("Repository", place.github_repository_url)] if place.github_repository_url else []),
            *([("Closed", time(place.closed_at))] if place.closed_at else []),
        ]
        contracts = [
            (contract.name, short(contract.address), contract.chain, len(contract.abi), time(contract.changed_at))
            for contract in forum.contracts(place.id)
        ]
        columns = [("Contract", LEFT), ("Address", LEFT), ("Chain", LEFT), ("ABI entries", RIGHT), ("Changed", LEFT)]
        return join(
            [
                card(place.name, tag("p", place.description or "", class_="post-body"), facts(shown)),
                card("Threads", _thread_table(forum, forum.threads(place.id), with_community=False)),
                card("Contracts", table("Contracts", columns, contracts)) if contracts else "",
                card("Agents", _agent_table(forum, agents)) if agents else "",
            ]
        )

    return page("Community", "", _with_forum(request, show))


def _thread_table(forum: ForumReader, threads: Sequence[ForumThread], with_community: bool = True) -> Html:
    if not threads:
        return tag("p", "There are none.", class_="note")
    agents = forum.authors([thread.agent_id for thread in threads])
    communities = forum.named([thread.community_id for thread in threads]) if with_community else {}
    columns = [("Thread", LEFT), ("State", LEFT), ("By", LEFT), ("Comments", RIGHT), ("Opened", LEFT)]
    if with_community:
        columns.insert(1, ("Community", LEFT))
    rows = []
    for thread in threads:
        place = communities.get(thread.community_id)
        rows.append(
            (
                thread_link(thread),
                *([community_link(place.slug, place.name) if place else ""] if with_community else []),
                join(thread_badges(thread), " "),
                author(thread, agents),
                thread.comment_count,
                time(thread.created_at),
            )
        )
    return table("Threads", columns, rows)


def thread(request: WebRequest) -> Html:
    """A thread with its posts; replies of the owner stand out."""

    def show(forum: ForumReader) -> Html:
        row = forum.thread(request.values.get("thread", ""))
        if row is None:
            raise PageNotFound("there is no such thread")
        comments = forum.comments(row.id)
        agents = forum.authors([row.agent_id, *(comment.agent_id for comment in comments)])
        place = forum.named([row.community_id]).get(row.community_id)
        head = [author(row, agents), time(row.created_at), *thread_badges(row)]
        posts = [post_card(head, row.body)]
        for comment in comments:
            marks = [badge("joke")] if comment.kind == "JOKE" else []
            marks += [badge("owner's reply")] if comment.owner_wallet else []
            marks += [badge("GitHub issue", "now")] if comment.is_issued else []
            head = [author(comment, agents), time(comment.created_at), *marks]
            posts.append(post_card(head, comment.body, "by-owner" if comment.owner_wallet else ""))
        hidden = row.comment_count - len(comments)
        more = tag("p", f"{plural(hidden, 'older comment')} not shown.", class_="note") if hidden > 0 else ""
        where = tag("p", "in ", community_link(place.slug, place.name), class_="note") if place else ""
        return card(row.title or "(no title)", where, posts[0], more, *posts[1:])

    return page("Thread", "", _with_forum(request, show))


def _threads_of(kind: ThreadKind, title: str, current: str, about: str) -> Callable[[WebRequest], Html]:
    def show(request: WebRequest) -> Html:
        return page(
            title,
            current,
            _with_forum(request, lambda forum: card(title, _thread_table(forum, forum.threads(kind=kind)))),
            about=about,
        )

    return show


requests = _threads_of("REQUEST_TO_HUMAN", "Requests", "/requests", "What agents ask their owners for.")
reports = _threads_of("REPORT_TO_HUMAN", "Reports", "/reports", "What agents report to their owners.")


def agents(request: WebRequest) -> Html:
    """Agents with the state of their credentials."""

    def show(forum: ForumReader) -> Html:
        rows = forum.agents()
        if not rows:
            return empty("There are no agents yet", "An owner registers one with the forum server.")
        return card("Agents", _agent_table(forum, rows, with_community=True))

    return page(
        "Agents", "/agents", _with_forum(request, show), about="Agents and their credentials. Keys are never shown."
    )


def _agent_table(forum: ForumReader, agents: Sequence[ForumAgent], with_community: bool = False) -> Html:
    credentials = forum.credentials()
    communities = forum.named([agent.community_id for agent in agents if agent.community_id]) if with_community else {}
    columns = [
        ("Agent", LEFT),
        ("State", LEFT),
        ("Owner", LEFT),
        ("Model", LEFT),
        ("Credential", LEFT),
        ("Since", LEFT),
    ]
    if with_community:
        columns.insert(1, ("Community", LEFT))
    rows = []
    for agent in agents:
        place = communities.get(agent.community_id or "")
        rows.append(
            (
                agent.handle,
                *([community_link(place.slug, place.name) if place else "none"] if with_community else []),
                badge("registered", "ok") if agent.is_registered else badge("unregistered"),
                short(agent.owner_wallet),
                f"{agent.llm_provider} {agent.llm_model}",
                _credential(credentials.get(agent.id)),
                time(agent.created_at),
            )
        )
    return table("Agents", columns, rows)


def _credential(state: CredentialState | None) -> Html:
    if state is None:
        return badge("none")
    if state.revoked_at is not None:
        return join([badge("revoked", "bad"), " ", time(state.revoked_at)])
    return join([badge("active", "ok"), " ", short(state.key_id), " since ", time(state.updated_at)])
