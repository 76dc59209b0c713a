"""The life of a deployment: its modes, its states, and what each command of a person does to them. Pure.

    running   the agent is asked at every tick, and what the rules allow is executed
    paused    the agent is not asked; the account is still watched and recorded
    halted    a limit or a fault stopped it; nothing opens until a person resumes it with a reason
    stopped   it has ended and never runs again

Only `resume` leads back to `running`; nothing halts or stops by being restarted, and nothing starts again by itself.
"""

from collections.abc import Mapping
from typing import Literal

from pitboss.core.errors import UserError
from pitboss.core.noun import noun

Mode = Literal["paper", "shadow", "live"]
DeploymentState = Literal["running", "paused", "halted", "stopped"]
Command = Literal["pause", "resume", "flatten", "stop", "kill", "snapshot", "acknowledge"]

MODE_MEANINGS: Mapping[Mode, str] = {
    "paper": "live data, simulated fills, no account",
    "shadow": "live data and a live account that is only read; orders are logged and filled on paper",
    "live": "orders are sent to the venue",
}
COMMAND_MEANINGS: Mapping[Command, str] = {
    "pause": "stop asking the agent; positions stay, and their stops stay",
    "resume": "ask the agent again; after a halt a reason is required",
    "flatten": "cancel all orders, close all positions, then pause",
    "stop": "finish the current tick and end the deployment; positions stay",
    "kill": "end the deployment at once, without waiting for the current tick; positions stay",
    "snapshot": "record the account now; nothing changes",
    "acknowledge": "say that you have read the alarm; an alarm that is not acknowledged within a minute halts the deployment",
}
NEEDS_ACCOUNT: frozenset[Command] = frozenset({"flatten", "snapshot"})
"""Commands that only a process with the account can carry out."""
_AFTER: Mapping[Command, Mapping[DeploymentState, DeploymentState]] = {
    "pause": {"running": "paused", "paused": "paused", "halted": "halted"},
    "resume": {"running": "running", "paused": "running", "halted": "running"},
    "flatten": {"running": "paused", "paused": "paused", "halted": "halted"},
    "stop": {"running": "stopped", "paused": "stopped", "halted": "stopped"},
    "kill": {"running": "stopped", "paused": "stopped", "halted": "stopped"},
    "snapshot": {"running": "running", "paused": "paused", "halted": "halted"},
    "acknowledge": {"running": "running", "paused": "paused", "halted": "halted"},
}
READS_ALARM: frozenset[Command] = frozenset({"acknowledge", "resume"})
"""Commands that only a person who has read the alarm sends."""


@noun
class OpenCommand:
    """A command that a person has sent to a deployment and that is not acknowledged yet."""

    id: str
    deployment_id: str
    number: int
    command: Command
    reason: str
    user_name: str


def state_after(state: DeploymentState, command: Command, reason: str) -> DeploymentState:
    """The state after a command. Raises `UserError` if the command is not possible."""
    if state == "stopped":
        raise UserError("the deployment is stopped", "deploy the skill again")
    if command == "resume" and state == "halted" and not reason.strip():
        raise UserError("a halt is lifted only with a reason", "add --reason with what was found and done")
    return _AFTER[command][state]
