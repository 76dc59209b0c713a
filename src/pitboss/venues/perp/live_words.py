"""What the report says about a deployment: where its orders went, and under which assumptions its numbers are."""

from pitboss.store.runs import Run

_ORDERS = {
    "paper": "Orders were filled on paper, by the bars of the exchange; none was sent.",
    "shadow": "It began with the positions of a live account; orders were filled on paper and none was sent.",
    "live": "Orders were sent to the exchange with real money.",
}
_LIVE_ASSUMPTIONS = (
    "Fills, fees, funding, margin and liquidations are those that the exchange reported.",
    "Equity is the account's value at each tick. Deposits and withdrawals change it too.",
    "Positions that the account had before the first tick count from their price at that time.",
)


def live_sentence(run: Run) -> str:
    """Say in a few words what a deployment did; empty for a backtest."""
    mode = str(run.params.get("mode") or "")
    if not mode:
        return ""
    ended = "It has ended" if run.status == "complete" else f"Its status is “{run.status}”"
    return f"The agent decided on the market of the moment. {_ORDERS.get(mode, '')} {ended}; every number covers what it did."


def live_assumptions(run: Run, paper: list[str]) -> list[str]:
    """Return the assumptions of a deployment; `paper` are those of the paper world, which fill its orders unless it is live."""
    return list(_LIVE_ASSUMPTIONS) if run.params.get("mode") == "live" else paper
