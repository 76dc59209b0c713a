"""The page of a study: its sections in order. The document around them is that of every report."""

from pitboss.report import figures
from pitboss.report.headline import interval, label, note, tile
from pitboss.report.markup import Html, join, tag
from pitboss.report.runs import check_section
from pitboss.report.shell import Part, document, layout, resource
from pitboss.report.source import number
from pitboss.report.study.charts import search_chart, window_section
from pitboss.report.study.fields import field_section
from pitboss.report.study.summary import limits, luck_section, paragraphs
from pitboss.report.study.tables import cost_section, missing_section, trial_section, varied_section
from pitboss.report.study.view import Plain, StudyView, period
from pitboss.sim.study.axis import words_of

KINDS = {"grid": "Sweep", "random": "Random sweep", "search": "Search", "walk": "Walk-forward"}


def render(plain: Plain) -> str:
    """The whole page as one HTML document. Runs of the document may have an `href`, the address of their own report."""
    view = StudyView(plain)
    parts: list[Part] = [("varied", "Varied", "What was varied", varied_section(view))]
    if view.walks:
        parts.append(("windows", "Windows", "What was chosen, and what came of it", window_section(view)))
        parts.append(("fields", "Fields", "What each field did where it was chosen", field_section(view)))
    else:
        more = search_chart(view) if plain["kind"] == "search" else Html()
        parts.append(("fields", "Fields", "What each field does", join([more, field_section(view)])))
    parts += [
        ("luck", "Luck", "How much of it is luck", luck_section(view)),
        ("trials", "Trials", "Every trial", trial_section(view)),
        ("costs", "Costs", "What it cost", cost_section(view)),
        ("failed", "Failures", "Runs without a result", missing_section(view)),
        ("limits", "Limits", "How far this carries", limits(view)),
        ("verify", "Verify", "Check it yourself", check_section(plain["study_id"], "study", view.runs)),
    ]
    tiles = _walk_tiles(view) if view.walks else _tiles(view)
    body = layout(
        [_title(view), _labels(view), tiles],
        paragraphs(view),
        parts,
        "Past results of a simulation are not a promise. All times are UTC, all money is USD.",
    )
    return document(
        f"{plain['skill']} {KINDS.get(plain['kind'], 'study').lower()}",
        body,
        resource("pitboss.report.study", "study.css"),
    )


def _title(view: StudyView) -> Html:
    plain = view.plain
    facts = [
        ("Period", period(plain["from"], plain["to"])),
        ("Varied", ", ".join(name.rpartition(".")[2] for name in view.fields) or "nothing"),
        ("Judged by", view.metric.label),
        ("Runs", figures.count(plain["runs"])),
        ("Study", plain["study_id"]),
    ]
    if plain["name"]:
        facts.insert(0, ("Name", plain["name"]))
    whole = not view.failures
    chip = tag("span", "complete" if whole else "partial", class_=f"chip {'ok' if whole else 'warn'}")
    return tag(
        "header",
        tag("p", KINDS.get(plain["kind"], "Study"), " ", chip, class_="kicker"),
        tag("h1", plain["skill"] or "Unnamed skill"),
        tag("dl", *[tag("div", tag("dt", name), tag("dd", value)) for name, value in facts], class_="facts"),
        class_="title",
    )


def _labels(view: StudyView) -> Html:
    found: list[Html] = []
    if view.plain.get("synthetic"):
        found.append(label("Synthetic market", "The prices are generated. Nothing follows about a real market."))
    if view.failures:
        count = figures.plural(len(view.failures), "run has", "runs have")
        found.append(
            label("Not whole", f"{count} no result, so the best may be missing. The causes are under failures.")
        )
    if view.best is None and view.plain["counts"].get("complete"):
        words = f"No finished run has a {view.label}; judge by another metric with --by."
        found.append(label("Nothing to compare by", words))
    return tag("div", *found, class_="labels") if found else Html()


def _tiles(view: StudyView) -> Html:
    plain, luck, best = view.plain, view.luck, view.best
    chance, over = number(luck.get("deflated_sharpe")), luck.get("overfitting")
    value = None if best is None else view.value(best)
    return tag(
        "div",
        tile(
            f"Best {view.label}",
            view.shown(value),
            note(words_of(best["point"]) if best is not None else "no trial has it"),
            value if view.metric.form.startswith("signed") else None,
            "lead",
        ),
        tile(
            "Deflated Sharpe of the best",
            figures.share(chance, 0),
            note(_chance(chance, luck.get("runs"))),
            None,
            "lead",
        ),
        tile("Trials", figures.count(len(view.trials)), note(f"of {figures.plural(len(view.fields), 'varied field')}")),
        tile(
            "Runs",
            figures.count(plain["counts"].get("complete", 0)),
            note(f"of {figures.count(plain['runs'])} complete"),
        ),
        tile(
            "Overfitting",
            figures.share(over["probability"], 0) if over else figures.NONE,
            note("probability that choosing the best chooses noise" if over else "too few days to say"),
        ),
        tile("Sharpe that luck gives", figures.plain(luck.get("lucky_sharpe")), note("to the best of as many tries")),
        _cost(view),
        class_="tiles",
    )


def _walk_tiles(view: StudyView) -> Html:
    forward = view.forward
    total, windows = forward.get("total_return_pct"), forward.get("windows") or ()
    return tag(
        "div",
        tile(
            "Return of what was judged",
            figures.percent(total, signed=True),
            interval(forward.get("total_return_ci"), total, percent=True),
            total,
            "lead",
        ),
        tile(
            f"{view.metric.label}: where chosen → after",
            f"{view.shown(forward.get('inside_mean'))} → {view.shown(forward.get('outside_mean'))}",
            note("means over all windows; the first is what choosing promised"),
            None,
            "lead",
        ),
        tile(
            "Windows",
            figures.count(len(windows)),
            note(f"{figures.count(forward.get('tried_in_each'))} points tried in each"),
        ),
        tile("Days judged", figures.count(forward.get("days")), note("put together to one history")),
        tile("Sharpe", figures.plain(forward.get("sharpe")), note("of what was judged")),
        tile("Better after", _kept(view), note("windows in which the choice did no worse after it")),
        _cost(view),
        class_="tiles",
    )


def _kept(view: StudyView) -> str:
    pairs = [
        (one["inside"], one["outside"])
        for one in view.forward.get("windows") or ()
        if number(one["inside"]) is not None and number(one["outside"]) is not None
    ]
    kept = sum(not view.is_better(inside, outside) for inside, outside in pairs)
    return f"{kept} of {len(pairs)}" if pairs else figures.NONE


def _cost(view: StudyView) -> Html:
    cost = number(view.plain["cost_usd"]) or 0.0
    saved = number(view.plain["saved_usd"]) or 0.0
    words = f"{figures.usd(saved)} spared by known answers" if saved else "paid to models" if cost else "nothing to pay"
    return tile("Cost", figures.usd(cost), note(words))


def _chance(chance: float | None, runs: object) -> str:
    if chance is None:
        return "unknown: too few daily returns"
    return f"chance that it is more than the luck of the best of {figures.plural(runs, 'try', 'tries')}; below 95% proves nothing"
