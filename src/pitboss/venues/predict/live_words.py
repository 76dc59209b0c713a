"""What the report says about a live run: what it traded, where its orders went, and under which assumptions."""

from pitboss.models.providers import PROGRAMS
from pitboss.store.runs import Run
from pitboss.venues.predict.request import INDEXER

_ORDERS = {
    "paper": "Orders were filled on paper; no transaction was sent.",
    "sui": "Orders were transactions on the Sui chain.",
    "dry run": "Orders were simulated on the Sui chain and not sent.",
}


def live_sentence(run: Run) -> str:
    """Say in a few words what a live run is."""
    markets = "the protocol's markets" if _is_indexed(run) else "markets of the protocol's schedule"
    ended = "It ended by itself" if run.status == "complete" else f"Its status is “{run.status}”"
    orders = _ORDERS.get(str(run.params.get("mode")), "")
    return f"The agent decided on {markets} at the prices of the moment. {orders} {ended}; every number covers what it did."


def live_assumptions(run: Run) -> list[str]:
    """Return one or two sentences for each assumption of a live run."""
    sentences = [
        "A tick sees only what was published before its instant. An order is executed at the first price of its market "
        "after the decision was made, quoted again for its size and judged again by every rule.",
        "There is no fee besides the spread. Contracts that have not settled are valued at their bid.",
        "A live run cannot be replayed, so it has no heuristics over the same prices to compare with.",
    ]
    if _is_indexed(run):
        sentences += [
            "Markets, prices, surfaces, settings, the vault and settlements are those that the protocol's indexer reported.",
            "Contracts bought on paper are added to the vault's liability; other traders do not see them.",
        ]
    else:
        sentences.append(
            "Markets are those of the protocol's schedule with surfaces fitted to the realised volatility; a paper vault of "
            "1,000,000 sells every contract, and no other account trades with it."
        )
    if run.model.startswith(PROGRAMS):
        sentences.append(f"{run.model} is a fixed rule that reads numbers; it does not read the skill's text.")
    return sentences


def _is_indexed(run: Run) -> bool:
    return run.params.get("data_venue") == INDEXER
