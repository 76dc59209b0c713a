"""Simpler dialects for servers that reject a form of request. What a server accepts differs from model to model."""

import re
from dataclasses import replace

from pitboss.core.ports import ModelRequest
from pitboss.models.providers import Dialect

_NO_SYSTEM = re.compile(r"system (role|message|instruction|prompt)|role\b.{0,80}\b(system|developer)")
"""Complaints about a system turn: early reasoning models, and small models whose templates have none."""


def simpler_dialect(dialect: Dialect, request: ModelRequest, message: str) -> Dialect | None:
    """A simpler dialect for a server that rejected this one with a message; None where there is none."""
    text = message.lower().replace("_", " ")
    if request.answer == "schema" and dialect.schema != "none" and ("response format" in text or "json schema" in text):
        return replace(dialect, schema="none")
    if request.must_call is not None and dialect.force != "none" and ("tool choice" in text or "toolchoice" in text):
        return replace(dialect, force={"function": "required"}.get(dialect.force, "none"))
    if request.system and dialect.system != "user" and _NO_SYSTEM.search(text):
        return replace(dialect, system="user")
    if dialect.max_tokens == "max_tokens" and "max completion tokens" in text:
        return replace(dialect, max_tokens="max_completion_tokens")
    if dialect.max_tokens == "max_completion_tokens" and "max completion tokens" in text:
        return replace(dialect, max_tokens="max_tokens")
    return None
