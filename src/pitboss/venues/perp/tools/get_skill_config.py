"""Tool `get_skill_config`: the skill of a run: strategy, context, caps, tools.

A skill should contain no secrets; text that looks like one is masked.
"""

import re
from collections.abc import Mapping
from typing import Any

from pitboss.core import codec
from pitboss.prompt import render
from pitboss.skill.digest import skill_digest
from pitboss.skill.document import to_plain
from pitboss.tools.define import ToolContext, define_tool

PARTS = ("strategy", "context", "risk", "tools", "schedule", "model_settings")
MOST_CHARS = 1_500
"""Maximum characters of one text of the author."""

SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": [],
    "properties": {
        "part": {"type": "string", "enum": ["all", *PARTS], "description": "Only this part; all when left out."}
    },
}

_SECRET = re.compile(
    r"\b(?:sk|pk|rk|xox[a-z]|ghp|gho|glpat|AKIA|AIza|eyJ)[-_A-Za-z0-9.]{16,}|\b(?:0x)?[0-9a-fA-F]{64}\b"
    r"|(?i:\b(?:bearer|api[_ -]?key|password|secret|token)\s*[:=]\s*)\S{8,}"
)
"""Matches providers' keys, private keys, and values labelled as secret."""


async def look(context: ToolContext, arguments: Mapping[str, Any]) -> str:
    """Return one JSON object."""
    skill = context.observation.skill
    document = to_plain(skill)
    part = arguments.get("part", "all")
    if part != "all":
        document = {part: document[part]}
    answer = {**_masked(document), "digest": skill_digest(skill)}
    return codec.dumps(codec.number_fragments(answer)).decode()


def _masked(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name: _masked(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_masked(item) for item in value]
    if not isinstance(value, str):
        return value
    text = _SECRET.sub("[hidden]", value)
    return text if len(text) <= 64 and "<" not in text else render.fence(text, MOST_CHARS)


TOOL = define_tool(
    name="get_skill_config",
    category="introspection",
    description="Get the skill that the run works by: strategy, context, risk caps, tools, schedule.",
    ui_hint="To compare what an agent did with what it was told to do.",
    modes=("read",),
    schema=SCHEMA,
    example={"part": "risk"},
    look=look,
)
