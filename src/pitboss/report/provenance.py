"""The last sections of a page: assumptions and limits, the skill document, and how to verify the result."""

from collections.abc import Sequence

from pitboss.report import cutoff
from pitboss.report.markup import Html, join, tag
from pitboss.report.source import RunReport
from pitboss.report.table import LEFT, facts, table


def assumption_section(report: RunReport, assumptions: Sequence[str], limits: Sequence[str]) -> Html:
    """The assumptions of the run and the fill model, then the limits of the result: the venue's and those of any run."""
    general: list[str] = []
    if not report.standin:
        general.append(
            "The training data of a language model may include this period. A good result before its training cutoff can "
            "come from memory, and its answers may differ between calls."
        )
    if cutoff.sentence(report):
        general.append(cutoff.sentence(report))
    return join(
        [
            sentence_list([sentence for sentence in assumptions if sentence]),
            realism_table(report),
            tag("h3", "Limits of these numbers"),
            sentence_list([*limits, *general]),
        ]
    )


def sentence_list(sentences: Sequence[str]) -> Html:
    """Sentences as a list; nothing without any."""
    return tag("ul", *[tag("li", sentence) for sentence in sentences], class_="plain") if sentences else Html()


def realism_table(report: RunReport) -> Html:
    """Each setting of the fill model, and whether it was off, at its default or set by the user."""
    if not report.realism:
        return Html()
    columns = [("What", LEFT), ("In this run", LEFT), ("Setting", LEFT)]
    rows = [[str(row.get(name) or "") for name in ("about", "value", "state")] for row in report.realism]
    return table("Realism of the fills", columns, rows)


def skill_section(report: RunReport) -> Html:
    lines = report.skill_text.count("\n") + 1
    return tag(
        "details",
        tag("summary", f"{report.skill_name or 'skill'}: the document of this run ({lines} lines)"),
        tag("pre", tag("code", report.skill_text)),
        open=lines <= 90,
        class_="document",
    )


def verify_section(report: RunReport) -> Html:
    """The digests and the commands that recompute them."""
    document = report.document
    digests = [
        ("Run", report.run_id),
        ("Run digest", document.get("digest")),
        ("Skill digest", document.get("skill_digest")),
        ("Data digest", document.get("data_digest")),
        ("Made with", f"pitboss {report.version}".strip()),
    ]
    commands = (
        ("Recompute the digest chain and the metrics from the stored records", f"runs verify {report.run_id}"),
        ("Read every tick: prompt, steps, verdict, receipts", f"runs export {report.run_id} --what snapshots"),
        ("Every fill, exact to the last digit", f"runs export {report.run_id} --what fills")
        if report.has_account
        else ("Every receipt: what the world answered", f"runs export {report.run_id} --what receipts"),
    )
    steps = [
        tag("li", text, tag("pre", tag("code", f"{report.program} {command}{report.workspace_option}")))
        for text, command in commands
    ]
    text = (
        "A digest chains every tick to the previous one. The same skill, data and model answers give the same run "
        "digest on any machine; a single changed byte gives a different one."
    )
    return join(
        [
            tag("p", text),
            facts([(name, tag("code", value)) for name, value in digests if value], "digests"),
            tag("ol", *steps, class_="commands"),
        ]
    )
