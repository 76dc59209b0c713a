"""`pitboss models …`: list the available models and test them."""

from pathlib import Path
from typing import Annotated

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
    from pitboss.runs.model_list import model_rows

    entries = model_rows(location.settings().home)
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
        drop=(4, 3, 2),
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
