"""Client of the predict protocol's indexer: markets with prices and surfaces, settings, trades and positions.

Read-only; binding quotes come from the chain. Addresses and ids are parameters, none is built in. Lists are documented
as newest first, but that order is not relied on: each row is counted once, and results are sorted.
"""

import asyncio
from collections.abc import Callable
from typing import TypeVar

from pitboss.core.errors import UserError
from pitboss.data.fetch import Fetcher, MalformedReply, Query, Reply, RequestRefused, address, host_of
from pitboss.venues.predict.data import wire
from pitboss.venues.predict.data.fields import MOST_ROWS, object_id, records, text, time
from pitboss.venues.predict.state import MarketTerms, Oracle, PredictWorld, Vault, open_markets, status
from pitboss.venues.predict.sui.chain import full_id, is_id

MOST_BYTES, MOST_LIST_BYTES = 16 * 2**20, 64 * 2**20
"""Largest reply, and largest list of oracles: it has every oracle ever created, about a hundred more each day."""
LIMIT = 100
MOST_MARKETS = 200
AT_ONCE = 8
REQUESTS, WINDOW_S = 100, 10.0
"""Rate limit of this client; the server documents none."""

T = TypeVar("T")


async def listed_predict_ids(fetcher: Fetcher, base_url: str) -> tuple[str, ...]:
    """Return the ids of the Predict objects whose markets an indexer lists."""

    def parse(reply: Reply) -> tuple[str, ...]:
        return tuple(sorted({object_id(row, "predict_id") for row in records(reply.json())}))

    return await fetcher.ask(Query(f"{_base_address(base_url)}/oracles", {}, most_bytes=MOST_LIST_BYTES), parse)


def _base_address(base_url: str) -> str:
    if not base_url:
        raise UserError(
            "the address of the predict protocol's indexer is not set",
            "set PITBOSS_PREDICT_SERVER_URL, or predict_server_url in settings.toml",
        )
    return address(base_url)


