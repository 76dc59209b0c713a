"""The top of the page: the headline numbers and the result in a few sentences."""

from decimal import Decimal

from pitboss.core.money import ZERO
from pitboss.report import figures
from pitboss.report.funnel import Funnel
from pitboss.report.headline import note, tile
from pitboss.report.markup import Html, tag
from pitboss.report.source import model_cost
from pitboss.venues.community.panels.source import CommunityReport
from pitboss.venues.community.plain_text import eth_text


def found_bugs(report: CommunityReport) -> list[str]:
    """The planted bugs that the agent reported before anybody else."""
    return [bug for one in report.reports if one.by_agent for bug in one.new_bugs if bug in report.bugs]


def spent(report: CommunityReport) -> Decimal:
    """What the transactions have cost, in wei."""
    return sum((one.cost_wei for one in report.transactions), ZERO)


def tiles(report: CommunityReport, funnel: Funnel) -> Html:
    """The headline numbers."""
    own = [one.worth for one in report.reports if one.by_agent]
    threads = sum(thread.posts[0].is_own for thread in report.threads)
    comments = sum(post.is_own for thread in report.threads for post in thread.posts[1:])
    cost, _ = model_cost(report.run.document)
    bugs = found_bugs(report)
    first = (
        tile(
            "Planted bugs found",
            f"{len(bugs)} of {len(report.bugs)}",
            note(_bug_names(bugs)),
            len(bugs) or None,
            "lead",
        )
        if report.bugs
        else tile("Heartbeats", figures.count(funnel.ticks), note("of a live agent"), None, "lead")
    )
    return tag(
        "div",
        first,
        tile("Actions carried out", figures.count(funnel.accepted), note(_proposed(funnel)), None, "lead"),
        tile("Reports", figures.count(len(own)), note(_worths(report, own))),
        tile(
            "Posts",
            figures.count(threads + comments),
            note(f"{figures.plural(threads, 'thread')}, {figures.plural(comments, 'comment')}"),
        ),
        tile("Transactions", figures.count(len(report.transactions)), note(f"for {eth_text(spent(report))}")),
        tile("Refused", figures.count(funnel.total_refused), note(", ".join(funnel.refused) or "by no rule")),
        tile(
            "Cost of the model",
            figures.usd(cost),
            note(f"{figures.count(funnel.asked)} of {figures.plural(funnel.ticks, 'heartbeat')} asked"),
        ),
        class_="tiles",
    )


def _bug_names(bugs: list[str]) -> str:
    return ", ".join(bugs) if bugs else "none of them was reported by the agent first"


def _proposed(funnel: Funnel) -> str:
    return (
        f"of {figures.count(funnel.proposals)} that the agent proposed in {figures.plural(funnel.ticks, 'heartbeat')}"
    )


def _worths(report: CommunityReport, own: list[str]) -> str:
    if not own:
        return "to the owner"
    if not report.bugs:
        return "whether they are right is not known"
    parts = [(own.count("first"), "true"), (own.count("repeated"), "repeated"), (own.count("false"), "false")]
    return ", ".join(f"{count} {name}" for count, name in parts if count)


def paragraphs(report: CommunityReport, funnel: Funnel) -> list[str]:
    """The result in a few sentences."""
    who = f"The agent {report.handle}".rstrip()
    own = [one for one in report.reports if one.by_agent]
    sentences = [
        f"{who} took part in {report.community or 'its community'} for {figures.plural(funnel.ticks, 'heartbeat')} and carried out "
        f"{figures.plural(funnel.accepted, 'action')}."
    ]
    if report.bugs:
        bugs = found_bugs(report)
        sentences.append(
            f"It was the first to report {len(bugs)} of {figures.plural(len(report.bugs), 'planted bug')}"
            + (f", {'the first of them ' if len(bugs) > 1 else ''}after {_after(report)}." if bugs else ".")
        )
        false = sum(one.worth == "false" for one in own)
        if own:
            sentences.append(
                "None of its reports was false."
                if not false
                else f"{figures.plural(false, 'report')} of {len(own)} named no planted bug."
            )
    sentences.append(
        f"It sent {figures.plural(len(report.transactions), 'transaction')} for {eth_text(spent(report))}."
        if report.transactions
        else "It sent no transaction."
    )
    return [" ".join(sentences), funnel.refusals("action")]


def _after(report: CommunityReport) -> str:
    """The time from the beginning until the first bug was reported."""
    start = report.run.from_at
    first = next(one.at for one in report.reports if one.by_agent and one.new_bugs)
    return "an unknown time" if start is None else figures.span(first - start)
