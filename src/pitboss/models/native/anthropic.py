"""Anthropic's messages interface behind the Model port, with its cache marks on the system prompt and the tools."""

from typing import Any, cast

import httpx2
from anthropic import AsyncAnthropic
from pydantic_ai.models import Model
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.profiles.anthropic import ANTHROPIC_THINKING_BUDGET_MAP
from pydantic_ai.providers.anthropic import AnthropicProvider

from pitboss.core.ports import ModelRequest
from pitboss.models.native import assemble_stream as whole
from pitboss.models.native import normalise as tidy
from pitboss.models.native.adapter import Native, max_tokens, reasons
from pitboss.models.native.encode import Ability
from pitboss.models.native.gate import read

ADDRESS = "https://api.anthropic.com"
LEAST_BUDGET = 1_024
"""The smallest thinking budget the provider takes."""


class AnthropicNative(Native):
    """`anthropic/…`."""

    def _read(self, body: object) -> dict[str, Any]:
        return read(body, tidy.anthropic, whole.anthropic)

    def _open(self, key: str, http: httpx2.AsyncClient) -> Model[Any]:
        client = AsyncAnthropic(
            api_key=key,
            base_url=self._base_url or ADDRESS,  # always given, so that no variable of the environment decides it
            http_client=http,
            timeout=self._timeout_s,
            max_retries=0,
            open_telemetry=False,
        )
        # Names are written with dots as well as dashes; on the wire there are only dashes.
        return AnthropicModel(self.model.replace(".", "-"), provider=AnthropicProvider(anthropic_client=client))

    def _ability(self, model: Model[Any], request: ModelRequest) -> Ability:
        profile = cast("dict[str, Any]", model.profile)
        schemas = bool(profile.get("supports_json_schema_output"))
        thinks = reasons(request.settings) not in ("", "none") and self._thinking(model, request) is not None
        forces = bool(profile.get("supports_forced_tool_choice", True))
        if thinks:
            # With budgeted thinking a forced call is an error; with adaptive thinking it silently ends the thinking, which
            # is still better than an answer in words.
            adaptive = bool(profile.get("anthropic_supports_adaptive_thinking"))
            forces = forces and adaptive and not schemas
        return Ability(forces=forces, schemas=schemas, tools_beside_schema=True)

    def _settings(self, model: Model[Any], request: ModelRequest) -> dict[str, Any]:
        profile = cast("dict[str, Any]", model.profile)
        settings: dict[str, Any] = {"anthropic_cache_instructions": True, "anthropic_cache_tool_definitions": True}
        level = reasons(request.settings)
        thinking = self._thinking(model, request)
        if level == "none":
            settings["thinking"] = False
        elif thinking is not None:
            settings.update(thinking)
        # Models that think take no temperature, and the newest take none at all.
        warm = thinking is None and not profile.get("anthropic_disallows_sampling_settings")
        if warm and "temperature" in request.settings:
            # The provider's scale ends at 1.
            settings["temperature"] = min(1.0, float(request.settings["temperature"]))
        return settings

    def _thinking(self, model: Model[Any], request: ModelRequest) -> dict[str, Any] | None:
        """How a level of reasoning is asked for; None where it is not, or where the bound of tokens leaves no room."""
        level = reasons(request.settings)
        profile = cast("dict[str, Any]", model.profile)
        if level in ("", "none") or not profile.get("supports_thinking"):
            return None
        if profile.get("anthropic_supports_adaptive_thinking"):
            return {"thinking": level}
        # The budget is part of max_tokens and must leave room for the answer.
        budget = min(
            ANTHROPIC_THINKING_BUDGET_MAP.get(cast("Any", level), LEAST_BUDGET), max_tokens(request.settings) // 2
        )
        if budget < LEAST_BUDGET:
            return None
        return {"anthropic_thinking": {"type": "enabled", "budget_tokens": budget}}
