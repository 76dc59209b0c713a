"""`pitboss audit …`: whether what a simulation says can be believed."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from pitboss.core.errors import UserError
from pitboss.terminal import screen
from pitboss.terminal.options import Json, Moment, Override, given
from pitboss.terminal.workspace_options import Here
from pitboss.venues.perp.audit import memory_command as memorising

if TYPE_CHECKING:
    from pitboss.bootstrap.workspace import Workspace
    from pitboss.venues.perp.audit.lookahead import AuditSetup, LookaheadResult
    from pitboss.venues.perp.audit.setup import AuditRequest

app = App(name="audit", help="Prove that a simulation cannot see its own future, and ask what a model remembers of it.")

MOST_CUTS, MOST_SEED = 1_000_000, 2**31
FOUND, STOPPED = 1, 130
app.command(memorising.memory)


@app.command
def lookahead(
    skill: Path | None = None,
    /,
    *,
    run: Annotated[str, given("--run", "Audit this stored run: its id, or the start of it.")] = "",
    cuts: Annotated[int, given("--cuts", "At how many ticks, chosen by chance, to cut and compare.")] = 100,
    seed: Annotated[int, given("--seed", "The same seed makes the same cuts.")] = 0,
    from_: Annotated[Moment | None, given("--from", "First tick. Default: three weeks before the end.")] = None,
    to: Annotated[Moment | None, given("--to", "End of the range. Default: as far as the data goes.")] = None,
    symbols: Annotated[str, given("--symbols", "Symbols with commas between, in place of the skill's.")] = "",
    tools: Annotated[str, given("--tools", "Only these tools, with commas between. Default: all there are.")] = "",
    tool_file: Annotated[
        tuple[Path, ...],
        Parameter(
            name="--tool-file",
            negative=(),
            consume_multiple=False,
            help="Audit the tool of this Python file too. The file is run: it is your own code. May be repeated.",
        ),
    ] = (),
    data_venue: Annotated[str, given("--data-venue", "Whose data to use, where several venues have some.")] = "",
    set_: Override = (),
    json: Json = False,
    place: Here,
) -> int:
    """Delete the future, then falsify it, and see whether anything an agent is told changes. Exit code 1 if it does.

    At every cut the account, the whole user message, waking, regime tags and some of the tools' answers are made three
    times: on the data as it is, on a copy that ends at the tick, and on one that goes on with lies. All bytes must be
    the same. Nobody is asked, and nothing is written.

    For example:

        pitboss audit lookahead trend-thesis.yaml
        pitboss audit lookahead --run 3f9a --cuts 1000
        pitboss audit lookahead trend-thesis.yaml --tool-file my_tool.py --tools my_tool

    Parameters
    ----------
    skill
        A .yaml or .json file. Without it, and without --run: a plain skill for the symbols here.
    """
    from pitboss.venues.perp.audit import lookahead_text as show
    from pitboss.venues.perp.audit.setup import AuditRequest

    if not 1 <= cuts <= MOST_CUTS:
        raise UserError(f"--cuts: {cuts} is not from 1 to {MOST_CUTS:,}", "for example --cuts 100")
    if not 0 <= seed <= MOST_SEED:
        raise UserError(f"--seed: {seed} is not from 0 to {MOST_SEED}", "any whole number in between")
    if run and skill is not None:
        raise UserError("give either a skill or --run", "a run has its own skill")
    options = AuditRequest(
        skill=_plain(skill, set_),
        run=run,
        symbols=_words(symbols),
        from_at=from_,
        to_at=to,
        tools=_words(tools),
        tool_files=tool_file,
        venue=data_venue,
        seed=seed,
    )
    with place.workspace() as workspace:
        setup, result, stopped = _audit(workspace, options, cuts)
    if json:
        screen.put_json(show.document(result, setup, seed))
    else:
        screen.put_table(show.HEADINGS, show.cells(result), right=show.NUMBERS)
        screen.put()
        verdict, *rest = show.lines(result)
        screen.put(verdict, style="bold red" if result.differences else "bold")
        for line in rest:
            screen.put(line)
        screen.put(f"seed {seed}; the same seed makes the same cuts")
    if result.differences:
        return FOUND
    return STOPPED if stopped else 0


def _plain(skill: Path | None, set_: tuple[str, ...]) -> dict[str, object] | None:
    from pitboss.runs.documents import read_file

    if skill is None:
        if set_:
            raise UserError("--set changes a skill, and none is given", "name a skill file")
        return None
    return read_file(skill, set_)


def _words(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(word.strip() for word in text.split(",") if word.strip()))


def _audit(workspace: "Workspace", options: "AuditRequest", cuts: int) -> "tuple[AuditSetup, LookaheadResult, bool]":
    import asyncio

    from pitboss.terminal.progress import watching
    from pitboss.venues.perp.audit.lookahead import audit
    from pitboss.venues.perp.audit.setup import prepare

    with watching("audit", lambda run_id: False) as (watch, _):

        async def work() -> "tuple[AuditSetup, LookaheadResult]":
            setup = await prepare(workspace, options)
            return setup, await audit(setup, cuts, options.seed, watch.progress, watch.stop)

        setup, result = asyncio.run(work())
    return setup, result, result.cuts < cuts
