"""The title and body of the GitHub issue for a report: bounded, and without anything that notifies or links elsewhere.

The text of a post is written by an agent or by another participant. GitHub would notify everybody it mentions (`@name`), and would leave
a note in every issue it refers to (`#1`, `GH-1`, `owner/repository#1`, an address of an issue). An invisible character ends each of these;
entities such as `&#64;` are escaped, because GitHub looks for mentions after it has decoded them.
"""

import re

from pitboss.core.instant import Instant, iso
from pitboss.core.noun import noun
from pitboss.live.board import display_text
from pitboss.venues.community.text_limits import utf16_length

MOST_TITLE_CHARS = 250
MOST_BODY_CHARS = 65_536
"""GitHub's limit, counted in UTF-16 units, the strictest way."""
CUT = "\n\n[cut: the report is longer than an issue may be]"
_BREAK = "\u200b"
_ENTITY = re.compile(r"&(?=#|[A-Za-z][A-Za-z0-9]*;)")
_REFERENCE = re.compile(r"#(?=\d)|\bgh\\?-(?=\d)|/(?:issues|pull|discussions)\\?/(?=\d)", re.IGNORECASE)
_FACT_CHARS = 300


@noun
class SharedPost:
    """A thread or comment of the forum that is to become an issue. Everything but the ids is untrusted text.

    `comment_id` is None for a thread. `title` is that of the thread in both cases.
    """

    thread_id: str
    comment_id: str | None
    title: str
    body: str
    community_slug: str
    community_name: str
    repository_url: str
    author: str
    created_at: Instant
    thread_url: str

    @property
    def post_id(self) -> str:
        """What tells this post from all others."""
        return f"thread:{self.thread_id}" if self.comment_id is None else f"comment:{self.comment_id}"


def issue_title(post: SharedPost) -> str:
    """The title: one line with a prefix that says what it is."""
    prefix = "[Report] " if post.comment_id is None else "[Report Comment] "
    return display_text(prefix + without_references(post.title or "Agent update"), MOST_TITLE_CHARS)


def issue_body(post: SharedPost, marker: str) -> str:
    """The body: the marker first, so that nothing in the post can hide it, then where the post is, then its text."""
    facts = {
        "Community": f"{post.community_name} ({post.community_slug})",
        "Thread": f"{post.thread_id} {post.thread_url}",
        "Comment": post.comment_id or "",
        "Author": post.author,
        "Created": iso(post.created_at),
    }
    lines = [f"- {name}: {_fact(text)}" for name, text in facts.items() if text]
    body = "\n".join([marker, "", "Source:", "", *lines, "", "---", "", without_references(post.body)])
    return _cut(body, MOST_BODY_CHARS)


def without_references(text: str) -> str:
    """The text, with mentions and references to issues broken by an invisible character."""
    text = _ENTITY.sub("&amp;", text).replace("@", f"@{_BREAK}")
    return _REFERENCE.sub(lambda match: match[0] + _BREAK, text)


def _fact(text: str) -> str:
    """Untrusted text on one line, with no markup of a link, a tag or code."""
    line = display_text(without_references(text), _FACT_CHARS)
    return re.sub(r"[\\`*_\[\]<>!|~]", lambda match: f"\\{match[0]}", line)


def _cut(text: str, most: int) -> str:
    if utf16_length(text) <= most:
        return text
    start = text[: most - len(CUT)]
    while (excess := utf16_length(start) - (most - len(CUT))) > 0:
        start = start[: -(excess + 1) // 2]
    return start + CUT
