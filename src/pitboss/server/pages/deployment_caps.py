"""The caps of a deployment: those in effect, a raise that is pending, and the drawer that changes them. `deployment_caps.js` sends it."""

from collections.abc import Mapping
from typing import Any

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.shell import section
from pitboss.report.table import facts
from pitboss.runs.deployment_caps import cap_fields
from pitboss.server.pages.components import button, dialog, field, form_actions, notice, short_time, text_input
from pitboss.server.pages.deploy_form import cap_input, number_caps
from pitboss.store.deployments import MAX_REASON_CHARS, Deployment

SCRIPT = "deployment_caps.js"
Plain = Mapping[str, Any]
NOTE = (
    "Lower caps are in effect at once, and positions and open orders stay. Higher ones take effect later and can be cancelled until "
    "then. None can be raised beyond the skill's: save another version of the skill and deploy that."
)


def caps_view(details: Plain, may_change: bool) -> Html:
    """The section with the caps in effect and what is pending."""
    pairs = [(name.replace("_", " "), _value(value)) for name, value in cap_fields(details["caps"])]
    content = facts(pairs, "facts caps") if pairs else tag("p", "The skill has no caps of its own.", class_="note")
    may_change = may_change and bool(pairs) and details["state"] != "stopped"
    change = button("Change caps", "change-caps") if may_change else None
    return section(
        "caps", "Caps", join([tag("p", NOTE, class_="note"), _pending(details, may_change), content, change or ""])
    )


def _pending(details: Plain, may_change: bool) -> Html:
    pending = details["pending"]
    if not pending:
        return join([])
    raised = ", ".join(
        f"{each['cap'].replace('_', ' ')} from {_value(each['from'])} to {_value(each['to'])}"
        for each in pending["changes"]
    )
    asked = f", asked for by {pending['user_name']}"
    words = [tag("strong", "Pending. "), f"{raised}, from ", short_time(pending["effective_at"]), f" (UTC) on{asked}. "]
    cancel = [button("Cancel the raise", "cancel-raise")] if may_change else []
    return notice(*words, pending["reason"], " ", *cancel)


def caps_drawer(details: Plain, deployment: Deployment, asks_password: bool) -> Html:
    """The form that changes caps. Whether something is raised is decided by the server, which then asks for the rest."""
    limits = dict(cap_fields(details["skill_caps"], "risk."))
    fields = [
        cap_input(
            "change", path, value, f"The skill has {'no limit' if limits.get(path) is None else _value(limits[path])}."
        )
        for path, value in number_caps(details["caps"])
    ]
    confirmations: list[Html] = []
    if deployment.mode == "live":
        control = text_input("caps-confirm", spellcheck="false", autocapitalize="off")
        confirmations.append(field("caps-confirm", f"Type {deployment.account} to raise a cap", control))
    if asks_password:
        control = text_input("caps-password", type="password", autocomplete="current-password")
        confirmations.append(field("caps-password", "Your password, to raise a cap", control))
    form = tag(
        "form",
        tag("p", "Empty: as it is now.", class_="wide note"),
        *fields,
        field("caps-reason", "Reason", text_input("caps-reason", maxlength=MAX_REASON_CHARS), "It is recorded.", wide=True),
        *confirmations,
        tag("p", id="caps-problem", class_="wide notice bad", role="alert", hidden=True),
        id="caps-form",
        class_="form",
    )  # fmt: skip
    return dialog(
        "caps-dialog", "Change caps", form, actions=form_actions("Change", "caps-form", "caps-send"), drawer=True
    )


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or figures.NONE
    return figures.NONE if value is None else str(value)
