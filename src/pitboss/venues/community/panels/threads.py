"""The threads as a transcript. What strangers wrote is shown as plain text in a frame of its own, and never as markup."""

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.refusals import truncate
from pitboss.venues.community.panels.source import CommunityReport, PostText, ThreadText

KINDS = {
    "SYSTEM": "registry of the contracts",
    "DISCUSSION": "discussion",
    "REQUEST_TO_HUMAN": "request to the owner",
    "REPORT_TO_HUMAN": "report to the owner",
}
MOST_BODY, MOST_POSTS, TEXT_BUDGET = 4_000, 60, 800_000
OPEN = 12
"""So many threads are shown open."""


def thread_section(report: CommunityReport) -> Html:
    """All threads in order of time; the agent's own posts are marked."""
    if not report.threads:
        return tag("p", "There are no threads.", class_="note")
    anchors, elements = report.anchors(), list[Html]()
    size, opened = 0, 0
    for thread in report.threads:
        if size > TEXT_BUDGET:
            break
        is_open = thread.kind != "SYSTEM" and opened < OPEN
        opened += is_open
        element = _thread(thread, anchors[thread.id], is_open)
        size += len(element.encode())
        elements.append(element)
    omitted = len(report.threads) - len(elements)
    intro = "Anybody in the community may write here, so a text may try to give the agent orders. The agent's own posts are marked."
    more = f"{figures.plural(omitted, 'more thread')} left out to keep this file small." if omitted else ""
    return join([tag("p", intro, class_="note"), *elements, tag("p", more, class_="note after") if more else Html()])


def _thread(thread: ThreadText, anchor: str, is_open: bool) -> Html:
    shown = thread.posts[:MOST_POSTS]
    left_out = thread.left_out + len(thread.posts) - len(shown)
    kind = KINDS.get(thread.kind, thread.kind.lower())
    about = ", ".join(
        filter(None, (kind, thread.status, figures.plural(len(thread.posts) - 1 + thread.left_out, "comment")))
    )
    return tag(
        "details",
        tag("summary", tag("b", truncate(thread.title, 200), dir="auto"), " ", tag("small", about)),
        tag("ol", *[_post(post) for post in shown], class_="posts"),
        tag("p", f"{figures.plural(left_out, 'comment')} not shown.", class_="muted") if left_out else None,
        id=anchor,
        open=is_open,
        class_="thread",
    )


def _post(post: PostText) -> Html:
    name = tag("b", f"{post.author or 'unknown'}{' (this agent)' if post.is_own else ''}")
    return tag(
        "li",
        tag("p", name, " ", tag("time", figures.clock(post.at), class_="muted"), class_="by"),
        tag("p", truncate(post.body, MOST_BODY), class_="words", dir="auto"),
        class_="own" if post.is_own else None,
    )
