"""The form of a skill: a control for every field of a venue's schema, tools with their hints, MCP servers.

Rendered without values; `editor.js` fills it from the text. A control names its field by `data-path` and its kind by `data-kind`.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pitboss.report.figures import plural
from pitboss.report.markup import Html, join, tag
from pitboss.runs.venue import Venue
from pitboss.server.pages.components import badge, select, text_input
from pitboss.skill.form_fields import FormField, FormSection, form_of

MODELS = "model-names"
"""The id of the list of model names."""
HIDDEN_BELOW = ("model_settings",)
"""Sections that are folded at first: most skills leave them out."""
REACHES = {"live_only": "only the present: not in backtests", "recorded": "reads recorded facts"}


def skill_form(venue: Venue, tools: Iterable[Mapping[str, Any]], servers: Iterable[Mapping[str, Any]]) -> Html:
    """The whole form of a venue's documents."""
    form = form_of(venue.skill_type())
    decisions = {name for name, tool in venue.tools().items() if tool.decides}
    offered = [tool for tool in tools if tool["name"] not in decisions]
    parts = _Controls(offered, list(servers), sorted(decisions))
    general = FormSection("", "", form.fields)
    return tag(
        "form",
        parts.section(general),
        *[parts.section(section) for section in form.sections],
        id="skill-form",
        data_venue=venue.name,
        autocomplete="off",
        novalidate=True,
    )


class _Controls:
    """Renders fields; holds the tools and servers that two kinds of fields choose from."""

    def __init__(self, tools: list[Mapping[str, Any]], servers: list[Mapping[str, Any]], decisions: list[str]) -> None:
        self._tools = tools
        self._servers = servers
        self._decisions = decisions

    def section(self, section: FormSection) -> Html:
        content = tag("div", *[self._field(field) for field in section.fields], class_="form")
        inner = [
            tag(
                "div",
                tag("h4", part.label),
                tag("p", part.help, class_="hint"),
                tag("div", *[self._field(field) for field in part.fields], class_="form"),
                class_="part",
            )
            for part in section.sections
        ]
        name = section.path or "general"
        head = tag("summary", tag("span", section.label, class_="name"), tag("span", class_="count", hidden=True))
        about = tag("p", section.help, class_="hint") if section.help else None
        is_open = name not in HIDDEN_BELOW
        return tag("details", head, about, content, *inner, class_="part", data_section=name, open=is_open)

    def _field(self, field: FormField) -> Html:
        group = field.kind in ("choices", "tools", "servers")
        wide = group or field.kind in ("prose", "yaml")
        label_id = f"{field.path}-label"
        label = (
            tag("span", field.label, class_="label-text", id=label_id)
            if group
            else tag("label", field.label, for_=field.path)
        )
        reset = tag(
            "button", "reset", type="button", class_="reset", data_reset=field.path, hidden=True,
            title="Remove it from the document and use the default", aria_label=f"Reset {field.label}",
        )  # fmt: skip
        note = _note(field)
        return tag(
            "div",
            tag("div", label, tag("span", note, class_="note-text") if note else None, reset, class_="label-row"),
            self._control(field, label_id),
            tag("span", field.help, class_="hint", id=f"{field.path}-hint") if field.help else None,
            tag("span", class_="error", id=f"{field.path}-error", hidden=True),
            class_="field wide" if wide else "field",
            data_field=field.path,
        )

    def _control(self, field: FormField, label_id: str) -> Html:
        common: dict[str, object] = {
            "data_path": field.path,
            "data_kind": field.kind,
            "aria_describedby": f"{field.path}-hint {field.path}-error",
            "aria_required": "true" if field.required else None,
        }
        if field.kind == "choice":
            unset = "Choose…" if field.required else f"Default: {field.default}" if field.default else "Not set"
            options = [("", unset), *((choice, choice.replace("_", " ")) for choice in field.choices)]
            return select(field.path, options, "", **common)
        if field.kind == "flag":
            text = f"Default: {'yes' if field.default else 'no'}"
            return select(field.path, [("", text), ("true", "yes"), ("false", "no")], "", **common)
        if field.kind == "choices":
            boxes = [_box(choice, choice) for choice in field.choices]
            default = json.dumps(field.default) if field.default else None
            return tag(
                "div", *boxes, role="group", aria_labelledby=label_id, class_="boxes", data_default=default, **common
            )
        if field.kind == "tools":
            default = json.dumps(field.default) if field.default else None
            return tag("div", self._tool_list(), role="group", aria_labelledby=label_id, data_default=default, **common)
        if field.kind == "servers":
            return tag("div", self._server_list(), role="group", aria_labelledby=label_id, **common)
        if field.kind in ("prose", "yaml", "names"):
            rows = {"prose": 4 if field.path != "description" else 2, "yaml": 2, "names": 1}[field.kind]
            return tag(
                "textarea", id=field.path, name=field.path, rows=rows, spellcheck="true" if field.kind == "prose" else "false",
                placeholder=_placeholder(field), class_="code" if field.kind == "yaml" else None, **common,
            )  # fmt: skip
        numeric = (
            {"inputmode": "decimal" if field.kind == "number" else "numeric"}
            if field.kind in ("number", "whole")
            else {}
        )
        listed = MODELS if field.path == "model" else f"{field.path}-list" if field.kind == "suggestion" else None
        control = text_input(
            field.path, placeholder=_placeholder(field), list=listed, maxlength=field.max_length, **numeric, **common
        )
        if field.kind != "suggestion":
            return control
        options = [tag("option", value=choice) for choice in field.choices]
        return join([control, tag("datalist", *options, id=listed)])

    def _tool_list(self) -> Html:
        if not self._tools:
            return tag("p", "This venue has no tools to choose from.", class_="hint")
        always = f"{', '.join(self._decisions)} is always offered." if self._decisions else ""
        return join(
            [tag("p", always, class_="hint") if always else "", tag("ul", *map(_tool, self._tools), class_="picks")]
        )

    def _server_list(self) -> Html:
        if not self._servers:
            return tag("p", "There are no MCP servers in the catalogue.", class_="hint")
        return tag("ul", *map(_server, self._servers), class_="picks")


