"""Nonces of signers: the 100 highest of each are kept, unused ones above the smallest are accepted, within a window around now."""

import heapq

from pitboss.core.instant import DAY_MS, Instant
from pitboss.testing.hyperliquid import refusals

MOST = 100
BEFORE_MS = 2 * DAY_MS
AFTER_MS = DAY_MS


class NonceBook:
    """The nonces of all signers."""

    def __init__(self) -> None:
        self._heaps: dict[str, list[int]] = {}
        self._used: dict[str, set[int]] = {}

    def refusal(self, signer: str, nonce: int, now: Instant) -> str:
        """Take a nonce: empty if it was accepted, otherwise why not."""
        if nonce <= now - BEFORE_MS:
            return refusals.NONCE_TOO_LOW.format(nonce=nonce, least=now - BEFORE_MS)
        if nonce >= now + AFTER_MS:
            return refusals.NONCE_TOO_HIGH.format(nonce=nonce, most=now + AFTER_MS)
        heap, used = self._heaps.setdefault(signer, []), self._used.setdefault(signer, set())
        if nonce in used:
            return refusals.DUPLICATE_NONCE.format(nonce=nonce)
        if len(heap) >= MOST:
            if nonce < heap[0]:
                return refusals.NONCE_TOO_LOW.format(nonce=nonce, least=heap[0])
            used.discard(heapq.heappushpop(heap, nonce))
        else:
            heapq.heappush(heap, nonce)
        used.add(nonce)
        return ""

    def prune(self, signer: str) -> None:
        """Forget a signer's nonces, as happens to agents that are deregistered: its old actions could be replayed."""
        self._heaps.pop(signer, None)
        self._used.pop(signer, None)
