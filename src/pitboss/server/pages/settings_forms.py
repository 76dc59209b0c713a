"""The forms and buttons of the settings page, which `settings.js` sends to the API."""

from collections.abc import Sequence

from pitboss.core.role import ROLES, Role
from pitboss.report.markup import Html, tag
from pitboss.server.pages.components import select

ROLE_TEXTS: dict[Role, str] = {
    "viewer": "viewer: reads",
    "author": "author: writes skills, runs backtests",
    "operator": "operator: controls deployments, approves",
    "admin": "admin: manages users, keys, settings",
}


def send_form(
    request: str, submit: str, *fields: object, after: str = "reload", done: str = "", style: str = "form"
) -> Html:
    """A form whose fields are sent as JSON. `request` is a method and a path, in which `{name}` stands for a field; `after` is
    what happens then: `reload`, or `token` for the new token.
    """
    return tag(
        "form",
        *fields,
        tag("div", tag("button", submit, type="submit", class_="primary"), class_="wide submit"),
        class_=style,
        data_send=request,
        data_after=after,
        data_done=done or None,
    )


def send_button(
    text: str, request: str, question: str = "", tone: str = "", body: str = "", after: str = "reload"
) -> Html:
    """A button that sends a request, after a question if there is one. `body` is JSON."""
    return tag(
        "button",
        text,
        type="button",
        class_=tone or None,
        data_send=request,
        data_question=question or None,
        data_body=body or None,
        data_after=after,
    )


def role_select(name: str, roles: Sequence[Role] = ROLES, selected: Role = "viewer", **attributes: object) -> Html:
    """A choice of a role."""
    return select(name, [(role, ROLE_TEXTS[role]) for role in roles], selected, **attributes)
