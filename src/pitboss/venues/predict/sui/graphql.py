"""`GraphqlChain`: implements `Chain` over a node's GraphQL service. The only module that contains its queries.

It uses aiohttp instead of pysui's client. That client downloads and compiles a whole schema before its first query,
keeps a configuration in the home folder, and uses types of another protocol, none of which a test can replay. Here a
send must leave exactly once, and a lost reply must be distinguishable from an answer. No key reaches this module: it
sends signed bytes, which are public. The shapes are those of the service's published schema.
"""

import base64
import binascii
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

import orjson

from pitboss.core.errors import TransientError, UserError
from pitboss.venues.predict.sui.chain import (
    SUI,
    ChainEvent,
    Coin,
    Effects,
    Shared,
    TransactionBasis,
    full_id,
    is_digest,
    is_id,
)

if TYPE_CHECKING:
    import aiohttp

TIMEOUT_S = 15.0
MOST_BYTES = 4 * 2**20
MOST_COINS = 50

_EFFECTS = """
  digest status executionError { abortCode message module { name } }
  events(first: 50) { nodes { contents { type { repr } json } } }
"""
GROUND = """query Ground($keys: [ObjectKey!]!, $owner: SuiAddress!, $coin: String!, $most: Int!) {
  chainIdentifier
  epoch { epochId referenceGasPrice }
  multiGetObjects(keys: $keys) { address owner { __typename ... on Shared { initialSharedVersion } } }
  address(address: $owner) {
    objects(first: $most, filter: { type: $coin }) { nodes { address version digest contents { json } } }
  }
}"""
CONTENTS = """query Contents($keys: [ObjectKey!]!) {
  multiGetObjects(keys: $keys) { address asMoveObject { contents { json } } }
}"""
COINS = """query Coins($owner: SuiAddress!, $coin: String!, $most: Int!) {
  address(address: $owner) {
    objects(first: $most, filter: { type: $coin }) { nodes { address version digest contents { json } } }
  }
}"""
SIMULATE = f"""query Simulate($transaction: JSON!) {{
  simulateTransaction(transaction: $transaction, checksEnabled: true, doGasSelection: false) {{
    error
    effects {{ {_EFFECTS} }}
    outputs {{ returnValues {{ value {{ bcs }} }} }}
  }}
}}"""
EXECUTE = f"""mutation Execute($tx: Base64!, $signatures: [Base64!]!) {{
  executeTransaction(transactionDataBcs: $tx, signatures: $signatures) {{ effects {{ {_EFFECTS} }} errors }}
}}"""
OUTCOME = f"""query Outcome($digest: String!) {{ transactionEffects(digest: $digest) {{ {_EFFECTS} }} }}"""
CONSUMER = """query Consumer($id: SuiAddress!, $version: UInt53!) {
  objectVersions(first: 1, address: $id, filter: { afterVersion: $version }) {
    nodes {
      previousTransaction {
        effects { digest objectChanges(first: 50) { nodes { address inputState { version } } } }
      }
    }
  }
}"""
EPOCH = "query Epoch { epoch { epochId } }"


T = TypeVar("T")
_DIGITS = re.compile(r"[0-9]{1,20}")


