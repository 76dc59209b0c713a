"""The foot of the page: what was assumed, the skill as it ran, and how anyone can check the result."""

from pitboss.report import cutoff
from pitboss.report.markup import Html, join, tag
from pitboss.report.source import RunReport
from pitboss.report.table import LEFT, table


def assumption_section(report: RunReport) -> Html:
    """The caller's sentences, then how far the numbers carry."""
    given = [tag("li", sentence) for sentence in report.assumptions]
    limits = [
        "This is one run over one stretch of history. The intervals come from resampling its own daily returns: they "
        "show how much luck could do within this period, not how another period would go.",
        "Fills follow fixed rules on bars. Real order books, outages and the effect of larger orders are simpler here "
        "than they would be.",
    ]
    if not report.standin:
        limits.append(
            "A language model may have read about this period while it was trained. A good result before its training "
            "cutoff can be memory, not judgement, and its answers may differ when it is asked again."
        )
    if cutoff.sentence(report):
        limits.append(cutoff.sentence(report))
    return join(
        [
            tag("ul", *given, class_="plain") if given else Html(),
            realism_table(report),
            tag("h3", "How far these numbers carry"),
            tag("ul", *[tag("li", sentence) for sentence in limits], class_="plain"),
        ]
    )


def realism_table(report: RunReport) -> Html:
    """Each setting of how orders meet the market, and whether it was off, as it always is, or asked for."""
    if not report.realism:
        return Html()
    columns = [("What", LEFT), ("In this run", LEFT), ("Setting", LEFT)]
    rows = [[str(row.get(name) or "") for name in ("about", "value", "state")] for row in report.realism]
    return table("How real the fills are", columns, rows)


def skill_section(report: RunReport) -> Html:
    lines = report.skill_text.count("\n") + 1
    return tag(
        "details",
        tag("summary", f"{report.skill_name or 'skill'}: the document as it ran ({lines} lines)"),
        tag("pre", tag("code", report.skill_text)),
        open=lines <= 90,
        class_="document",
    )


def verify_section(report: RunReport) -> Html:
    """Digests and the commands that recompute them."""
    document = report.document
    named = [
        ("Run", report.run_id),
        ("Run digest", document.get("digest")),
        ("Skill digest", document.get("skill_digest")),
        ("Data digest", document.get("data_digest")),
        ("Made with", f"pitboss {report.version}".strip()),
    ]
    rows = [tag("div", tag("dt", name), tag("dd", tag("code", value))) for name, value in named if value]
    commands = (
        ("Recompute the digest chain and the metrics from what is stored", f"pitboss runs verify {report.run_id}"),
        ("Read every tick: prompt, steps, verdict, receipts", f"pitboss runs export {report.run_id} --what snapshots"),
        ("Every fill, exact to the last digit", f"pitboss runs export {report.run_id} --what fills"),
    )
    steps = [tag("li", words, tag("pre", tag("code", command))) for words, command in commands]
    words = (
        "Every tick is chained to the one before it by a digest. The same skill, data and answers give the same run "
        "digest on any machine; one changed byte gives another."
    )
    return join([tag("p", words), tag("dl", *rows, class_="digests"), tag("ol", *steps, class_="commands")])
