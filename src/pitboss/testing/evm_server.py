"""Serves an `EmbeddedEvmNode` over HTTP on this machine, for tests and the demo.

python -m pitboss.testing.evm_server --port 8545      prints its address; ends with its standard input
"""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

from pitboss.testing.evm_node import EmbeddedEvmNode

MOST_BYTES = 1 << 20


@contextmanager
def serving_node(node: EmbeddedEvmNode, port: int = 0) -> Iterator[str]:
    """Serve a node for the duration of the block; yields its address. Requests are answered one at a time."""
    turn = Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), MOST_BYTES))
            with turn:
                reply = node.answer(body)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(reply)))
            self.end_headers()
            self.wfile.write(reply)

        def log_message(self, format: str, *args: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    server.daemon_threads = True
    thread = Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def main() -> None:
    """Serve a new chain until the standard input ends."""
    parser = argparse.ArgumentParser(description="An EVM chain in this process, over JSON-RPC.")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    node = EmbeddedEvmNode()
    with serving_node(node, options.port) as url:
        print(f"{url} chain {node.chain_id}", flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
