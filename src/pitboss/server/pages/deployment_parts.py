"""What several pages show of deployments: badges for mode and state, and the table of deployments."""

from collections.abc import Mapping, Sequence
from typing import Any

from pitboss.core.deployment import MODE_MEANINGS
from pitboss.report import figures
from pitboss.report.markup import Html, tag
from pitboss.report.table import LEFT, RIGHT, table
from pitboss.runs.venues import installed, venue_named
from pitboss.server.pages.components import badge, short_time, status_badge
from pitboss.server.pages.skill_links import skill_path

STYLE = "deployments.css"
STATE_TONES = {"running": "ok", "paused": "warn", "halted": "bad", "stopped": ""}
Row = Mapping[str, Any]


def mode_badge(mode: str, state: str | None) -> Html:
    """Where orders go. Of mode live also whether it may open positions now (armed) or not."""
    meaning = {str(name): text for name, text in MODE_MEANINGS.items()}.get(mode, "")
    if mode != "live":
        return tag("span", mode, class_="badge now" if mode == "shadow" else "badge", title=meaning)
    is_armed = state in ("running", None)
    words = "LIVE · armed" if is_armed else "LIVE · disarmed"
    return tag("span", words, class_=f"badge {'armed' if is_armed else 'disarmed'}", title=meaning)


def state_badge(state: str) -> Html:
    """The state of a deployment."""
    return badge(state, STATE_TONES.get(state, ""))


def money(value: object, venue: str) -> str:
    """An amount of an account, in the unit of its venue."""
    unit = venue_named(venue).money if venue in installed() else ""
    return figures.with_unit(value, unit)


def deployment_table(rows: Sequence[Row]) -> Html:
    """Deployments, and runs in the foreground, one in a row."""
    columns = [("Deployment", LEFT), ("Skill", LEFT), ("State", LEFT), ("Mode", LEFT), ("Account", LEFT), ("Process", LEFT), ("Equity", RIGHT), ("Last record", LEFT), ("Reason", LEFT)]  # fmt: skip
    return table("Deployments", columns, [_row(row) for row in rows], style="deployments")


def _row(row: Row) -> tuple[object, ...]:
    is_deployment = not row["foreground"]
    path = f"/deployments/{row['deployment_id']}" if is_deployment else f"/runs/{row['run_id']}"
    version = f" @{row['skill_version']}" if row["skill_version"] else ""
    return (
        tag("a", tag("code", row["deployment_id"][:8]), href=path),
        tag("span", tag("a", row["skill"], href=skill_path(row["skill"])), tag("small", version)),
        state_badge(row["state"]) if is_deployment else status_badge(row["status"]),
        mode_badge(row["mode"], row["state"]),
        row["account"] or figures.NONE,
        ("yes" if row["attended"] else "no") if is_deployment else tag("span", "in the foreground", class_="muted"),
        money(row["equity"], row["venue"]),
        short_time(row["last_record_at"]),
        tag("span", row["reason"] or row["code"] or row["error_text"] or "", class_="why"),
    )
