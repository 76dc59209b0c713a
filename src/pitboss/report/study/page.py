"""The page of a study: its sections in order, inside the document of `report/shell.py`."""

from pitboss.report import figures
from pitboss.report.headline import header, interval, label, label_list, note, sharpe_flag, tile
from pitboss.report.markup import Html, join, tag
from pitboss.report.runs import check_section
from pitboss.report.shell import Part, ReportPage, resource
from pitboss.report.source import Plain, number
from pitboss.report.study.charts import search_chart, window_section
from pitboss.report.study.fields import field_section
from pitboss.report.study.summary import limits, no_gain, paragraphs, significance_section
from pitboss.report.study.tables import cost_section, missing_section, trial_section, varied_section
from pitboss.report.study.view import StudyView, period
from pitboss.sim.study.axis import describe_point

KINDS = {"grid": "Sweep", "random": "Random sweep", "search": "Search", "walk": "Walk-forward"}


def compose(plain: Plain) -> ReportPage:
    """The page. Runs of the document may have an `href`, the address of their own report."""
    view = StudyView(plain)
    parts: list[Part] = [("varied", "Varied", "Varied fields", varied_section(view))]
    if view.is_walk_forward:
        parts.append(("windows", "Windows", "Choices and their out-of-sample results", window_section(view)))
        parts.append(("fields", "Fields", "Effect of each field in sample", field_section(view)))
    else:
        more = search_chart(view) if plain["kind"] == "search" else Html()
        parts.append(("fields", "Fields", "Effect of each field", join([more, field_section(view)])))
    if view.has_account:
        parts.append(("luck", "Chance", "How likely chance explains the result", significance_section(view)))
    parts += [
        ("trials", "Trials", "All trials", trial_section(view)),
        ("costs", "Costs", "Costs", cost_section(view)),
        ("failed", "Failures", "Runs without a result", missing_section(view)),
        ("limits", "Limits", "Limits of this study", limits(view)),
        ("verify", "Verify", "Verify this result", check_section(plain["study_id"], "study", view.runs)),
    ]
    tiles = _walk_tiles(view) if view.is_walk_forward else _tiles(view)
    return ReportPage(
        f"{plain['skill']} {KINDS.get(plain['kind'], 'study').lower()}",
        [_title(view), _labels(view), tiles],
        paragraphs(view),
        parts,
        style=resource("pitboss.report.study", "study.css"),
    )


def _title(view: StudyView) -> Html:
    plain = view.plain
    rows = [
        ("Period", period(plain["from"], plain["to"])),
        ("Varied", ", ".join(name.rpartition(".")[2] for name in view.fields) or "nothing"),
        ("Metric", view.metric.label),
        ("Runs", figures.count(plain["runs"])),
        ("Study", plain["study_id"]),
    ]
    if plain["name"]:
        rows.insert(0, ("Name", plain["name"]))
    complete = not view.failures
    status = "complete" if complete else "partial"
    return header(KINDS.get(plain["kind"], "Study"), status, complete, plain["skill"], rows)


def _labels(view: StudyView) -> Html:
    labels: list[Html] = []
    if view.plain.get("synthetic"):
        meaning = "The prices are generated. The result allows no conclusion about a real market."
        labels.append(label("Synthetic market", meaning))
    if view.failures:
        count = figures.plural(len(view.failures), "run has", "runs have")
        meaning = f"{count} no result, so the best trial may be missing. The causes are under failures."
        labels.append(label("Incomplete", meaning))
    if view.best is None and view.plain["counts"].get("complete"):
        meaning = f"No finished run has a {view.label}; choose another metric with --by."
        labels.append(label("No metric to compare", meaning))
    return label_list(labels)


