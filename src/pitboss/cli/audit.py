"""`pitboss audit …`: tests of a simulation for look-ahead, and of a model for memory of the past."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from pitboss.cli.audit_memory import memory
from pitboss.core.errors import UserError
from pitboss.terminal import screen
from pitboss.terminal.exit_codes import INTERRUPTED
from pitboss.terminal.options import Json, Override, RangeEnd, WholeNumber, option
from pitboss.terminal.workspace_options import Location

if TYPE_CHECKING:
    from pitboss.audit.lookahead import AuditSetup, LookaheadResult
    from pitboss.audit.setup import AuditRequest
    from pitboss.bootstrap.workspace import Workspace

app = App(name="audit", help="Test a simulation for look-ahead, and a model for memory of the past.")

MOST_CUTS, MOST_SEED = 1_000_000, 2**31
FOUND = 1
app.command(memory)


@app.command
def lookahead(
    skill: Path | None = None,
    /,
    *,
    run: Annotated[str, option("--run", "Audit this stored run: its id, its first characters, or `last`.")] = "",
    cuts: Annotated[WholeNumber, option("--cuts", "Number of random ticks at which to cut and compare.")] = 100,
    seed: Annotated[WholeNumber, option("--seed", "The same seed makes the same cuts.")] = 0,
    from_: Annotated[
        RangeEnd | None,
        option(
            "--from", "First tick, or -7d before the end of the data. Default: 30 days before the end, or 2,000 ticks."
        ),
    ] = None,
    to: Annotated[RangeEnd | None, option("--to", "End of the range. Default: as far as the data goes.")] = None,
    tools: Annotated[str, option("--tools", "Only these tools, separated by commas. Default: all.")] = "",
    tool_file: Annotated[
        tuple[Path, ...],
        Parameter(
            name="--tool-file",
            negative=(),
            consume_multiple=False,
            help="Audit the tool of this Python file too. The file is executed. May be repeated.",
        ),
    ] = (),
    data_venue: Annotated[str, option("--data-venue", "Whose data to use, where several venues have some.")] = "",
    set_: Override = (),
    json: Json = False,
    place: Location,
) -> int:
    """Check that nothing a run records depends on what comes after it. Exit code 1 if anything does.

    At every cut the ticks before it are run again, by the same program as a backtest and with the skill's own decider if
    it is a policy, on a copy of the data that ends at the cut and on one that goes on differently. Prompts, answers of
    tools, decisions, fills, equity and the state of the account must be the same to the byte. A skill with a model is
    audited with the stand-in in its place; a stored run repeats its recorded replies, and every rebuilt prompt is
    compared with the stored digest. No model is called and nothing is stored.

    For example:

        pitboss audit lookahead trend-thesis.yaml
        pitboss audit lookahead trend-thesis.yaml --from 2025-03-01 --to 2025-03-31 --cuts 200 --json
        pitboss audit lookahead --run 3f9a --cuts 1000
        pitboss audit lookahead trend-thesis.yaml --tool-file my_tool.py --tools my_tool

    Parameters
    ----------
    skill
        A .yaml or .json file of any venue. Left out with --run.
    """
    from pitboss.audit import lookahead_text as show
    from pitboss.audit.setup import AuditRequest

    if not 1 <= cuts <= MOST_CUTS:
        raise UserError(f"--cuts: {cuts} is not from 1 to {MOST_CUTS:,}", "for example --cuts 100")
    if not 0 <= seed <= MOST_SEED:
        raise UserError(f"--seed: {seed} is not from 0 to {MOST_SEED}", "any whole number in between")
    if run and skill is not None:
        raise UserError("give either a skill or --run", "a run has its own skill")
    options = AuditRequest(
        skill=_plain(skill, set_),
        run=run,
        from_at=from_,
        to_at=to,
        tools=_names(tools),
        tool_files=tool_file,
        data_venue=data_venue,
        seed=seed,
    )
    with place.workspace() as workspace:
        setup, result, stopped = _audit(workspace, options, cuts)
    if json:
        screen.put_json(show.document(result, setup, seed))
    else:
        screen.put_table(show.HEADINGS, show.cells(result), right=show.NUMBERS)
        screen.put()
        verdict, *details = show.lines(result)
        screen.put(verdict, style="bold red" if result.differences else "bold")
        for line in details:
            screen.put(line)
        screen.put(f"seed {seed}; the same seed makes the same cuts")
    if result.differences:
        return FOUND
    return INTERRUPTED if stopped else 0


def _plain(skill: Path | None, set_: tuple[str, ...]) -> dict[str, object] | None:
    from pitboss.runs.documents import read_file

    if skill is None:
        if set_:
            raise UserError("--set needs a skill", "name a skill file")
        return None
    return read_file(skill, set_)


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _audit(workspace: "Workspace", options: "AuditRequest", cuts: int) -> "tuple[AuditSetup, LookaheadResult, bool]":
    import asyncio

    from pitboss.audit.lookahead import audit
    from pitboss.audit.setup import prepare
    from pitboss.sim.watch import Watch
    from pitboss.terminal.progress import watching

    with watching("audit", lambda run_id: False) as (watch, _):

        async def work() -> "tuple[AuditSetup, LookaheadResult]":
            setup = await prepare(workspace, options, Watch(stop=watch.stop))
            return setup, await audit(setup, cuts, options.seed, watch.progress, watch.stop)

        setup, result = asyncio.run(work())
    return setup, result, result.cuts < cuts