class GraphqlChain:
    """One node. Call `close` after use."""

    def __init__(self, url: str, timeout_s: float = TIMEOUT_S) -> None:
        try:
            parts = urlsplit(url.strip())
        except ValueError:  # such as https://[::1
            parts = urlsplit("")
        if parts.scheme not in ("http", "https") or not parts.netloc:
            raise UserError("the address of the Sui node is not valid", "set sui_node_url to an https:// address")
        self._url = url.strip()
        self._host = parts.netloc.rpartition("@")[2]
        self._timeout_s = timeout_s
        self._session: aiohttp.ClientSession | None = None

    async def read_basis(self, ids: Sequence[str], owner: str) -> TransactionBasis:
        """See `Chain`."""
        keys = [{"address": name} for name in ids]
        variables = {"keys": keys, "owner": owner, "coin": f"0x2::coin::Coin<{SUI}>", "most": MOST_COINS}
        return await self._ask(GROUND, variables, _basis)

    async def contents(self, ids: Sequence[str]) -> Mapping[str, Mapping[str, Any]]:
        """See `Chain`."""
        return await self._ask(CONTENTS, {"keys": [{"address": name} for name in ids]}, _contents)

    async def coins(self, owner: str, coin_type: str) -> tuple[Coin, ...]:
        """See `Chain`."""
        variables = {"owner": owner, "coin": f"0x2::coin::Coin<{coin_type}>", "most": MOST_COINS}
        return await self._ask(COINS, variables, _coins)

    async def simulate(self, tx: bytes) -> Effects:
        """See `Chain`."""
        transaction = {"bcs": {"value": base64.b64encode(tx).decode()}}
        return await self._ask(SIMULATE, {"transaction": transaction}, _simulation)

    async def execute(self, tx: bytes, signature: str) -> Effects:
        """See `Chain`. Sent once: retries are the caller's decision."""
        variables = {"tx": base64.b64encode(tx).decode(), "signatures": [signature]}
        return await self._ask(EXECUTE, variables, _execution)

    async def outcome(self, digest: str) -> Effects | None:
        """See `Chain`."""
        return await self._ask(OUTCOME, {"digest": digest}, _outcome)

    async def consumer(self, object_id: str, version: int) -> str | None:
        """See `Chain`."""
        variables = {"id": object_id, "version": version}
        return await self._ask(CONSUMER, variables, lambda data: _consumer(data, object_id, version))

    async def epoch(self) -> int:
        """See `Chain`."""
        return await self._ask(EPOCH, {}, lambda data: _number(_object(data, "epoch"), "epochId"))

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _ask(self, query: str, variables: Mapping[str, Any], parse: Callable[[Mapping[str, Any]], T]) -> T:
        import aiohttp

        if self._session is None:
            timeout = aiohttp.ClientTimeout(total=self._timeout_s)
            self._session = aiohttp.ClientSession(timeout=timeout, trust_env=False)
        body = orjson.dumps({"query": query, "variables": variables})
        headers = {"Content-Type": "application/json", "User-Agent": "pitboss"}
        try:
            async with self._session.post(self._url, data=body, headers=headers, allow_redirects=False) as response:
                if response.status != 200:
                    raise TransientError(f"{self._host} answers {response.status}")
                content = bytearray()
                async for part in response.content.iter_chunked(2**16):
                    content += part
                    if len(content) > MOST_BYTES:
                        raise TransientError(f"{self._host} sent more than {MOST_BYTES:,} bytes")
        except TimeoutError:
            raise TransientError(f"{self._host} gave no whole answer in {self._timeout_s:g} s") from None
        except aiohttp.ClientError as error:
            raise TransientError(f"{self._host} cannot be asked ({type(error).__name__})") from None
        return parse_reply(bytes(content), self._host, parse)


def parse_reply(content: bytes, host: str, parse: Callable[[Mapping[str, Any]], T]) -> T:
    """Parse a reply. Anything that is not an answer to the query raises `TransientError`."""
    try:
        reply = orjson.loads(content)
    except orjson.JSONDecodeError:
        raise TransientError(f"{host} sent no whole JSON") from None
    if not isinstance(reply, dict) or reply.get("errors") or not isinstance(reply.get("data"), dict):
        message = _error_text(reply.get("errors") if isinstance(reply, dict) else None)
        raise TransientError(f"{host} answers with an error: {message}")
    try:
        return parse(reply["data"])
    except (AttributeError, TypeError, ValueError, KeyError):  # wrong JSON types, such as a list instead of an object
        raise TransientError(f"{host} sent something else than was asked for") from None


def _basis(data: Mapping[str, Any]) -> TransactionBasis:
    epoch = _object(data, "epoch")
    shared: dict[str, Shared] = {}
    for node_object in _list(data, "multiGetObjects"):
        owner = (node_object or {}).get("owner") or {}
        if owner.get("__typename") == "Shared":
            name = full_id(_id(node_object, "address"))
            shared[name] = Shared(name, _number(owner, "initialSharedVersion"))
    coins = _coins(data)
    chain_id, price = _text(data, "chainIdentifier"), _number(epoch, "referenceGasPrice")
    return TransactionBasis(chain_id, _number(epoch, "epochId"), price, shared, coins)


def _coins(data: Mapping[str, Any]) -> tuple[Coin, ...]:
    return tuple(
        Coin(
            full_id(_id(node, "address")),
            _number(node, "version"),
            _digest(node),
            _number(_object(_object(node, "contents"), "json"), "balance"),
        )
        for node in _list(_object(_object(data, "address"), "objects"), "nodes")
    )


