"""The parts that several pages of the app use: the head of a page, buttons, fields, badges, dialogs, empty states."""

from collections.abc import Iterable, Sequence

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag

STATUS_TONES = {
    "complete": "ok",
    "error": "bad",
    "cancelled": "warn",
    "queued": "",
    "loading": "now",
    "running": "now",
    "computing_metrics": "now",
}


def page_head(title: str, *actions: Html, about: str = "") -> Html:
    """The heading of a page with what can be done there."""
    return tag(
        "div",
        tag("h1", title),
        tag("div", *actions, class_="actions") if actions else None,
        tag("p", about) if about else None,
        class_="page-head",
    )


def link_button(text: str, href: str, tone: str = "") -> Html:
    """A link that looks like a button. `tone` is `primary`, `danger` or `quiet`."""
    return tag("a", text, href=href, class_=f"button {tone}".strip())


def button(text: str, action: str, tone: str = "", **attributes: object) -> Html:
    """A button that a script reacts to by its `data-do`. `tone` is `primary`, `danger` or `quiet`."""
    return tag("button", text, type="button", data_do=action, class_=tone or None, **attributes)


def field(name: str, label: str, control: Html, hint: str = "", *, wide: bool = False, check: bool = False) -> Html:
    """A control with its label; the control has `id` and `name` equal to `name`, and scripts fill in the error below it."""
    style = " ".join(["field", *(["wide"] if wide else []), *(["check"] if check else [])])
    text = tag("label", label, for_=name)
    return tag(
        "div",
        *((control, text) if check else (text, control)),
        tag("span", hint, class_="hint", id=f"{name}-hint") if hint else None,
        tag("span", class_="error", id=f"{name}-error", hidden=True),
        class_=style,
    )


def text_input(name: str, value: object = "", **attributes: object) -> Html:
    """A one-line input."""
    return tag("input", id=name, name=name, value=value, **{"type": "text", "autocomplete": "off", **attributes})


def select(name: str, options: Iterable[tuple[str, str]], selected: str = "", **attributes: object) -> Html:
    """A choice of one; `options` are values with their texts."""
    elements = [tag("option", text, value=value, selected=value == selected) for value, text in options]
    return tag("select", *elements, id=name, name=name, **attributes)


def badge(text: str, tone: str = "") -> Html:
    """A short state. `tone` is `ok`, `bad`, `warn`, `now` or empty."""
    return tag("span", text, class_=f"badge {tone}".strip())


def status_badge(status: str) -> Html:
    """The state of a run."""
    return badge(status.replace("_", " "), STATUS_TONES.get(status, ""))


def short_time(at: str | None, missing: str = figures.NONE) -> object:
    """An ISO time without seconds."""
    return missing if at is None else tag("time", at[:16].replace("T", " "), datetime=at)


def notice(*content: object, tone: str = "") -> Html:
    """A remark that should not be missed. `tone` is `ok`, `bad` or empty for a warning."""
    return tag("div", *content, class_=f"notice {tone}".strip(), role="status")


def empty_state(title: str, text: object, *actions: Html) -> Html:
    """What is shown where there is nothing yet, with what to do about it."""
    return tag("div", tag("h3", title), tag("p", text), join(actions), class_="empty")


def dialog(name: str, title: str, *content: object, actions: Sequence[Html] = (), drawer: bool = False) -> Html:
    """A dialog that a script opens with `showModal()`; a drawer stands at the right side."""
    return tag(
        "dialog",
        tag("h2", title, id=f"{name}-title"),
        tag("button", "×", type="button", data_do="close-dialog", class_="close quiet", aria_label="Close"),
        tag("div", *content, class_="content"),
        tag("div", *actions, class_="actions") if actions else None,
        id=name,
        class_="drawer" if drawer else None,
        aria_labelledby=f"{name}-title",
    )


def form_actions(label: str, form: str, send: str | None = None) -> list[Html]:
    """The buttons of a dialog with a form: cancel, and one with this label that submits the form; `send` is its id."""
    submit = tag("button", label, type="submit", form=form, class_="primary", id=send)
    return [button("Cancel", "close-dialog"), submit]