def _box(value: str, text: object, *more: object, **attributes: object) -> Html:
    return tag(
        "label", tag("input", type="checkbox", value=value, **attributes), tag("span", text, *more), class_="box"
    )


def _tool(tool: Mapping[str, Any]) -> Html:
    reach = REACHES.get(str(tool["reach"]))
    head = _box(
        tool["name"],
        tag("b", tool["name"]),
        " ",
        badge(str(tool["category"]).replace("_", " ")),
        *([" ", badge(reach, "warn" if tool["reach"] == "live_only" else "")] if reach else []),
        tag("span", tool["description"], class_="about"),
        tag("span", tool["ui_hint"], class_="hint") if tool["ui_hint"] else None,
    )
    return tag("li", head, _schema(tool))


def _schema(tool: Mapping[str, Any]) -> Html:
    properties = tool["input_schema"].get("properties", {})
    names = ", ".join(properties) or "nothing"
    example = (
        tag("p", "Example: ", tag("code", json.dumps(tool["example"], default=str))) if tool.get("example") else None
    )
    schema = tag("pre", json.dumps(tool["input_schema"], indent=2, default=str))
    return tag("details", tag("summary", f"takes {names}"), example, schema)


def _server(server: Mapping[str, Any]) -> Html:
    key = server["key"]
    faults = [
        *([str(server["unusable"])] if server["unusable"] else []),
        *([f"needs the key {key['name']}"] if key and not key["present"] else []),
    ]
    head = _box(
        server["id"],
        tag("b", server["id"]),
        " ",
        badge(str(server["transport"])),
        tag("span", server["title"], class_="about"),
        *(tag("span", fault, class_="hint fault") for fault in faults),
        data_server=server["id"],
    )
    tones = {"approved": "ok", "changed": "warn"}
    tools = [
        _box(
            str(tool["name"]), tag("code", tool["name"]), " ", badge(str(tool["state"]), tones.get(str(tool["state"]), "")),
            data_server_tool=server["id"],
        )
        for tool in server["tools"]
    ]  # fmt: skip
    note = tag("p", server["note"], class_="hint") if server["note"] else None
    return tag(
        "li", head, tag("details", tag("summary", plural(len(tools), "tool")), note, tag("div", *tools, class_="boxes"))
    )


def _note(field: FormField) -> str:
    """What a value must be, in a few characters."""
    if field.required:
        return "required"
    if field.kind in ("number", "whole") and field.low is not None and field.high is not None and field.high < 10**6:
        return f"{field.low:,} – {field.high:,}"
    return ""


def _placeholder(field: FormField) -> str | None:
    if field.kind == "names":
        return "one per line, or separated by commas"
    if field.kind == "yaml":
        return "YAML, for example [new_news, {move_atr: 2}]" if field.path.endswith("wake_when") else "YAML"
    return None if field.default in (None, "") else str(field.default)
