"""What a study shows in plain words, how much of it is luck, and how far it carries."""

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.overfitting import ExplainedRow, explained_table, overfit_rows
from pitboss.report.runs import missing_results
from pitboss.report.source import number, pair
from pitboss.report.study.view import Plain, StudyView
from pitboss.sim.study.axis import words_of

PROOF = 0.95
"""A deflated Sharpe below this proves nothing."""


def paragraphs(view: StudyView) -> list[str]:
    """What came out, then how much to believe of it."""
    if view.walks:
        return _walked(view)
    best = view.best
    if best is None:
        return [_no_result(view)]
    values = sorted(value for one in view.compared if (value := view.value(one)) is not None)
    middle = (
        values[len(values) // 2] if len(values) % 2 else (values[len(values) // 2 - 1] + values[len(values) // 2]) / 2
    )
    first = (
        f"{figures.plural(len(values), 'trial')} of {view.plain['skill'] or 'the skill'} were compared by {view.label} ({view.direction}). "
        f"The best was {words_of(best['point'])} with {view.shown(view.value(best))}; the middle one had {view.shown(middle)}, the "
        f"worst {view.shown(values[-1] if view.plain['better'] == 'less' else values[0])}."
    )
    return [first, " ".join(filter(None, (_luck(view), _over(view), missing_results(len(view.failures)))))]


def _no_result(view: StudyView) -> str:
    done = view.plain["counts"].get("complete", 0)
    if done:
        return (
            f"{figures.plural(done, 'run')} of {figures.count(view.plain['runs'])} are done, but none has a "
            f"{view.label}: the stretch may be too short for it, or nothing happened that it is made of. Judge by "
            "another metric with --by, for example total_return_pct."
        )
    return " ".join(filter(None, ("No run has a result yet.", missing_results(len(view.failures)))))


def _luck(view: StudyView) -> str:
    luck = view.luck
    chance, lucky, best = (number(luck.get(name)) for name in ("deflated_sharpe", "lucky_sharpe", "best_sharpe"))
    if chance is None:
        return "How much of it is luck cannot be said: the runs have too few daily returns, or none that differ."
    tries = figures.plural(luck["runs"], "run")
    beside = (
        ""
        if lucky is None or best is None
        else f" The best of {tries} without any skill would show a Sharpe of about {figures.plain(lucky)} by luck; this one has "
        f"{figures.plain(best)}."
    )
    sure = "luck alone hardly explains it" if chance >= PROOF else "it may well be luck"
    return f"After {tries}, the chance that the best is more than luck is {figures.share(chance, 0)}: {sure}.{beside}"


def _over(view: StudyView) -> str:
    over = view.luck.get("overfitting")
    if not over:
        return ""
    return (
        f"Choosing the best on half of the days put it into the lower half on the others in {figures.share(over['probability'], 0)} "
        f"of {figures.count(over['splits'])} splits."
    )


def _walked(view: StudyView) -> list[str]:
    forward = view.forward
    windows = forward.get("windows") or ()
    if not windows:
        return [_no_result(view)]
    inside, outside = number(forward["inside_mean"]), number(forward["outside_mean"])
    first = (
        f"In each of {figures.plural(len(windows), 'window')} the best of {figures.plural(forward['tried_in_each'], 'point')} by {view.label} "
        f"was chosen on one stretch and judged on the next. All that was judged, {figures.plural(forward['days'], 'day')}, came to "
        f"{figures.percent(forward['total_return_pct'], signed=True)}{_around(forward)}."
    )
    second: list[str] = []
    if inside is not None and outside is not None:
        fell = view.is_better(inside, outside)
        second.append(
            f"On average the choice had {view.shown(inside)} where it was chosen and {view.shown(outside)} after: "
            + ("part of what choosing promised was not there." if fell else "what choosing promised was kept.")
        )
    second.append(_steady(windows))
    if forward.get("not_judged"):
        second.append(f"{figures.plural(forward['not_judged'], 'window was', 'windows were')} not judged.")
    second.append(missing_results(len(view.failures)))
    return [first, " ".join(filter(None, second))]


def _steady(windows: list[Plain]) -> str:
    kinds = len({tuple(one["point"].items()) for one in windows})
    if len(windows) < 2:
        return ""
    if kinds == 1:
        return "Every window chose the same point."
    return f"{kinds} different points were chosen in {len(windows)} windows."


def _around(forward: Plain) -> str:
    found = pair(forward.get("total_return_ci"))
    if found is None:
        return " (too few days for an interval)"
    return f" (95%: {figures.percent(found[0], signed=True)} to {figures.percent(found[1], signed=True)})"


def luck_section(view: StudyView) -> Html:
    """How many tries there were and what that does to the best of them."""
    return _walk_luck(view) if view.walks else _search_luck(view)


def _search_luck(view: StudyView) -> Html:
    luck, rows = view.luck, list[ExplainedRow]()
    rows.append(
        (
            "Tries",
            figures.count(luck["runs"]),
            "Finished runs with daily returns, repeats included. The more, the better the best by luck.",
        )
    )
    rows.append(
        ("Sharpe of the best", figures.plain(luck["best_sharpe"]), "Of the trial that is best by the chosen metric.")
    )
    rows.append(
        (
            "Sharpe that luck gives",
            figures.plain(luck["lucky_sharpe"]),
            "What the best of as many tries without any skill is expected to show, from how much the tries differ.",
        )
    )
    rows.append(
        (
            "Deflated Sharpe",
            figures.share(luck["deflated_sharpe"], 1),
            "The probability that the best one's true Sharpe is above that (Bailey and López de Prado 2014). Below 95% it proves "
            "nothing.",
        )
    )
    if (number(luck["runs_of_skill"]) or 0) > (number(luck["runs"]) or 0):
        rows.append(
            (
                "Over all runs of this skill",
                figures.share(luck["deflated_sharpe_of_skill"], 1),
                f"The same over the {figures.count(luck['runs_of_skill'])} finished runs of this skill that are stored here: other studies "
                "and single backtests were tries too.",
            )
        )
    rows += overfit_rows(luck["overfitting"], "trials")
    return explained_table("How much of the best is luck", rows)


def _walk_luck(view: StudyView) -> Html:
    forward = view.forward
    rows = [
        (
            "Tried in each window",
            figures.count(forward.get("tried_in_each")),
            "All of it before what is judged: the choice had not seen those days, so the judged result needs no correction for it.",
        ),
        ("Days judged", figures.count(forward.get("days")), "Put together to one history; only these count."),
        ("Sharpe of what was judged", figures.plain(forward.get("sharpe")), _sharpe_around(forward)),
        (
            "Probabilistic Sharpe",
            figures.share(forward.get("probabilistic_sharpe"), 1),
            "The probability that its true Sharpe is above zero. Below 95% it proves nothing.",
        ),
    ]
    return join(
        [
            explained_table("How sure what was judged is", rows),
            tag(
                "p",
                "Walking the same history again with other points or stretches until the result pleases is a search too, and one that "
                "nobody counts.",
                class_="note after",
            ),
        ]
    )


def _sharpe_around(forward: Plain) -> str:
    found = pair(forward.get("sharpe_ci"))
    return (
        "Too few days for an interval."
        if found is None
        else f"95% interval {figures.plain(found[0])} to {figures.plain(found[1])}."
    )


def limits(view: StudyView) -> Html:
    """What the study does not say."""
    said = [
        "Each run is an ordinary one: it sees nothing after its own ticks, and can be shown, verified and exported by itself.",
        "Counted are the tries that are stored here. What was tried elsewhere, or deleted, nobody can count.",
        "This is one skill over one stretch of history. The best point here need not be the best in another.",
    ]
    if view.plain["repeats"] > 1:
        said.append(
            "Repeats ask again with another seed. They show how much a point differs from itself, not another market."
        )
    if any(not one["model"].startswith(("policy/", "standin/")) for one in view.trials):
        said.append(
            "A language model may have read about this period while it was trained. `pitboss audit memory` tests for that."
        )
    return tag("ul", *[tag("li", sentence) for sentence in said], class_="plain")
