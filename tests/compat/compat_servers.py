"""Servers on this machine that stand in for a model and for prices of this moment while the fixtures are made.

Used by `make_fixtures.py` only: the tests need neither.
"""

import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]
BTC = "e62df6c8b4a85fe1a67db44dc12de5db330f7ac66b72dc658afedf0f4a415b43"
"""Pyth's id of the price of BTC."""


@contextmanager
def serving() -> Iterator[str]:
    """A server that answers questions to a model (POST) and questions for prices (GET); gives its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        tool, arguments = _decided(question)
        call = {"id": "call_0", "type": "function", "function": {"name": tool, "arguments": json.dumps(arguments)}}
        said = {"role": "assistant", "content": None, "tool_calls": [call]}
        self._answer(
            {
                "id": "compat",
                "object": "chat.completion",
                "created": 0,
                "model": question["model"],
                "choices": [{"index": 0, "message": said, "finish_reason": "tool_calls"}],
                "usage": {"prompt_tokens": 1_000, "completion_tokens": 50, "total_tokens": 1_050},
            }
        )

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        if parts.path.startswith("/v2/updates/price/"):
            when = parts.path.rpartition("/")[2]
            self._answer(_update(int(time.time()) - 1 if when == "latest" else int(when)))
        else:
            asked = parse_qs(parts.query)
            self._answer(_history(int(asked["from"][0]), min(int(asked["to"][0]), int(time.time()) - 60)))

    def _answer(self, body: Json) -> None:
        content = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *values: object) -> None:
        """Nobody reads it."""


# The model ----------------------------------------------------------------------------------------------------------


def _decided(question: Json) -> tuple[str, Json]:
    """A tool and its arguments, by the digest of what was asked: the same question, the same answer."""
    offered = {tool["function"]["name"] for tool in question["tools"]}
    words = next(one["content"] for one in question["messages"] if one["role"] == "user")
    dice, fresh = hashlib.sha256(words.encode()).digest(), question["messages"][-1]["role"] == "user"
    if "write_lessons" in offered:
        slots = ("entry_timing", "sizing", "symbol_selection", "exit_timing", "regime_fit")
        return "write_lessons", {slot: f"Note {dice[place]} on {slot}." for place, slot in enumerate(slots)}
    return _bet(words, dice, fresh) if "submit_decision" in offered else _order(dice, fresh)


def _order(dice: bytes, fresh: bool) -> tuple[str, Json]:
    symbol = ("BTC", "ETH")[dice[1] % 2]
    if fresh and dice[0] % 4 == 0:
        return "fetch_recent_bars", {"symbol": symbol, "interval": "1h", "lookback": 5}
    action = ("no_op", "open_long", "open_short", "close")[dice[2] % 4]
    proposal: Json = {"action": action, "symbol": symbol, "reason": f"The digest says {dice[2]}."}
    if action.startswith("open"):
        proposal |= {"size_usd": 500 + 10 * dice[3], "leverage": 1 + dice[4] % 3, "confidence": 0.5}
    return "propose_order", proposal


def _bet(words: str, dice: bytes, fresh: bool) -> tuple[str, Json]:
    found = re.findall(r"^(BTC-\S+) \|.*\| (\d+): YES", words, re.MULTILINE)
    if dice[0] % 3 or not found:
        return "submit_decision", {"action": "hold", "reasoning": "Nothing."}
    name, strike = found[dice[1] % len(found)]
    if fresh:
        return "list_strikes", {"market_id": name}
    mint = {"action": "mint", "market_id": name, "side": ("NO", "YES")[dice[2] % 2], "strike": int(strike), "spend": 2}
    return "submit_decision", {**mint, "confidence": 0.55, "reasoning": "It turns."}


# Prices -------------------------------------------------------------------------------------------------------------


def _price(second: int) -> float:
    return 68_000 + (second // 7 * 7_919) % 97 + (second * 31) % 11 / 8


def _update(second: int) -> Json:
    units = round(_price(second) * 10**8)
    result = {"price": str(units), "conf": str(units // 20_000), "expo": -8, "publish_time": second}
    return {
        "binary": {"encoding": "hex", "data": ["504e4155"]},
        "parsed": [{"id": BTC, "price": result, "ema_price": result, "metadata": {"slot": 1}}],
    }


def _history(first: int, last: int) -> Json:
    times = list(range(-(-first // 60) * 60, last + 1, 60))
    if not times:
        return {"s": "no_data", "t": []}
    pairs = [(_price(at), _price(at + 59)) for at in times]
    columns = {"o": [pair[0] for pair in pairs], "h": [max(pair) + 1 for pair in pairs]}
    columns |= {"l": [min(pair) - 1 for pair in pairs], "c": [pair[1] for pair in pairs], "v": [0] * len(pairs)}
    return {"s": "ok", "t": times, **columns}
