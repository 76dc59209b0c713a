"""`pitboss audit memory`: whether a model has memorised the past that it is tested on."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pitboss.core.errors import BudgetExceeded, InvariantError, RunCancelled, TransientError, UserError
from pitboss.terminal import screen
from pitboss.terminal.exit_codes import FAILED, INTERRUPTED
from pitboss.terminal.options import Amount, Json, Name, Override, RangeEnd, WholeNumber, option
from pitboss.terminal.workspace_options import Location, WorkspaceOptions

if TYPE_CHECKING:
    from pitboss.audit.memorisation import MemorisationReport, MemorisationRequest

MOST_WINDOWS, MOST_REPEATS, MOST_SEED = 10_000, 200, 2**31


def memory(
    skill: Path,
    /,
    *,
    model: Annotated[Name, option("--model", "The model to test, instead of the skill's.")] = "",
    from_: Annotated[
        RangeEnd | None,
        option(
            "--from", "First instant of the range, or -90d before the end of the data. Default: 30 days before its end."
        ),
    ] = None,
    to: Annotated[RangeEnd | None, option("--to", "End of the range. Default: as far as the data goes.")] = None,
    windows: Annotated[WholeNumber, option("--windows", "Number of anonymous windows to ask about; 0 for none.")] = 40,
    repeats: Annotated[
        WholeNumber, option("--repeats", "Pairs of runs, one with names and one blind; 0 for none.")
    ] = 3,
    seed: Annotated[WholeNumber, option("--seed", "Seed of the windows, of the anonymisation and of the runs.")] = 0,
    cutoff: Annotated[
        str, option("--cutoff", "The model's training cutoff, if you know better: 2025-07-31, or 2025-07.")
    ] = "",
    data_venue: Annotated[str, option("--data-venue", "Whose data to use, where several venues have some.")] = "",
    set_: Override = (),
    max_cost_usd: Annotated[
        Amount | None, option("--max-cost-usd", "Stop when everything together has cost this much.")
    ] = None,
    price_in: Annotated[Amount | None, option("--price-in", "USD for a million tokens the model reads.")] = None,
    price_out: Annotated[Amount | None, option("--price-out", "USD for a million tokens the model writes.")] = None,
    yes: Annotated[bool, option("--yes", "Use a model without a known price.")] = False,
    out: Annotated[Path | None, option("--out", "Write the report as an HTML page too.")] = None,
    json: Json = False,
    place: Location,
) -> int:
    """Test whether a model has memorised a range of the past, and the effect on its results.

    The model is asked to identify windows of bars without name, dates and scale; it runs the skill with names and blind,
    in pairs; and both are split at its training cutoff where that is known. The runs are ordinary runs. After Ctrl-C the
    same command continues where it stopped and sends no request twice.

    For example:

        pitboss audit memory trend-thesis.yaml --model groq/llama-3.3-70b-versatile --from 2023-10-01 --to 2024-04-01
        pitboss audit memory trend-thesis.yaml --model openai/gpt-5-mini --repeats 0 --windows 100

    Parameters
    ----------
    skill
        A .yaml or .json file.
    """
    from pitboss.audit.memorisation import MemorisationRequest
    from pitboss.models.cutoffs import read_day
    from pitboss.runs.documents import read_file
    from pitboss.runs.venues import venue_of

    for name, value, least, most in (
        ("--windows", windows, 0, MOST_WINDOWS),
        ("--repeats", repeats, 0, MOST_REPEATS),
        ("--seed", seed, 0, MOST_SEED),
    ):
        if not least <= value <= most:
            raise UserError(f"{name}: {value} is not from {least} to {most:,}", "any whole number in between")
    if not windows and not repeats:
        raise UserError("there is nothing to do with --windows 0 and --repeats 0", "leave one of them out")
    if (price_in is None) != (price_out is None):
        raise UserError("--price-in and --price-out go together", "for example --price-in 0.5 --price-out 1.5")
    if out is not None and not out.absolute().parent.is_dir():
        raise UserError(f"--out: there is no folder {out.absolute().parent}", "name a file in a folder that exists")
    plain = read_file(skill, set_, place.settings())
    request = venue_of(plain).request_type()(
        skill=plain,
        from_at=0,
        to_at=0,
        model=model,
        data_venue=data_venue,
        seed=seed,
        max_gap=place.settings().max_gap,
        max_cost_usd=max_cost_usd,
        price_in=price_in,
        price_out=price_out,
        any_price=yes,
    )
    options = MemorisationRequest(request, windows, repeats, read_day(cutoff) if cutoff else None)
    report, code = _audit(place, options, from_, to)
    if out is not None:
        _write(out, report)
    _show(report, json)
    if code:
        screen.note("all answers are stored: the same command continues where it stopped")
    return code


def _audit(
    place: WorkspaceOptions, options: "MemorisationRequest", from_: "RangeEnd | None", to: "RangeEnd | None"
) -> "tuple[MemorisationReport, int]":
    import asyncio
    from dataclasses import replace

    from pitboss.audit.default_range import with_range
    from pitboss.audit.memorisation import audit, begin
    from pitboss.report.figures import plural
    from pitboss.terminal.progress import watching

    with place.workspace() as workspace:
        options = replace(options, request=with_range(workspace, options.request, from_, to))
        report, prepared = begin(workspace, options)
        screen.note(
            f"{plural(options.windows, 'window')} to identify, and {2 * options.repeats} runs of "
            f"{plural(report.ticks, 'tick')}; "
            "stored answers are used again"
        )
        with watching("audit memory", workspace.runs.cancel_requested) as (watch, stop):
            try:
                asyncio.run(audit(workspace, report, prepared, watch, stop.set_run))
            except (RunCancelled, KeyboardInterrupt):
                report.partial = "stopped"
                return report, INTERRUPTED
            except (TransientError, InvariantError, BudgetExceeded) as error:
                report.partial = str(error)
                screen.complain(str(error))
                return report, FAILED
    return report, 0


def _show(report: "MemorisationReport", json: bool) -> None:
    from pitboss.audit import conclusions as verdicts
    from pitboss.audit import memorisation_text as report_text
    from pitboss.report.figures import plural

    if json:
        screen.put_json(report_text.document(report))
        return
    screen.put(f"Memory of {report.model}", "bold")
    for remark in report_text.remarks(report):
        screen.put(remark)
    if report.recognition is not None:
        screen.put()
        screen.put_table(
            report_text.NAMING,
            report_text.naming_rows(report),
            right=(1, 2, 4, 5, 6, 7, 8),
            title="Anonymous windows",
        )
    for title, stretch in report_text.stretches(report):
        screen.put()
        screen.put_table(report_text.PAIRS, report_text.pair_rows(stretch), title=title)
    screen.put()
    finding = verdicts.overall(report)
    screen.put(verdicts.HEADLINES[finding], "bold red" if finding == "sign" else "bold")
    for conclusion in verdicts.conclusions(report):
        screen.put(f"- {conclusion.text}")
    cost = "unknown" if report.cost_usd is None else f"${report.cost_usd:.4f}"
    again = f"; {plural(report.reused, 'stored run')} used again" if report.reused else ""
    screen.put(f"cost {cost}{again}; seed {report.options.request.seed}")
    if report.partial:
        screen.put(f"partial: {report.partial}", "yellow")


def _write(out: Path, report: "MemorisationReport") -> None:
    from pitboss.audit.memorisation_text import page
    from pitboss.runs.page_file import write_page_file

    write_page_file(page(report), out, make_folder=False)