def _contents(data: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {
        full_id(_id(node, "address")): _object(_object(_object(node, "asMoveObject"), "contents"), "json")
        for node in _list(data, "multiGetObjects")
        if node is not None
    }


def _simulation(data: Mapping[str, Any]) -> Effects:
    simulation = _object(data, "simulateTransaction")
    if simulation.get("effects") is None and simulation.get("error"):
        raise TransientError(f"the node cannot simulate it: {_error_text(simulation['error'])}")
    outputs = tuple(
        tuple(_bytes(_object(value, "value"), "bcs") for value in (command or {}).get("returnValues") or ())
        for command in simulation.get("outputs") or ()
    )
    return _effects(_object(simulation, "effects"), outputs)


def _execution(data: Mapping[str, Any]) -> Effects:
    execution = _object(data, "executeTransaction")
    if not execution.get("effects"):
        raise TransientError(f"the node did not run it: {_error_text(execution.get('errors'))}")
    return _effects(_object(execution, "effects"))


def _outcome(data: Mapping[str, Any]) -> Effects | None:
    return None if data["transactionEffects"] is None else _effects(_object(data, "transactionEffects"))


def _consumer(data: Mapping[str, Any], object_id: str, version: int) -> str | None:
    """Return the transaction that reports itself as the consumer of this version; any other is not proof."""
    for node in _list(_object(data, "objectVersions"), "nodes"):
        effects = _object(_object(node, "previousTransaction"), "effects")
        for change in _list(_object(effects, "objectChanges"), "nodes"):
            before = change.get("inputState")
            if before and full_id(_id(change, "address")) == object_id and _number(before, "version") == version:
                return _digest(effects)
    return None


def _effects(effects: Mapping[str, Any], outputs: tuple[tuple[bytes, ...], ...] = ()) -> Effects:
    status = _text(effects, "status")
    if status not in ("SUCCESS", "FAILURE"):
        raise TransientError(f"the node tells a status {status[:20]!r}")
    digest = _digest(effects)
    if status == "SUCCESS":
        nodes = (effects.get("events") or {}).get("nodes") or ()
        return Effects(digest, True, tuple(_event(node) for node in nodes), outputs=outputs)
    failure = effects.get("executionError") or {}
    message = str(failure.get("message") or "")
    code = failure.get("abortCode")
    number = None if code is None else _number(failure, "abortCode")
    module = str((failure.get("module") or {}).get("name") or "")
    return Effects(digest, False, (), module, number, message[:500], outputs)


def _event(node: Mapping[str, Any]) -> ChainEvent:
    contents = _object(node, "contents")
    name = _text(_object(contents, "type"), "repr").partition("<")[0].rpartition("::")[2]
    fields = contents.get("json")
    return ChainEvent(name, fields if isinstance(fields, dict) else {})


def _error_text(errors: Any) -> str:
    first = errors[0] if isinstance(errors, list) and errors else errors
    text = first.get("message") if isinstance(first, dict) else first
    return " ".join(str(text or "no reason told").split())[:200]


def _object(container: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = container.get(name) if isinstance(container, dict) else None
    if not isinstance(value, dict):
        raise TransientError(f"the node's answer has no {name}")
    return value


def _list(container: Mapping[str, Any], name: str) -> list[Any]:
    value = container.get(name) if isinstance(container, dict) else None
    if not isinstance(value, list):
        raise TransientError(f"the node's answer has no {name}")
    return value


def _text(container: Mapping[str, Any], name: str) -> str:
    value = container.get(name) if isinstance(container, dict) else None
    if not isinstance(value, str) or not value:
        raise TransientError(f"the node's answer has no {name}")
    return value


def _id(container: Mapping[str, Any], name: str) -> str:
    text = _text(container, name)
    if not is_id(text):
        raise TransientError(f"the node's answer has no {name} that is an id")
    return text


def _digest(container: Mapping[str, Any]) -> str:
    text = _text(container, "digest")
    if not is_digest(text):
        raise TransientError("the node's answer has no digest that is one")
    return text


def _number(container: Mapping[str, Any], name: str) -> int:
    """Return a number of at least zero; large numbers arrive as text."""
    value = container.get(name) if isinstance(container, dict) else None
    if isinstance(value, str) and _DIGITS.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < 2**64:
        raise TransientError(f"the node's answer has no number {name}")
    return value


def _bytes(container: Mapping[str, Any], name: str) -> bytes:
    try:
        return base64.b64decode(_text(container, name), validate=True)
    except binascii.Error:
        raise TransientError(f"the node's answer has no bytes {name}") from None
