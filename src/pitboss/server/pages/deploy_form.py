"""The drawer on the page of a skill that deploys it: mode, account, tighter caps, limits on cost. `deploy.js` sends it."""

from collections.abc import Iterable, Mapping
from typing import Any

from pitboss.bootstrap.trading_accounts import read_accounts
from pitboss.bootstrap.workspace import Workspace
from pitboss.core.deployment import MODE_MEANINGS
from pitboss.core.errors import UserError
from pitboss.report.markup import Html, join, tag
from pitboss.report.source import number
from pitboss.runs.documents import read_given
from pitboss.runs.model_list import suggested_models
from pitboss.runs.venues import venue_of
from pitboss.server.pages.components import dialog, field, form_actions, select, text_input
from pitboss.store.retry import Unreachable
from pitboss.store.skills import StoredSkill

SCRIPT = "deploy.js"
MODELS, ACCOUNTS = "deploy-models", "deploy-accounts"
Plain = Mapping[str, Any]


def deploy_form(workspace: Workspace, stored: StoredSkill, asks_password: bool) -> Html | None:
    """The drawer; None for a skill that cannot be deployed: its venue has no live modes, or its content is not valid."""
    reference = f"{stored.name}@{stored.version}"
    try:
        plain = read_given(workspace, reference)
        venue = venue_of(plain)
    except Unreachable:
        raise
    except UserError:
        return None
    if not venue.live_modes:
        return None
    accounts = _accounts(workspace, venue.name)
    modes = [(mode, f"{mode}: {MODE_MEANINGS[mode]}") for mode in venue.live_modes]
    caps = list(number_caps(plain.get("risk") or {}))
    models = [tag("option", about, value=model) for model, about in suggested_models(workspace.home)]
    form = tag(
        "form",
        field("deploy-mode", "Mode", select("deploy-mode", modes), wide=True),
        _when("shadow live", field("deploy-account", "Account", _account_control(accounts), _account_hint(accounts))),
        _when(
            "paper",
            field("deploy-equity", "Paper money", text_input("deploy-equity", "10000", inputmode="decimal"), "In USD."),
        ),
        field("deploy-model", "Model", text_input("deploy-model", list=MODELS, placeholder=str(plain.get("model") or ""))),
        field(
            "deploy-daily",
            "Most a day for the model",
            text_input("deploy-daily", inputmode="decimal", placeholder="no limit"),
            "In USD, by UTC day. Then the agent holds.",
        ),
        field("deploy-total", "Most in all", text_input("deploy-total", inputmode="decimal", placeholder="no limit"), "In USD."),
        _caps(caps),
        _when("live", _confirmation(asks_password), style="wide stack"),
        tag("p", id="deploy-problem", class_="wide notice bad", role="alert", hidden=True),
        tag("datalist", *models, id=MODELS),
        id="deploy-form",
        class_="form",
        data_skill=reference,
    )  # fmt: skip
    return dialog(
        "deploy",
        f"Deploy {stored.name}, version {stored.version}",
        form,
        actions=form_actions("Deploy", "deploy-form", "deploy-send"),
        drawer=True,
    )


def _when(modes: str, content: Html, style: str = "") -> Html:
    """Content that is shown in some modes only."""
    return tag("div", content, data_modes=modes, class_=style or None, hidden="paper" not in modes)


def _accounts(workspace: Workspace, venue: str) -> list[tuple[str, str]]:
    try:
        accounts = read_accounts(workspace.home)
    except UserError:
        return []
    return [
        (name, f"{name} ({account.network})")
        for name, account in sorted(accounts.items())
        if account.venue == venue and workspace.only in (None, account.owner)
    ]


def _account_control(accounts: list[tuple[str, str]]) -> Html:
    """A name to type, because what a venue calls an account is its own business; those that are stored are suggested."""
    only = accounts[0][0] if len(accounts) == 1 else ""
    options = tag("datalist", *[tag("option", about, value=name) for name, about in accounts], id=ACCOUNTS)
    return join([text_input("deploy-account", only, list=ACCOUNTS, maxlength=64, spellcheck="false"), options])


def _account_hint(accounts: list[tuple[str, str]]) -> str:
    if accounts:
        return f"Accounts: {', '.join(name for name, _ in accounts)}."
    return "No account is stored: `pitboss live accounts add` adds one."


def _confirmation(asks_password: bool) -> Html:
    warning = tag(
        "p", "Real orders are sent to the venue, within the caps, until it is paused or stopped.", class_="notice bad"
    )
    typed = field(
        "deploy-confirm",
        "Type the name of the account to confirm",
        text_input("deploy-confirm", spellcheck="false", autocapitalize="off"),
    )
    password = field("deploy-password", "Your password", text_input("deploy-password", type="password", autocomplete="current-password"))  # fmt: skip
    return join([warning, typed, *([password] if asks_password else [])])


def _caps(caps: list[tuple[str, Any]]) -> Html | None:
    """One field for each cap that is a number, or that is not set; empty means that of the skill."""
    if not caps:
        return None
    fields = [
        cap_input("cap", path, value, "or more" if path.rpartition(".")[2].startswith("min_") else "or less")
        for path, value in caps
    ]
    note = "Empty: as in the skill. A deployment can only tighten its caps: saved as another version of the skill."
    return tag(
        "details",
        tag("summary", "Tighter caps"),
        tag("p", note, class_="note"),
        tag("div", *fields, class_="form"),
        class_="wide deploy-caps",
    )


def cap_input(form: str, path: str, value: Any, hint: str) -> Html:
    """The field for one cap, with its value as a placeholder."""
    name = f"{form}-{path}"
    shown = "no limit" if value is None else str(value)
    control = text_input(name, inputmode="decimal", placeholder=shown, data_cap=path)
    return field(name, path.removeprefix("risk.").replace("_", " "), control, hint)


def number_caps(risk: Plain, prefix: str = "risk.") -> Iterable[tuple[str, Any]]:
    """The caps that are numbers, or that are not set, by their path."""
    for name, value in risk.items():
        if isinstance(value, Mapping):
            yield from number_caps(value, f"{prefix}{name}.")
        elif value is None or number(value) is not None:
            yield f"{prefix}{name}", value
