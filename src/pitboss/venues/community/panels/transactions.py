"""The transactions of a run with their calls and costs."""

from pitboss.core.money import text
from pitboss.report import figures
from pitboss.report.markup import Html, join, tag
from pitboss.report.table import LEFT, RIGHT, table
from pitboss.venues.community.action_text import short_hex
from pitboss.venues.community.panels.source import CommunityReport, SentTransaction
from pitboss.venues.community.panels.summary import spent
from pitboss.venues.community.plain_text import eth_text

MOST = 500


def transaction_section(report: CommunityReport) -> Html:
    """The table, or a sentence if nothing was sent."""
    if not report.transactions:
        return tag("p", "The agent sent no transaction.", class_="note")
    columns = (
        ("When", LEFT),
        ("Contract", LEFT),
        ("Function", LEFT),
        ("Value", RIGHT),
        ("Cost with fees", RIGHT),
        ("Result", LEFT),
        ("Hash", LEFT),
    )
    rows = [_row(one) for one in report.transactions[:MOST]]
    omitted = len(report.transactions) - len(rows)
    note = f"Together {eth_text(spent(report))}, or {text(spent(report))} wei. " + (
        f"Only the first {MOST} are shown." if omitted > 0 else ""
    )
    return join([table("Transactions", columns, rows, style="sent"), tag("p", note, class_="note after")])


def _row(one: SentTransaction) -> tuple[object, ...]:
    call = tag(
        "span", tag("code", one.function or "unknown"), tag("small", one.call) if one.call else None, class_="stack"
    )
    return (
        figures.clock(one.at),
        one.contract,
        call,
        eth_text(one.value_wei),
        eth_text(one.cost_wei),
        "mined" if one.has_succeeded else tag("span", "reverted", class_="loss"),
        tag("code", short_hex(one.tx_hash), title=one.tx_hash),
    )
