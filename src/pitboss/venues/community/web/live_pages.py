"""The pages that follow live runs: transactions that wait for an approval, and the communication log."""

from pitboss.bootstrap.redact import REDACTOR
from pitboss.core.instant import Instant
from pitboss.live.board import display_text
from pitboss.report.markup import Html, join, tag
from pitboss.runs.web_section import WebAction, WebRequest
from pitboss.store.approval_requests import ApprovalRequest
from pitboss.venues.community.approval_content import approval_lines, read_content
from pitboss.venues.community.communication_log import DIRECTIONS, Direction, log_folder
from pitboss.venues.community.log_reader import EntryFilter, LogEntry, LogPage, read_newest
from pitboss.venues.community.plain_text import plain_text
from pitboss.venues.community.web.parts import NOT_YOURS, PATH, badge, card, empty, page, sees_forum, time

VENUE = "community"
SHOWN_ID, SHOWN_CHARS, MOST_ENTRIES = 12, 2_000, 100
MOST_BYTES = 16 << 20
"""How much of the log is read for one page: it is read again whenever something happens."""
NOT_SEARCHED = f"Only the newest {MOST_BYTES >> 20} MB of the log were searched, not older entries. `pitboss community log` searches all of it."
ARROWS = {"agent_to_runner": "agent → runner", "runner_to_agent": "runner → agent"}


def approvals(request: WebRequest) -> Html:
    """Transactions that wait for a person, and what was decided."""
    now = request.workspace.now()
    listed = request.workspace.approval_requests.listing(VENUE, every=True)
    waiting = [one for one in listed if one.state == "pending" and not one.is_expired(now)]
    decided = [one for one in listed if one not in waiting]
    open_ = [_request(one, now, request.can_operate) for one in waiting]
    content = [card("Waiting", *open_) if open_ else empty("Nothing waits for an approval", _nothing(bool(decided)))]
    if decided:
        content.append(card("Decided", *[_request(one, now, request.can_operate) for one in decided]))
    about = "An approval lets the run of the agent send exactly this transaction, once, until it expires."
    return page("Approvals", "/approvals", *content, about=about)


def _nothing(has_decided: bool) -> str:
    if has_decided:
        return "What was decided is below."
    return "A live run asks here before it sends a transaction that its skill does not allow by itself."


def _request(request: ApprovalRequest, now: Instant, can_operate: bool) -> Html:
    state = "expired" if request.is_expired(now) else request.state
    times = f", asked {request.times_asked} times" if request.times_asked > 1 else ""
    lasts = state in ("pending", "approved", "denied")
    head = [
        tag("code", request.id[:SHOWN_ID]),
        badge(state),
        time(request.asked_at),
        tag("span", "until ", time(request.expires_at), class_="muted") if lasts else "",
    ]
    lines = [line.partition(" ") for line in approval_lines(read_content(request.content))]
    pairs = [tag("div", tag("dt", name), tag("dd", value.strip())) for name, _, value in lines]
    by = tag(
        "p",
        f"{plain_text(request.agent)} in run ",
        tag("a", request.run_id, href=f"/runs/{request.run_id}"),
        times,
        class_="note",
    )
    buttons = []
    if can_operate and state == "pending":
        buttons = [_button("Deny", "deny", request), _button("Approve", "approve", request, "primary")]
    elif can_operate and state == "approved":
        buttons = [_button("Withdraw", "deny", request, "danger")]
    actions = tag("div", *buttons, class_="actions") if buttons else ""
    return tag("article", tag("header", *head), by, tag("dl", *pairs, class_="transaction"), actions, class_="post")


def _button(text: str, action: str, request: ApprovalRequest, tone: str = "") -> Html:
    return tag(
        "button",
        text,
        type="button",
        class_=tone or None,
        data_venue=VENUE,
        data_action=action,
        data_target=request.id,
        data_confirm="Let the agent send this transaction?" if action == "approve" else None,
        id=f"{action}-{request.id}",
    )


def _approve(request: WebRequest, target: str) -> str:
    return f"approved {request.workspace.approval_requests.decide(target, True).id[:SHOWN_ID]}"


def _deny(request: WebRequest, target: str) -> str:
    return f"denied {request.workspace.approval_requests.decide(target, False).id[:SHOWN_ID]}"


ACTIONS = (WebAction("approve", _approve), WebAction("deny", _deny))


def log(request: WebRequest) -> Html:
    """What agents and their runners said to each other, newest first."""
    if not sees_forum(request):
        return page("Log", "/log", NOT_YOURS)
    values = request.values
    chosen = values.get("direction")
    direction: Direction | None = next((one for one in DIRECTIONS if one == chosen), None)
    selected = EntryFilter(values.get("agent", ""), direction, values.get("action", ""))
    newest = read_newest(log_folder(request.workspace.home), selected, MOST_ENTRIES, MOST_BYTES)
    is_filtered = any(values.get(name) for name in ("agent", "direction", "action"))
    shown = [_entry(entry) for entry in newest.entries]
    rest = "" if newest.has_searched_all else tag("p", NOT_SEARCHED, class_="note")
    nothing = (
        join([rest, empty("No entry matches", tag("a", "Show all", href=f"{PATH}/log"))])
        if is_filtered or rest
        else empty(
            "Nothing was logged yet", "A live run of an agent writes here what it sends and is sent, for 14 days."
        )
    )
    content = card("Entries", _filters(newest, selected, is_filtered), *shown, rest) if shown else nothing
    return page(
        "Log", "/log", content, about="The communication of agents and their runners, newest first. It follows live."
    )


def _filters(newest: LogPage, selected: EntryFilter, is_filtered: bool) -> Html:
    links = [
        tag(
            "a",
            ARROWS[one],
            href=f"{PATH}/log?direction={one}",
            aria_current="page" if selected.direction == one else None,
        )
        for one in DIRECTIONS
    ]
    links.insert(0, tag("a", "all", href=f"{PATH}/log", aria_current=None if is_filtered else "page"))
    number = len(newest.entries)
    count = f"{number} newest" if number == MOST_ENTRIES else f"{number}"
    return tag("p", join(links, " · "), f" ({count})", class_="note")


def _entry(entry: LogEntry) -> Html:
    head = [
        time(entry.created_at, seconds=True),
        badge(ARROWS[entry.direction], "now" if entry.direction == "agent_to_runner" else ""),
        *[badge(plain_text(kind, 40)) for kind in entry.action_types[:8]],
        tag("span", f"{plain_text(entry.agent_id, 60)} · {entry.instance_id}", class_="muted"),
    ]
    content = display_text(REDACTOR.redact(entry.content), SHOWN_CHARS)
    return tag("article", tag("header", *head), tag("div", content, class_="post-body log-content"), class_="post")
