"""The fake data sources stop cleanly, also when clients have not read their replies."""

import gc
import socket
import warnings
from urllib.parse import urlsplit

from aiohttp import web

from data.sources.source_servers import serving_app


async def _long_reply(request: web.Request) -> web.Response:
    del request
    return web.Response(body=b" " * (17 * 2**20))


def test_a_server_whose_reply_is_not_read_leaves_no_open_socket() -> None:
    app = web.Application()
    app.router.add_get("/", _long_reply)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always", ResourceWarning)
        with socket.socket() as client:
            with serving_app(app) as url:
                client.connect(("127.0.0.1", urlsplit(url).port or 0))
                client.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
                assert client.recv(1)
            gc.collect()
    assert [str(each.message) for each in warned] == []
