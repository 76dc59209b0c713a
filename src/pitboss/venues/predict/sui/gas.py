"""Choice of the coin that pays for a transaction, and the check that a node belongs to the expected network."""

from collections.abc import Callable, Collection, Sequence

from pitboss.venues.predict.sui.chain import MAINNET, Coin, TransactionBasis


def gas_coin(
    basis: TransactionBasis, sender: str, network: str, budget: int, used: Callable[[Sequence[str]], Collection[str]]
) -> Coin | str:
    """Return the coin that pays for the next transaction, or why there is none. `used` gives the keys not to be used."""
    if not basis.coins:
        return f"{sender} has no SUI on {network} to pay for gas"
    sufficient = [coin for coin in basis.coins if coin.balance >= budget]
    if not sufficient:
        most = max(coin.balance for coin in basis.coins)
        return f"the largest coin of {sender} has {most:,} MIST, and gas_budget is {budget:,}"
    used_coins = used([coin.key for coin in sufficient])
    free = [coin for coin in sufficient if coin.key not in used_coins]
    if not free:
        return "the gas coin was used a moment ago, and the node has not caught up"
    return max(free, key=lambda coin: (coin.balance, coin.id))


def network_problem(basis: TransactionBasis, network: str) -> str:
    """Return what is wrong with the node's network; empty if it is the expected one."""
    real = basis.chain_id in MAINNET
    if real == (network == "mainnet"):
        return ""
    network_name = "mainnet" if real else f"another network ({basis.chain_id})"
    return f"the node belongs to {network_name}, and the setting sui_network says {network}"
