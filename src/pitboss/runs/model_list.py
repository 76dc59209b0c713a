"""The names that a skill may give as its model: free programs, and providers with the keys they need."""

from pathlib import Path
from typing import Any

from pitboss.bootstrap.keys import Values, open_secrets
from pitboss.bootstrap.machine import environment
from pitboss.models import standin
from pitboss.models.providers import PROVIDERS
from pitboss.runs.venues import venues


def model_rows(home: Path) -> list[dict[str, Any]]:
    """The list of `pitboss models list`."""
    programs = [
        (f"policy/{name}", "policy", summary) for venue in venues() for name, summary in venue.policies().items()
    ]
    programs = sorted([*programs, (standin.NAME, "standin", standin.LABEL)])
    rows: list[dict[str, Any]] = [
        {"name": name, "kind": kind, "summary": summary, "language_model": False, "price_usd": 0}
        for name, kind, summary in programs
    ]
    values = Values(environment, open_secrets(home))
    for provider in PROVIDERS.values():
        key = next((name for name in provider.key_names if values.get(name)), None)
        key_state = (
            f"{key} is set" if key else f"needs {provider.key_names[0]}" if provider.needs_key else "needs no key"
        )
        example = f", such as {provider.name}/{provider.default_model}" if provider.default_model else ""
        rows.append(
            {
                "name": f"{provider.name}/<model>",
                "kind": "model",
                "summary": f"{provider.host or f'the address in {provider.url_names[0]}'}, {key_state}{example}",
                "language_model": True,
                "price_usd": 0 if provider.free else None,
                "host": provider.host,
                "key": key,
            }
        )
    for name, summary in (
        ("llm/<model>", "the server of LLM_BASE_URL or LLM_PROVIDER, with LLM_API_KEY and LLM_MODEL"),
        ("local/<file or name>", "a GGUF file on this machine; needs pitboss[local]"),
        ("replay/<run id>", "the recorded answers of an earlier run"),
    ):
        free = 0 if name.startswith(("local", "replay")) else None
        rows.append({"name": name, "kind": "model", "summary": summary, "language_model": True, "price_usd": free})
    return rows


def suggested_models(home: Path) -> list[tuple[str, str]]:
    """Complete names for a form, with a few words on each: programs, and the usual model of every provider."""
    suggestions = [(row["name"], str(row["summary"])) for row in model_rows(home) if not row["language_model"]]
    for provider in PROVIDERS.values():
        if provider.default_model:
            suggestions.append((f"{provider.name}/{provider.default_model}", provider.host))
    return suggestions
