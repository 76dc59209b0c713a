"""Changing the caps of a deployment: lower ones are in effect at once, higher ones after a delay; never beyond those of its skill.

The use cases behind the command, the API and the page. A process that works on the deployment notices the change within its control
loop, opens nothing from then on, and begins again with the new caps.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core.errors import UserError
from pitboss.core.instant import SECOND_MS, iso
from pitboss.runs.documents import read_given
from pitboss.runs.live_deployment import skill_in_effect
from pitboss.runs.venues import venue_of
from pitboss.skill.document import to_plain
from pitboss.skill.load import read_skill
from pitboss.skill.schema import SkillDocument
from pitboss.skill.tighter_caps import loosened, tightened
from pitboss.store.deployment_caps import CapsChange, add_changes, cancel_pending, caps_state
from pitboss.store.deployments import Deployment

Plain = Mapping[str, Any]
CAPS = "risk."
ATTEMPTS = 5


def check_tightened(before: SkillDocument, after: SkillDocument) -> None:
    """Refuse caps of a deployment that are looser than those of its skill, and changes of anything else."""
    old, new = to_plain(before), to_plain(after)
    others = sorted(name for name in {*old, *new} - {"risk"} if old.get(name) != new.get(name))
    if others:
        raise UserError(
            f"a deployment changes only caps, and {others[0]} is not one", "save another version of the skill"
        )
    names = loosened(old.get("risk") or {}, new.get("risk") or {})
    if names:
        raise UserError(
            f"{names[0]} would be looser than in the skill", "a deployment can only tighten the caps of its skill"
        )


def tightened_skill(read: Callable[[tuple[str, ...]], Mapping[str, Any]], overrides: tuple[str, ...]) -> SkillDocument:
    """The skill that `read` gives with overrides, such as `risk.max_leverage=1`; they can only tighten its caps."""

    skill = _read(read(overrides))
    if overrides:
        check_tightened(_read(read(())), skill)
    return skill


def require_caps(overrides: Sequence[str]) -> None:
    """Refuse overrides of anything but caps."""
    for override in overrides:
        if not override.startswith(CAPS):
            name = override.partition("=")[0][:100]
            raise UserError(f"{name!r} is not a cap", "caps are fields such as risk.max_leverage")


def change_caps(
    workspace: Workspace,
    deployment: Deployment,
    overrides: Sequence[str],
    reason: str,
    user_name: str,
    confirm_raise: Callable[[Sequence[str]], None],
) -> dict[str, Any]:
    """Change caps, such as `risk.max_leverage=1`. What is lower is in effect at once; what is higher is pending for the delay of
    the setting `raise_caps_delay_s`. What was pending before is cancelled.

    `confirm_raise` is called with the fields that are raised, and raises where a person has not confirmed that.
    """
    if deployment.state == "stopped":
        raise UserError("the deployment is stopped", "deploy the skill again")
    require_caps(overrides)
    run = workspace.runs.get(deployment.run_id)
    confirmed: Sequence[str] = ()
    for _ in range(ATTEMPTS):
        newest = caps_state(workspace.database, deployment.id).newest
        plain, _ = skill_in_effect(workspace, run, deployment.id)
        before = _read(plain)
        after = _read(read_given(workspace, plain, None, overrides))
        check_tightened(_read(run.params["skill"]), after)
        old, new = _caps(before), _caps(after)
        if old == new:
            raise UserError("these caps are in effect already", "`pitboss deployments caps` shows them")
        raised = loosened(old, new)
        if raised and list(raised) != list(confirmed):
            confirm_raise(raised)
            confirmed = raised
        lowered = tightened(old, new)
        changes: list[tuple[Plain, int]] = []
        if lowered != old:
            changes.append((_caps(_read({**plain, "risk": lowered})), 0))
        if raised:
            changes.append((new, workspace.settings.raise_caps_delay_s * SECOND_MS))
        if add_changes(workspace.database, deployment.id, newest, changes, reason, user_name):
            return caps_document(workspace, deployment)
    raise UserError("the caps are being changed by somebody else", "look at them, and try again")


def cancel_raise(workspace: Workspace, deployment: Deployment, user_name: str) -> dict[str, Any]:
    """Cancel the raise that is pending."""
    if not cancel_pending(workspace.database, deployment.id, user_name):
        raise UserError("no change of caps is pending", "`pitboss deployments caps` shows those in effect")
    return caps_document(workspace, deployment)


def caps_document(workspace: Workspace, deployment: Deployment) -> dict[str, Any]:
    """The caps in effect, those of the skill, and what is pending."""
    run = workspace.runs.get_or_none(deployment.run_id)
    state = caps_state(workspace.database, deployment.id)
    own: Plain = {} if run is None else run.params["skill"].get("risk") or {}
    caps = own if state.current is None else state.current.caps
    return {
        "deployment_id": deployment.id,
        "caps": caps,
        "skill_caps": own,
        "pending": None if state.pending is None else _pending(caps, state.pending),
    }


def _pending(caps: Plain, change: CapsChange) -> dict[str, Any]:
    before, after = dict(cap_fields(caps)), dict(cap_fields(change.caps))
    names = sorted(name for name in {*before, *after} if before.get(name) != after.get(name))
    return {
        "effective_at": iso(change.effective_at),
        "asked_at": iso(change.asked_at),
        "user_name": change.user_name,
        "reason": change.reason,
        "changes": [{"cap": name, "from": before.get(name), "to": after.get(name)} for name in names],
    }


def cap_fields(caps: Plain, prefix: str = "") -> Iterable[tuple[str, Any]]:
    """Every cap by its path, such as `max_leverage`."""
    for name, value in caps.items():
        if isinstance(value, Mapping):
            yield from cap_fields(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _read(plain: Plain) -> SkillDocument:
    return read_skill(plain, venue_of(plain).skill_type())


def _caps(skill: SkillDocument) -> dict[str, Any]:
    return to_plain(skill).get("risk") or {}
