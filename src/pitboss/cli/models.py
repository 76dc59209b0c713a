"""`pitboss models …`: list the available models and test them."""

from pathlib import Path
from typing import Annotated, Any

from cyclopts import App, Parameter

from pitboss.terminal import screen
from pitboss.terminal.options import Json
from pitboss.terminal.workspace_options import Location

app = App(name="models", help="List the models that a skill may use, and test them.")


@app.command(name="list")
def list_(*, json: Json = False, location: Location) -> int:
    """List the names that a skill may give as its model: free programs, and providers with the keys they need.

    For example:

        pitboss models list
    """
    entries = _entries(location.settings().home)
    if json:
        screen.put_json(entries)
        return 0
    screen.put_table(
        ("name", "kind", "what it is"),
        [(entry["name"], entry["kind"], entry["summary"]) for entry in entries],
        folds=(2,),
    )
    return 0


@app.command(name="test")
def check_model(
    name: Annotated[str, Parameter(help="As in a skill: groq/llama-3.3-70b-versatile, local/smollm2, llm/my-model.")],
    /,
    *,
    json: Json = False,
    location: Location,
) -> int:
    """Send one small request to a model and show the result. Costs a fraction of a cent at most.

    Exit code 2: an error that you can fix (a key, a name). Exit code 1: no answer, or one that does not follow the
    required format.

    For example:

        pitboss models test groq/llama-3.3-70b-versatile
    """
    import asyncio

    from pitboss.bootstrap.model_stack import try_model
    from pitboss.models.cutoffs import cutoff_of

    with location.workspace() as workspace:
        cutoff = cutoff_of(name, workspace.settings.model_cutoffs)
        result = asyncio.run(try_model(workspace, name))
    result["cutoff"] = None if cutoff.until is None else cutoff.until.isoformat()
    if json:
        screen.put_json(result)
    else:
        cost = "unknown" if result["cost_usd"] is None else f"${result['cost_usd']:.6f}"
        rows = [
            ("answered", f"{result['answered_as'] or name} at {result['host']} after {result['latency_ms']:.0f} ms"),
            ("decision by", f"{result['forced_by']}, {'followed' if result['kept_to_it'] else 'NOT followed'}"),
            ("tokens", f"{result['input_tokens']} in, {result['output_tokens']} out"),
            (
                "cost",
                cost
                if result["price_known"]
                else f"{cost}; unknown price: runs need --price-in and --price-out, or --yes",
            ),
        ]
        rows.append(("training cutoff", f"{result['cutoff'] or 'unknown'}; {cutoff.source}"))
        if result["problem"]:
            rows.append(("problem", str(result["problem"])))
        screen.put_table(("", ""), rows, folds=(1,))
    return 0 if result["kept_to_it"] else 1


@app.command
def cutoffs(*, json: Json = False) -> int:
    """List the training cutoff of each model, as published by its provider, with the source.

    A model that is not listed is unknown. The setting `model_cutoffs` overrides the list.

    For example:

        pitboss models cutoffs
    """
    from pitboss.models.cutoffs import UNKNOWN, table

    rows = [
        {
            "models": list(row.models),
            "until": None if row.until is None else row.until.isoformat(),
            "kind": row.kind,
            "source": row.source,
            "as_of": row.as_of,
        }
        for row in table()
    ]
    if json:
        screen.put_json(rows)
        return 0
    screen.put_table(
        ("models", "until", "of its", "source", "as of"),
        [(", ".join(row.models), str(row.until or UNKNOWN), row.kind or "", row.source, row.as_of) for row in table()],
        folds=(0, 3),
    )
    return 0


@app.command
def parse(
    recordings: Annotated[Path, Parameter(help="JSON lines (or .gz) of recorded sessions.")], /, *, json: Json = False
) -> int:
    """Parse recorded exchanges with providers as a run does, and count the outcomes by kind.

    Each line is one session with a list of interactions (uri, request_body, status, response_headers, response_body).
    Chat completions and Responses of any host, Anthropic messages and Google generateContent are parsed, streamed or
    not, and Bedrock's Converse where it is not streamed; everything else is counted as not supported.

    For example:

        pitboss models parse sessions.jsonl.gz --json
    """
    from pitboss.core.ports import ModelReply
    from pitboss.models import recordings as recorded
    from pitboss.models.failures import Failure

    names = ("exchanges", "replies", "calls", "problems", "failures")
    counts: dict[str, dict[str, int]] = {}
    for exchange in recorded.read(recordings):
        outcome = recorded.parse(exchange)
        row = counts.setdefault(recorded.kind(exchange), dict.fromkeys(names, 0))
        row["exchanges"] += 1
        if isinstance(outcome, ModelReply):
            row["replies"] += 1
            row["calls"] += len(outcome.calls)
            row["problems"] += bool(outcome.problem)
        row["failures"] += isinstance(outcome, Failure)
    if json:
        screen.put_json(counts)
        return 0
    screen.put_table(
        ("kind", *names), [(kind, *(str(row[name]) for name in names)) for kind, row in sorted(counts.items())]
    )
    return 0


def _entries(home: Path) -> list[dict[str, Any]]:
    from pitboss.bootstrap.keys import Values, open_secrets
    from pitboss.bootstrap.machine import environment
    from pitboss.models import standin
    from pitboss.models.providers import PROVIDERS
    from pitboss.runs.venues import venues

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
