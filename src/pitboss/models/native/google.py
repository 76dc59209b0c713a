"""Google's generateContent interface behind the Model port.

Its models cache repeated beginnings of a prompt by themselves; the system prompt and the tools come first and stay the
same from tick to tick, so nothing has to be asked for.
"""

from typing import Any, cast

import httpx2
from google.genai import Client
from google.genai.types import HttpOptions
from pydantic_ai.models import Model
from pydantic_ai.models.google import GoogleModel
from pydantic_ai.providers.google import GoogleProvider

from pitboss.core.ports import ModelRequest
from pitboss.models.native import assemble_stream as whole
from pitboss.models.native import normalise as tidy
from pitboss.models.native.adapter import Native, max_tokens, reasons, trust
from pitboss.models.native.encode import Ability
from pitboss.models.native.gate import read

ADDRESS = "https://generativelanguage.googleapis.com/"
VERSION = "v1beta"
BUDGETS = {"minimal": 128, "low": 2_048, "medium": 8_192, "high": 24_576}
"""Thinking budgets of the models before levels."""


class GoogleNative(Native):
    """`google/…`."""

    def _read(self, body: object) -> dict[str, Any]:
        return read(body, tidy.google, whole.google)

    def _open(self, key: str, http: httpx2.AsyncClient) -> Model[Any]:
        options = HttpOptions(
            base_url=self._base_url or ADDRESS,
            api_version=VERSION,
            httpx_async_client=http,
            timeout=int(self._timeout_s * 1000),
            # Its clients for other purposes are never used; without these it would load the certificates once for each.
            client_args={"verify": trust()},
            async_client_args={"verify": trust(), "ssl": trust()},
        )
        client = Client(vertexai=False, api_key=key, http_options=options)
        return GoogleModel(self.model, provider=GoogleProvider(client=client))

    def _ability(self, model: Model[Any], request: ModelRequest) -> Ability:
        profile = cast("dict[str, Any]", model.profile)
        return Ability(
            forces=True,
            schemas=bool(profile.get("supports_json_schema_output")),
            tools_beside_schema=bool(profile.get("google_supports_tool_combination")),
        )

    def _settings(self, model: Model[Any], request: ModelRequest) -> dict[str, Any]:
        profile = cast("dict[str, Any]", model.profile)
        settings = {name: request.settings[name] for name in ("temperature", "seed") if name in request.settings}
        level = reasons(request.settings)
        if not level or not profile.get("supports_thinking"):
            return settings
        if level == "none":
            settings["thinking"] = False
        elif profile.get("google_supports_thinking_level", True):
            settings["thinking"] = level
        else:
            # Thoughts count against the bound of tokens: half of it is left for the answer.
            budget = max(
                BUDGETS["minimal"], min(BUDGETS.get(level, BUDGETS["high"]), max_tokens(request.settings) // 2)
            )
            settings["google_thinking_config"] = {"include_thoughts": True, "thinking_budget": budget}
        return settings
