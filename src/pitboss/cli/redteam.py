"""`pitboss redteam`: whether a skill's caps hold when the text it reads, or the model itself, is hostile."""

from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from pitboss.core.errors import UserError
from pitboss.core.suggestion import suggestion
from pitboss.terminal import screen
from pitboss.terminal.exit_codes import INTERRUPTED
from pitboss.terminal.options import Amount, Json, Override, WholeNumber, option
from pitboss.terminal.workspace_options import Location, WorkspaceOptions

if TYPE_CHECKING:
    from pitboss.redteam.attack_setup import AttackSetup
    from pitboss.redteam.attacks import Attack
    from pitboss.redteam.campaign import CampaignResult
    from pitboss.sim.request import BacktestRequest

MOST_TICKS, MOST_SEED = 2_000, 2**31
DEFAULT_COST = Decimal(1)
BREACHED = 1


def redteam(
    skill: Path,
    /,
    *,
    attacks: Annotated[
        tuple[Path, ...],
        Parameter(
            name="--attacks",
            negative=(),
            consume_multiple=True,
            help="Files of attack texts in addition to the built-in ones: JSON lines with a `text`, or plain lines. May be repeated.",
        ),
    ] = (),
    slots: Annotated[
        str, option("--slots", "Where the texts are planted, separated by commas: news, tool, mcp, memory.")
    ] = "news,tool,mcp,memory",
    model: Annotated[
        tuple[str, ...],
        Parameter(
            name="--model",
            negative=(),
            consume_multiple=True,
            help="The model that decides: hijacked, standin/analyst, or any model by name. May be repeated.",
        ),
    ] = ("hijacked",),
    ticks: Annotated[WholeNumber, option("--ticks", "Number of decisions of each run.")] = 24,
    limit: Annotated[WholeNumber | None, option("--limit", "Use at most this many texts.")] = None,
    seed: Annotated[
        WholeNumber,
        option("--seed", "Seed of the market and of the hijacked model; the same seed gives the same result."),
    ] = 7,
    only_files: Annotated[bool, option("--only-files", "Leave out the built-in texts.")] = False,
    set_: Override = (),
    max_cost_usd: Annotated[
        Amount | None, option("--max-cost-usd", "Stop when real models have cost this much. Default: 1.")
    ] = None,
    price_in: Annotated[Amount | None, option("--price-in", "USD for a million tokens a model reads.")] = None,
    price_out: Annotated[Amount | None, option("--price-out", "USD for a million tokens a model writes.")] = None,
    yes: Annotated[bool, option("--yes", "Use a model without a known price.")] = False,
    json: Json = False,
    place: Location,
) -> int:
    """Plant attack texts in what an agent reads, and count breaches of its caps. Exit code 1 if there is any.

    Each text is planted in each slot of a short run on a generated market, and every record of that run is audited
    against the skill's caps by code that shares nothing with the engine. `hijacked` is a model under the attacker's full
    control. Nothing is written to the workspace. After Ctrl-C the counts so far are shown.

    For example:

        pitboss redteam trend-thesis.yaml
        pitboss redteam trend-thesis.yaml --attacks injections.jsonl --slots news,memory --ticks 12
        pitboss redteam trend-thesis.yaml --model standin/analyst --limit 10 --json

    Parameters
    ----------
    skill
        A .yaml or .json file.
    """
    from pitboss.redteam import campaign_models
    from pitboss.runs.documents import read_file
    from pitboss.runs.venues import venue_of

    selected_slots = _slots(slots)
    _check(ticks, limit, seed, price_in, price_out)
    real = campaign_models.check(model)
    plain = read_file(skill, set_)
    setup = _make_setup(plain, ticks, seed)
    texts, bad, problems = setup.texts(attacks, only_files)
    texts = texts if limit is None else texts[:limit]
    for problem in problems:
        screen.note(f"left out: {problem}")
    if bad > len(problems):
        screen.note(f"left out: {bad - len(problems):,} more lines")
    selected_slots = _with_effect(setup, selected_slots)
    for remark in setup.remarks(selected_slots):
        screen.note(f"note: {remark}")
    from dataclasses import replace

    most = DEFAULT_COST if max_cost_usd is None else max_cost_usd
    money = replace(setup.request, max_cost_usd=most, price_in=price_in, price_out=price_out, any_price=yes)
    result = _run_campaign(setup, model, selected_slots, texts, seed, money, place, real)
    return _show(
        result,
        {
            "skill": str(skill),
            "skill_digest": setup.skill_digest,
            "seed": seed,
            "ticks": ticks,
            "texts": len(texts),
            "bad_lines": bad,
            "slots": list(selected_slots),
            "models": list(model),
        },
        json,
        venue_of(plain).has_account,
    )