def _tiles(view: StudyView) -> Html:
    plain, significance, best = view.plain, view.significance, view.best
    chance = number(significance.get("deflated_sharpe"))
    value = None if best is None else view.value(best)
    return tag(
        "div",
        tile(
            f"Best {view.label}",
            view.format_value(value),
            _best_note(view),
            value if view.metric.form.startswith("signed") else None,
            "lead",
        ),
        tile(
            "Deflated Sharpe of the best",
            figures.share(chance, 0),
            note(_chance(chance, significance)),
            None,
            "lead",
        )
        if view.has_account
        else None,
        tile("Trials", figures.count(len(view.trials)), note(f"of {figures.plural(len(view.fields), 'varied field')}")),
        tile(
            "Runs",
            figures.count(plain["counts"].get("complete", 0)),
            note(f"of {figures.count(plain['runs'])} complete"),
        ),
        *(_chance_tiles(significance) if view.has_account else ()),
        _cost(view),
        class_="tiles" if view.has_account else "tiles even",
    )


def _best_note(view: StudyView) -> Html:
    if view.best is None:
        return note("no trial has this metric")
    few_days = view.by == "sharpe" and view.best["few_days"]
    return join([note(describe_point(view.best["point"])), sharpe_flag(few_days)])


def _chance_tiles(significance: Plain) -> tuple[Html, Html]:
    over = significance.get("overfitting")
    return (
        tile(
            "Overfitting",
            figures.share(over["probability"], 0) if over else figures.NONE,
            note("probability that the best trial was selected by chance" if over else "too few days"),
        ),
        tile(
            "Best Sharpe by chance",
            figures.plain(significance.get("lucky_sharpe")),
            note("expected from as many runs without skill"),
        ),
    )


def _walk_tiles(view: StudyView) -> Html:
    forward = view.forward
    total, windows = forward.get("total_return_pct"), forward.get("windows") or ()
    is_short = forward.get("sharpe") is not None and figures.has_few_days(forward)
    return tag(
        "div",
        tile(
            "Out-of-sample return",
            figures.percent(total, signed=True),
            interval(forward.get("total_return_ci"), total, percent=True),
            total,
            "lead",
        ),
        tile(
            f"{view.metric.label}: in sample → out of sample",
            f"{view.format_value(forward.get('inside_mean'))} → {view.format_value(forward.get('outside_mean'))}",
            join(
                [
                    note("means over all windows"),
                    sharpe_flag(view.has_short_window(False) or view.has_short_window(True)),
                ]
            ),
            None,
            "lead",
        ),
        tile(
            "Windows",
            figures.count(len(windows)),
            note(f"{figures.plural(forward.get('tried_in_each'), 'point')} tried in each"),
        ),
        tile("Out-of-sample days", figures.count(forward.get("days")), note("joined to one history")),
        tile("Sharpe", figures.plain(forward.get("sharpe")), join([note("out of sample"), sharpe_flag(is_short)])),
        tile("Held up", _held_up(view), note("windows in which the choice did no worse out of sample")),
        _cost(view),
        class_="tiles",
    )


def _held_up(view: StudyView) -> str:
    pairs = [
        (window["inside"], window["outside"])
        for window in view.forward.get("windows") or ()
        if number(window["inside"]) is not None and number(window["outside"]) is not None
    ]
    count = sum(not view.is_better(inside, outside) for inside, outside in pairs)
    return f"{count} of {len(pairs)}" if pairs else figures.NONE


def _cost(view: StudyView) -> Html:
    cost = number(view.plain["cost_usd"]) or 0.0
    saved = number(view.plain["saved_usd"]) or 0.0
    text = (
        f"{figures.usd(saved)} saved by cached answers" if saved else "paid for models" if cost else "no model was paid"
    )
    return tile("Cost", figures.usd(cost), note(text))


def _chance(chance: float | None, significance: Plain) -> str:
    if chance is None:
        return "unknown: too few daily returns"
    if no_gain(number(significance.get("best_sharpe"))):
        return "its Sharpe is not above zero: there is no gain to tell from chance"
    runs = figures.plural(significance.get("runs"), "run")
    return f"probability that it exceeds the best of {runs} by chance; below 95% is not significant"