class Indexer:
    """One deployment of the protocol: its server and its Predict object."""

    def __init__(self, fetcher: Fetcher, base_url: str, predict_id: str) -> None:
        self._base = _base_address(base_url)
        self._fetcher = fetcher
        self._budget = fetcher.budget(REQUESTS, WINDOW_S)
        self.predict_id = checked_id(predict_id, "predict_id")

    async def health(self) -> wire.Health:
        """Return how far the indexer is behind the chain."""
        return await self._ask("/status", lambda reply: wire.health(reply.json()))

    async def protocol(self) -> wire.Protocol:
        """Return the current spreads, ask bounds and exposure cap."""

        def parse(reply: Reply) -> wire.Protocol:
            return wire.protocol_state(reply.json(), self.predict_id, MarketTerms())

        return await self._ask(f"/predicts/{self.predict_id}/state", parse)

    async def vault(self) -> wire.VaultSummary:
        """Return the vault's balance and liabilities."""

        def parse(reply: Reply) -> wire.VaultSummary:
            return wire.vault_summary(reply.json(), self.predict_id)

        return await self._ask(f"/predicts/{self.predict_id}/vault/summary", parse)

    async def oracles(self) -> tuple[Oracle, ...]:
        """Return the oracles that have not expired, by expiry, without prices.

        The indexer sends every oracle that was ever created. Of the expired ones nothing but the expiry is read.
        """

        def parse(reply: Reply) -> tuple[Oracle, ...]:
            oracles: dict[str, Oracle] = {}
            for row in records(reply.json()):
                if time(row, "expiry") <= reply.asked_at:
                    continue
                oracle = wire.oracle_of_row(row)
                if oracles.setdefault(oracle.id, oracle) != oracle:
                    raise MalformedReply("one oracle is listed twice with different terms")
            return tuple(sorted(oracles.values(), key=lambda oracle: (oracle.expiry_at, oracle.id)))

        return await self._ask(self._list, parse, most_bytes=MOST_LIST_BYTES)

    async def underlyings(self) -> tuple[str, ...]:
        """Return the underlyings of all oracles that were ever created."""

        def parse(reply: Reply) -> tuple[str, ...]:
            return tuple(sorted({text(row, "underlying_asset") for row in records(reply.json())}))

        return await self._ask(self._list, parse, most_bytes=MOST_LIST_BYTES)

    async def oracle(self, oracle_id: str) -> Oracle:
        """Return one oracle with its newest price, surface and ask bounds."""
        name = checked_id(oracle_id, "market_id")
        return await self._ask(
            f"/oracles/{name}/state", lambda reply: wire.oracle_state(reply.json(), name, reply.asked_at)
        )

    async def markets(self, underlying: str | None = None) -> tuple[Oracle, ...]:
        """Return the markets that are open now, with prices; of twins the one that still gets prices.

        The indexer reports a market as active until it is settled; here it is inactive from its expiry on.
        """
        now = self._fetcher.now()
        listed = [
            oracle
            for oracle in await self.oracles()
            if status(oracle, now) == "active" and underlying in (None, oracle.underlying)
        ]
        if len(listed) > MOST_MARKETS:
            raise UserError(
                f"{self._host} lists {len(listed)} open markets, more than the protocol's schedule can have"
            )
        oracles: dict[str, Oracle] = {}
        for start in range(0, len(listed), AT_ONCE):
            requests = (self._or_none(oracle.id) for oracle in listed[start : start + AT_ONCE])
            oracles |= {oracle.id: oracle for oracle in await asyncio.gather(*requests) if oracle is not None}
        return open_markets(PredictWorld(Vault(0), oracles=oracles), self._fetcher.now(), underlying)

    async def fills(self, oracle_id: str, limit: int = LIMIT) -> tuple[wire.IndexedFill, ...]:
        """Return the newest trades of one market, newest first."""
        name = checked_id(oracle_id, "market_id")

        def parse(reply: Reply) -> tuple[wire.IndexedFill, ...]:
            fills = [wire.fill(row, name, reply.asked_at) for row in records(reply.json(), limit)]
            rows = {row.digest: row for row in fills}
            return tuple(sorted(rows.values(), key=lambda row: (-row.at, row.digest)))

        return await self._ask(f"/trades/{name}", parse, {"limit": str(_bounded(limit))})

    async def redemptions(self, manager_id: str, oracle_id: str, limit: int = LIMIT) -> tuple[wire.IndexedFill, ...]:
        """Return a manager's newest redeems in one market, newest first."""
        manager, name = checked_id(manager_id, "predict_manager_id"), checked_id(oracle_id, "market_id")

        def parse(reply: Reply) -> tuple[wire.IndexedFill, ...]:
            fills = [wire.redemption(row, name, manager, reply.asked_at) for row in records(reply.json(), limit)]
            rows = {row.digest: row for row in fills}
            return tuple(sorted(rows.values(), key=lambda row: (-row.at, row.digest)))

        parameters = {"manager_id": manager, "oracle_id": name, "limit": str(_bounded(limit))}
        return await self._ask("/positions/redeemed", parse, parameters)

    async def positions(self, manager_id: str) -> tuple[wire.ManagerPosition, ...]:
        """Return the open and closed positions of a manager, by expiry and contract."""
        name = checked_id(manager_id, "predict_manager_id")

        def parse(reply: Reply) -> tuple[wire.ManagerPosition, ...]:
            rows = [wire.manager_position(row) for row in records(reply.json())]
            if len({row.contract.key for row in rows}) != len(rows):
                raise MalformedReply("one position is listed twice")
            return tuple(sorted(rows, key=lambda row: (row.expiry_at, row.contract.key)))

        return await self._ask(f"/managers/{name}/positions/summary", parse)

    @property
    def _list(self) -> str:
        return f"/predicts/{self.predict_id}/oracles"

    @property
    def _host(self) -> str:
        return host_of(self._base)

    async def _or_none(self, oracle_id: str) -> Oracle | None:
        try:
            return await self.oracle(oracle_id)
        except Unknown:
            return None  # listed, but removed before this request

    async def _ask(
        self,
        path: str,
        parse: Callable[[Reply], T],
        parameters: dict[str, str] | None = None,
        most_bytes: int = MOST_BYTES,
    ) -> T:
        query = Query(f"{self._base}{path}", parameters or {}, most_bytes=most_bytes)
        try:
            return await self._fetcher.ask(query, parse, self._budget)
        except RequestRefused as error:
            if error.status != 404:
                raise
            raise Unknown(
                f"{self._host} knows nothing at {_short(path)}", "check predict_server_url and the ids in the settings"
            ) from None


class Unknown(UserError):
    """The indexer has no object with this id."""


def checked_id(text: str, setting: str) -> str:
    """Validate an id given by the user and expand it; it becomes part of a URL, so nothing else may be in it."""
    if not is_id(text.strip()):
        raise UserError(f"{setting} {text!r} is not an id", "0x and up to 64 hex digits; ids come from the settings")
    return full_id(text.strip())


def _bounded(limit: int) -> int:
    if not 0 < limit <= MOST_ROWS:
        raise UserError(f"a limit of {limit} rows is out of range", f"between 1 and {MOST_ROWS:,}")
    return limit


def _short(path: str) -> str:
    """Abbreviate the ids in a path for messages."""
    return "/".join(f"{part[:10]}…" if part.startswith("0x") else part for part in path.split("/"))