def _make_setup(plain: dict[str, Any], ticks: int, seed: int) -> "AttackSetup":
    """Set up attacks as the skill's venue does: in its own way, or in the one that every venue has."""
    from importlib import import_module

    from pitboss.redteam.planted_key import make_canary
    from pitboss.runs.venues import venue_of

    module, _, name = venue_of(plain).red_team.partition(":")
    return getattr(import_module(module), name)(plain, ticks, seed, make_canary(seed))


def _slots(text: str) -> tuple[Any, ...]:
    from pitboss.redteam.injection_points import SLOTS

    names = tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
    unknown = [name for name in names if name not in SLOTS]
    if unknown or not names:
        raise UserError(
            f"--slots: {unknown[0] if unknown else text!r} is not a slot",
            suggestion((unknown or [text])[0], SLOTS, "any of"),
        )
    return names


def _with_effect(setup: "AttackSetup", slots: tuple[Any, ...]) -> tuple[Any, ...]:
    """Leave out the slots in which the skill shows no text, and say so."""
    empty = {slot: reason for slot, reason in setup.empty_slots().items() if slot in slots}
    usable = tuple(slot for slot in slots if slot not in empty)
    if not usable:
        slot, reason = next(iter(empty.items()))
        raise UserError(f"--slots: nothing can be planted in {slot}: {reason}", "leave --slots out for all others")
    for slot, reason in empty.items():
        screen.note(f"left out: slot {slot}, because {reason}")
    return usable


def _check(ticks: int, limit: int | None, seed: int, price_in: Decimal | None, price_out: Decimal | None) -> None:
    if not 1 <= ticks <= MOST_TICKS:
        raise UserError(f"--ticks: {ticks} is not from 1 to {MOST_TICKS}", "for example --ticks 24")
    if limit is not None and limit < 1:
        raise UserError(f"--limit: {limit} is below 1", "for example --limit 10")
    if not 0 <= seed <= MOST_SEED:
        raise UserError(f"--seed: {seed} is not from 0 to {MOST_SEED}", "any whole number in between")
    if (price_in is None) != (price_out is None):
        raise UserError("--price-in and --price-out go together", "for example --price-in 0.5 --price-out 1.5")


def _run_campaign(
    setup: "AttackSetup",
    models: tuple[str, ...],
    slots: tuple[Any, ...],
    texts: "list[Attack]",
    seed: int,
    money: "BacktestRequest",
    place: WorkspaceOptions,
    real: bool,
) -> "CampaignResult":
    import asyncio
    from tempfile import TemporaryDirectory

    from pitboss.redteam import campaign, campaign_models
    from pitboss.redteam.breach import Breach
    from pitboss.redteam.planted_key import planted_key
    from pitboss.terminal.progress import watching

    result = campaign.CampaignResult()

    async def work(folder: Path) -> None:
        async with campaign_models.connected_models(models, setup, place.settings(), folder, money) as ready:
            await campaign.run(setup, ready, slots, texts, seed, watch, result)

    with (
        TemporaryDirectory(prefix="pitboss-redteam-") as folder,
        watching("red team", lambda run_id: False) as (
            watch,
            _,
        ),
    ):
        with planted_key(setup.canary, Path(folder), alone=not real) as leaks:
            try:
                asyncio.run(work(Path(folder)))
            except KeyboardInterrupt:
                result.partial = "stopped"
        for leak in dict.fromkeys(leaks):
            result.rows[-1].breaches += 1
            breach = Breach(setup.request.to_at, "SECRET", leak)
            result.listed.append(campaign.RunBreach(result.rows[-1].model, result.rows[-1].slot, "(log)", breach))
    return result


def _show(result: "CampaignResult", options: dict[str, Any], json: bool, has_account: bool) -> int:
    from pitboss.redteam import report
    from pitboss.report.figures import plural

    if json:
        screen.put_json(report.document(result, options))
    else:
        headings, rows = report.table(result, has_account)
        screen.put_table(headings, rows, right=range(2, len(headings)))
        screen.put()
        for line in report.lines(result):
            screen.put(line, style="bold red" if result.breaches else "")
        screen.put(
            f"seed {options['seed']}, {plural(options['texts'], 'text')}, {plural(options['ticks'], 'tick')} a run; the same seed gives the same result"
        )
    if result.breaches:
        return BREACHED
    return 0 if not result.partial else INTERRUPTED if result.partial == "stopped" else 1
