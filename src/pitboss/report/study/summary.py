"""The summary of a study in sentences, how likely chance explains its result, and its limits."""

from pitboss.report import figures
from pitboss.report.markup import Html, join, tag, with_code
from pitboss.report.overfitting import ExplainedRow, explained_table, overfit_rows
from pitboss.report.provenance import sentence_list
from pitboss.report.runs import missing_results
from pitboss.report.source import Plain, number, pair
from pitboss.report.study.view import StudyView
from pitboss.sim.study.axis import describe_point

PROOF = 0.95
"""A deflated Sharpe below this is not significant."""
NOT_TESTED = "There are no returns of days to resample, so nothing here says which differences are due to chance."


def paragraphs(view: StudyView) -> list[str]:
    """The result, then its reliability."""
    if view.is_walk_forward:
        return _walked(view)
    best = view.best
    if best is None:
        return [_no_result(view)]
    values = sorted(value for trial in view.compared if (value := view.value(trial)) is not None)
    median = (
        values[len(values) // 2] if len(values) % 2 else (values[len(values) // 2 - 1] + values[len(values) // 2]) / 2
    )
    first = (
        f"{figures.plural(len(values), 'trial')} of {view.plain['skill'] or 'the skill'} were compared by {view.label} ({view.direction}). "
        f"The best was {describe_point(best['point'])} with {view.format_trial(best)}; the median had {view.format_value(median)}, the "
        f"worst {view.format_value(values[-1] if view.plain['better'] == 'less' else values[0])}."
    )
    return [
        first,
        " ".join(
            filter(
                None,
                (
                    _significance(view) if view.has_account else NOT_TESTED,
                    _overfitting(view) if view.has_account else "",
                    missing_results(len(view.failures)),
                ),
            )
        ),
    ]


def _no_result(view: StudyView) -> str:
    complete = view.plain["counts"].get("complete", 0)
    if complete:
        return (
            f"{figures.plural(complete, 'run')} of {figures.count(view.plain['runs'])} are complete, but none has a "
            f"{view.label}: the period may be too short for it, or the runs had no such events. Choose "
            "another metric with --by" + (", for example total_return_pct." if view.has_account else ".")
        )
    return " ".join(filter(None, ("No run has a result yet.", missing_results(len(view.failures)))))


def _significance(view: StudyView) -> str:
    significance = view.significance
    chance, expected_best, best = (
        number(significance.get(name)) for name in ("deflated_sharpe", "lucky_sharpe", "best_sharpe")
    )
    if chance is None:
        return "The role of chance cannot be estimated: the runs have too few daily returns, or none that differ."
    if loss := no_gain(best):
        return loss
    runs = figures.plural(significance["runs"], "run")
    benchmark = (
        ""
        if expected_best is None or best is None
        else f" The best of {runs} without skill has an expected Sharpe of about {figures.plain(expected_best)}; this one has "
        f"{figures.plain(best)}."
    )
    meaning = "chance alone is an unlikely explanation" if chance >= PROOF else "chance may explain it"
    return f"After {runs}, the probability that the best exceeds chance is {figures.share(chance, 0)}: {meaning}.{benchmark}"


def no_gain(best_sharpe: float | None) -> str:
    """The sentence that replaces the comparison with chance if the best Sharpe is not above zero; else empty."""
    if best_sharpe is None or best_sharpe > 0:
        return ""
    days = "lost on average" if best_sharpe < 0 else "gained nothing on average"
    value = figures.plain(best_sharpe)
    return f"The best trial has a Sharpe of {value}: its days {days}, so there is no gain to tell from chance."


def _overfitting(view: StudyView) -> str:
    over = view.significance.get("overfitting")
    if not over:
        return ""
    return (
        f"The best trial on half of the days ranked in the lower half on the other days in "
        f"{figures.share(over['probability'], 0)} of {figures.count(over['splits'])} splits."
    )


def _walked(view: StudyView) -> list[str]:
    forward = view.forward
    windows = forward.get("windows") or ()
    if not windows:
        return [_no_result(view)]
    inside, outside = number(forward["inside_mean"]), number(forward["outside_mean"])
    result = (
        f"In each of {figures.plural(len(windows), 'window')} the best of {figures.plural(forward['tried_in_each'], 'point')} by {view.label} "
        f"was chosen on one period and tested on the next. All test periods, {figures.plural(forward['days'], 'day')}, returned "
        f"{figures.percent(forward['total_return_pct'], signed=True)}{_around(forward)}."
    )
    persistence: list[str] = []
    if inside is not None and outside is not None:
        fell = view.is_better(inside, outside)
        persistence.append(
            f"On average the choice had {view.format_mean(outside=False)} in sample and {view.format_mean(outside=True)} out of sample: "
            + ("part of the in-sample result did not persist." if fell else "the in-sample result persisted.")
        )
    persistence.append(_steady(windows))
    if forward.get("not_judged"):
        persistence.append(f"{figures.plural(forward['not_judged'], 'window was', 'windows were')} not tested.")
    persistence.append(missing_results(len(view.failures)))
    return [result, " ".join(filter(None, persistence))]


def _steady(windows: list[Plain]) -> str:
    kinds = len({tuple(window["point"].items()) for window in windows})
    if len(windows) < 2:
        return ""
    if kinds == 1:
        return "Every window chose the same point."
    return f"{kinds} different points were chosen in {len(windows)} windows."


def _around(forward: Plain) -> str:
    bounds = pair(forward.get("total_return_ci"))
    if bounds is None:
        return " (too few days for an interval)"
    return f" (95%: {figures.percent(bounds[0], signed=True)} to {figures.percent(bounds[1], signed=True)})"


def significance_section(view: StudyView) -> Html:
    """The number of runs and its effect on the best result."""
    return _walk_significance(view) if view.is_walk_forward else _search_significance(view)


def _search_significance(view: StudyView) -> Html:
    significance, rows = view.significance, list[ExplainedRow]()
    rows.append(
        (
            "Runs",
            figures.count(significance["runs"]),
            "Finished runs with daily returns, repeats included. The more there are, the higher the best by chance.",
        )
    )
    rows.append(
        (
            "Sharpe of the best",
            figures.sharpe(significance["best_sharpe"], view.best is not None and view.best["few_days"]),
            "Of the best trial by the chosen metric.",
        )
    )
    rows.append(
        (
            "Best Sharpe by chance",
            figures.plain(significance["lucky_sharpe"]),
            "The expected maximum of as many runs without skill, from the variance between the runs.",
        )
    )
    rows.append(
        (
            "Deflated Sharpe",
            figures.share(significance["deflated_sharpe"], 1),
            "The probability that the true Sharpe of the best trial is above that (Bailey and López de Prado 2014). Below 95% it "
            "is not significant.",
        )
    )
    if (number(significance["runs_of_skill"]) or 0) > (number(significance["runs"]) or 0):
        rows.append(
            (
                "Over all runs of this skill",
                figures.share(significance["deflated_sharpe_of_skill"], 1),
                f"The same over the {figures.count(significance['runs_of_skill'])} finished runs of this skill that are stored here: other studies "
                "and single backtests count as well.",
            )
        )
    rows += overfit_rows(significance["overfitting"], "trials")
    return explained_table("Significance of the best trial", rows)


def _walk_significance(view: StudyView) -> Html:
    forward = view.forward
    rows = [
        (
            "Tried in each window",
            figures.count(forward.get("tried_in_each")),
            "All of them before the test period: the choice did not depend on those days, so the result needs no correction for it.",
        ),
        ("Out-of-sample days", figures.count(forward.get("days")), "Joined to one history; only these days count."),
        (
            "Out-of-sample Sharpe",
            figures.sharpe(forward.get("sharpe"), figures.has_few_days(forward)),
            _sharpe_around(forward),
        ),
        (
            "Probabilistic Sharpe",
            figures.share(forward.get("probabilistic_sharpe"), 1),
            "The probability that the true Sharpe is above zero. Below 95% it is not significant.",
        ),
    ]
    return join(
        [
            explained_table("Significance of the out-of-sample result", rows),
            tag(
                "p",
                "Repeating the walk-forward with other points or windows until the result is good is a search as well, and this page "
                "does not count it.",
                class_="note after",
            ),
        ]
    )


def _sharpe_around(forward: Plain) -> str:
    bounds = pair(forward.get("sharpe_ci"))
    return (
        "Too few days for an interval."
        if bounds is None
        else f"95% interval {figures.plain(bounds[0])} to {figures.plain(bounds[1])}."
    )


def limits(view: StudyView) -> Html:
    """The limits of the study."""
    sentences = [
        "Each run is an ordinary run: it has no data after its own ticks, and can be shown, verified and exported separately.",
        "Only runs that are stored here are counted, not those made elsewhere or deleted.",
        "This is one skill over one period of history. The best point here may not be the best in another period.",
    ]
    if view.plain["repeats"] > 1:
        sentences.append(
            "Repeats use another seed. They show the variation between runs of one point, not another market."
        )
    if any(not trial["model"].startswith(("policy/", "standin/")) for trial in view.trials):
        sentences.append(
            with_code(
                "The training data of a language model may include this period. `pitboss audit memory` tests for that."
            )
        )
    return sentence_list(sentences)
