"""The command group `pitboss community approvals`: transactions that wait for a person, approved or denied one by one."""

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import App, Parameter

from pitboss.terminal import screen
from pitboss.terminal.options import Json, option
from pitboss.terminal.workspace_options import Location

if TYPE_CHECKING:
    from pitboss.store.approval_requests import ApprovalRequest

VENUE = "community"
SHOWN_ID = 12
APP = App(name="approvals", help="Transactions that wait for the approval of a person.")

RequestId = Annotated[str, Parameter(help="Id of a request, or its first characters.")]


@APP.command(name="list")
def list_requests(
    *,
    all_: Annotated[bool, option("--all", "Also requests that are decided, used or expired.")] = False,
    json: Json = False,
    place: Location,
) -> int:
    """List the transactions that wait for your approval, newest first: what each would call, send and with which arguments.

    For example:

        pitboss community approvals list
        pitboss community approvals list --all --json
    """
    with place.existing_workspace() as workspace:
        now = workspace.now()
        requests = workspace.approval_requests.listing(VENUE, every=all_)
    if json:
        screen.put_json([_document(request, now) for request in requests])
        return 0
    if not requests:
        screen.put("there are no requests" if all_ else "nothing waits for an approval")
    for number, request in enumerate(requests):
        if number:
            screen.put()
        _show(request, now)
    return 0


@APP.command
def approve(request_id: RequestId, /, *, json: Json = False, place: Location) -> int:
    """Approve one transaction: the agent's run may send exactly this, once, within the time that the request lasts.

    For example:

        pitboss community approvals approve 3f2a
    """
    return _decide(request_id, True, json, place)


@APP.command
def deny(request_id: RequestId, /, *, json: Json = False, place: Location) -> int:
    """Deny one transaction, or withdraw an approval that is not used yet.

    For example:

        pitboss community approvals deny 3f2a
    """
    return _decide(request_id, False, json, place)


def _decide(request_id: str, is_approved: bool, json: bool, place: Location) -> int:
    with place.existing_workspace() as workspace:
        request = workspace.approval_requests.decide(request_id, is_approved)
        now = workspace.now()
    if json:
        screen.put_json(_document(request, now))
    else:
        _show(request, now)
    return 0


def _state(request: "ApprovalRequest", now: int) -> str:
    return "expired" if request.is_expired(now) else request.state


def _show(request: "ApprovalRequest", now: int) -> None:
    from pitboss.core.instant import iso
    from pitboss.venues.community.approval_content import approval_lines, read_content
    from pitboss.venues.community.plain_text import plain_text

    times = f", {request.times_asked} times" if request.times_asked > 1 else ""
    state = _state(request, now)
    until = f" until {iso(request.expires_at)}" if state in ("pending", "approved", "denied") else ""
    screen.put(f"{request.id[:SHOWN_ID]}  {state}{until}  asked {iso(request.asked_at)}{times}")
    screen.put(f"  by     {plain_text(request.agent)} in run {request.run_id}")
    for line in approval_lines(read_content(request.content)):
        screen.put(f"  {line}")


def _document(request: "ApprovalRequest", now: int) -> dict[str, Any]:
    from pitboss.core import codec
    from pitboss.core.instant import iso

    return {
        "id": request.id,
        "state": _state(request, now),
        "agent": request.agent,
        "run_id": request.run_id,
        "asked_at": iso(request.asked_at),
        "times_asked": request.times_asked,
        "decided_at": None if request.decided_at is None else iso(request.decided_at),
        "expires_at": iso(request.expires_at),
        "transaction": codec.fragment(request.content),
    }
