"""The texts with which the exchange refuses: the documented list, and those that public records of the exchange show.

Refusals of one order or cancel end in ` asset=N` on the exchange, which `of_asset` adds. `ORDER_STATUS` gives the status under which
a refused order appears in `orderStatus` and `historicalOrders`.
"""

TICK = "Price must be divisible by tick size."
LOT = "Order has invalid size."
MIN_NOTIONAL = "Order must have minimum value of $10."
MARGIN = "Insufficient margin to place order."
REDUCE_ONLY = "Reduce only order would increase position."
POST_ONLY = "Post only order would have immediately matched, bbo was {bid}@{ask}."
NO_MATCH = "Order could not immediately match against any resting orders."
TRIGGER_PRICE = "Invalid TP/SL price."
NO_LIQUIDITY = "No liquidity available for market order."
ORACLE_DISTANCE = "Order price cannot be more than 80% away from the reference price"
POSITION_TIER = "Order would cause position to exceed margin tier limit at current leverage"
OPEN_INTEREST = "Order would increase open interest while open interest is capped"
POST_ONLY_PHASE = "Only post-only orders allowed immediately after network upgrade"
HALTED = "Trading is halted."
MISSING_ORDER = "Order was never placed, already canceled, or filled."
MODIFY_MISSING = "Cannot modify canceled or filled order"

EXPIRED = "Action already expired"
UNKNOWN_SIGNER = "User or API Wallet {address} does not exist."
DUPLICATE_NONCE = "Invalid nonce: duplicate nonce {nonce}"
NONCE_TOO_LOW = "Invalid nonce: nonce too low {nonce} < {least}"
NONCE_TOO_HIGH = "Invalid nonce: nonce too high {nonce} > {most}"
UNKNOWN_VAULT = "Vault not registered: {address}"
ADDRESS_BUDGET = (
    "Too many cumulative requests sent ({used} > {cap}) for cumulative volume traded ${volume}. "
    "Place taker orders to free up 1 request per USDC traded."
)
LEVERAGE = "Invalid leverage value"
LEVERAGE_CROSS = (
    "Cross position does not have sufficient margin available to decrease leverage. "
    "To decrease leverage, deposit more collateral."
)
LEVERAGE_ISOLATED = (
    "Isolated position does not have sufficient margin available to decrease leverage. "
    "To decrease leverage, add margin to the position."
)
CROSS_NOT_ALLOWED = "Cross margin is not allowed for this asset."
SWITCH_MARGIN_MODE = "Cannot switch leverage type with open position."
ISOLATED_MARGIN = "Insufficient margin for isolated margin update."
SCHEDULE_VOLUME = "Cannot set scheduled cancel time until enough volume traded. Required: $1000000. Traded: ${volume}."
SCHEDULE_TOO_SOON = "Scheduled cancel time too early, must be at least 5 seconds from now."
SCHEDULE_TOO_MANY = "Cannot set scheduled cancel time, too many triggers today."

ORDER_STATUS = {
    TICK: "tickRejected",
    MIN_NOTIONAL: "minTradeNtlRejected",
    MARGIN: "perpMarginRejected",
    REDUCE_ONLY: "reduceOnlyRejected",
    POST_ONLY: "badAloPxRejected",
    NO_MATCH: "iocCancelRejected",
    TRIGGER_PRICE: "badTriggerPxRejected",
    NO_LIQUIDITY: "marketOrderNoLiquidityRejected",
    ORACLE_DISTANCE: "oracleRejected",
    POSITION_TIER: "perpMaxPositionRejected",
    OPEN_INTEREST: "positionIncreaseAtOpenInterestCapRejected",
}


def of_asset(text: str, asset: int) -> str:
    """The refusal of one order as the exchange writes it."""
    return f"{text} asset={asset}"
