"""The pause before a request is repeated: exponential backoff with full jitter. Pure: randomness is an argument."""

MOST_DOUBLINGS = 16
MOST_EXTRA_S = 1.0


def backoff_s(attempt: int, random: float, first_s: float, longest_s: float, requested_s: float | None = None) -> float:
    """Seconds to wait after the failed attempt number `attempt`, counted from 1.

    `random` is between 0 and 1. Without a hint of the server the pause is uniform between 0 and a bound that doubles with
    each attempt, from `first_s` up to `longest_s`. `requested_s` is the wait that the server asked for: it is kept, plus
    up to a second, so that clients with the same hint do not all return at the same moment.
    """
    bound_s = min(longest_s, first_s * 2 ** min(attempt - 1, MOST_DOUBLINGS))
    if requested_s is None:
        return random * bound_s
    return requested_s + random * min(MOST_EXTRA_S, bound_s)
