"""Addresses: private ones are never connected to, in any spelling, by any name server answer or redirect."""

import asyncio
import datetime
import ipaddress
import random
import socket
import ssl
import urllib.parse
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpcore2
import httpx2
import pytest

from pitboss.core.errors import UserError
from pitboss.tools.mcp.address import blocked_reason, check_host, check_url
from pitboss.tools.mcp.transport import AddressRefused, CheckedTransport
from tools.mcp.addresses import CLOSED_4, CLOSED_6, PUBLIC, PUBLIC_6, inside, system_like, urls

QUICK, FULL = 50, 5_000
TRUSTED = ssl.create_default_context()
"""Loading the certificates takes longer than any test here, so they are loaded once."""


class CountingListener:
    """A real socket on every address of this machine that counts connections and answers them with `reply`."""

    def __init__(self) -> None:
        self.requests_received: list[bytes] = []
        self.reply = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
        self.port = 0

    async def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.requests_received.append(b"")
        try:
            self.requests_received[-1] = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 5)
            writer.write(self.reply)
            await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError, TimeoutError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def listening_server(
    reply: bytes | None = None, tls: ssl.SSLContext | None = None
) -> AsyncIterator[CountingListener]:
    one = CountingListener()
    one.reply = reply or one.reply
    server = await asyncio.start_server(one._take, "0.0.0.0", 0, ssl=tls)
    one.port = server.sockets[0].getsockname()[1]
    second = None
    if socket.has_ipv6 and not tls:
        try:
            second = await asyncio.start_server(one._take, "::1", one.port)
        except OSError:  # a machine without IPv6, or the port is taken there
            second = None
    try:
        yield one
    finally:
        for each in (server, second):
            if each is not None:
                each.close()
                await each.wait_closed()


class RecordingBackend(httpcore2.AsyncNetworkBackend):
    """Records the host of every connection and opens none."""

    def __init__(self) -> None:
        self.hosts: list[str] = []

    async def connect_tcp(self, host: str, port: int, **_: Any) -> Any:
        self.hosts.append(host)
        raise httpcore2.ConnectError("recorded")


async def get_result(url: str, transport: Any, follow: bool = False) -> str:
    """What came of one GET: the name of the error, or the status."""
    try:
        async with httpx2.AsyncClient(transport=transport, timeout=5, follow_redirects=follow) as client:
            return str((await client.get(url)).status_code)
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, TypeError) as error:
        return type(error).__name__


async def request_private_addresses(count: int, seed: int) -> None:
    rng = random.Random(seed)
    recorder = RecordingBackend()
    async with listening_server() as victim:
        for _ in range(count):
            url = urls(rng, victim.port)
            outcome = await get_result(url, CheckedTransport(verify=TRUSTED, resolve=system_like))
            assert not outcome.isdigit(), (url, outcome)
            await get_result(url, CheckedTransport(verify=TRUSTED, resolve=system_like, backend=recorder))
        assert victim.requests_received == [], "somebody got through"
    assert [one for one in recorder.hosts if blocked_reason(one)] == []


async def follow_redirects(count: int, seed: int) -> None:
    rng = random.Random(seed)
    async with listening_server() as victim, listening_server() as door:
        for number in range(count):
            target = urls(rng, rng.choice([victim.port, victim.port, 80, 22]))
            status = rng.choice([301, 302, 303, 307, 308])
            location = target if target.isascii() else urllib.parse.quote(target, safe=":/[]@#?&=%")
            door.reply = (
                f"HTTP/1.1 {status} Elsewhere\r\nLocation: {location}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            ).encode()
            first = f"http://{rng.choice(['127.0.0.1', 'localhost'])}:{door.port}/mcp"
            outcome = await get_result(
                first, CheckedTransport(loopback=True, verify=TRUSTED, resolve=system_like), follow=True
            )
            assert not outcome.isdigit() or int(outcome) in range(300, 400), (target, outcome)
            assert len(door.requests_received) == number + 1, "the first hop is allowed, and the only one"
        assert victim.requests_received == [], "a redirect got through"


async def rebind_names(count: int, seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        private = str(inside(rng, rng.choice(CLOSED_4 + CLOSED_6)))
        answers = [[rng.choice([PUBLIC, PUBLIC_6])], [private], [PUBLIC, private], [private, PUBLIC]]
        given = list(answers)

        async def resolve(host: str, port: int, given: list[list[str]] = given) -> Sequence[str]:
            del host, port
            return given.pop(0)

        recorder = RecordingBackend()
        async with httpx2.AsyncClient(
            transport=CheckedTransport(verify=TRUSTED, resolve=resolve, backend=recorder)
        ) as client:
            with pytest.raises(httpx2.ConnectError, match="recorded"):
                await client.get("https://rebind.example/mcp")
            assert len(given) == 3, "one look-up for one connection: there is no second answer to swap in"
            for _ in range(3):
                with pytest.raises(AddressRefused):
                    await client.get("https://rebind.example/mcp")
        assert recorder.hosts == answers[0]


@pytest.mark.parametrize("seed", [1])
def test_no_spelling_of_a_private_address_is_connected_to(seed: int) -> None:
    asyncio.run(request_private_addresses(QUICK, seed))


def test_no_redirect_from_an_allowed_server_reaches_a_private_address() -> None:
    asyncio.run(follow_redirects(QUICK // 4, 2))


def test_a_name_that_answers_differently_a_moment_later_gains_nothing() -> None:
    asyncio.run(rebind_names(QUICK // 4, 3))


@pytest.mark.proof
@pytest.mark.parametrize("seed", range(10))
def test_no_spelling_of_a_private_address_is_connected_to_at_length(seed: int) -> None:
    asyncio.run(request_private_addresses(FULL // 10, 100 + seed))


@pytest.mark.proof
def test_no_redirect_reaches_a_private_address_at_length() -> None:
    asyncio.run(follow_redirects(FULL // 5, 5))


@pytest.mark.proof
def test_no_change_of_answer_gains_anything_at_length() -> None:
    asyncio.run(rebind_names(FULL // 5, 6))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1", "0x7f.1", "2130706433", "017700000001", "0", "localhost"])
def test_the_same_spellings_do_reach_this_machine_without_the_guard(host: str) -> None:
    """The control: were they harmless, the tests above would show nothing."""

    async def play() -> None:
        async with listening_server() as victim:
            url = f"http://{host}:{victim.port}/"
            assert await get_result(url, httpx2.AsyncHTTPTransport(verify=TRUSTED, trust_env=False)) == "200"
            assert await get_result(url, CheckedTransport(verify=TRUSTED)) == "AddressRefused"
            assert len(victim.requests_received) == 1

    asyncio.run(play())


def test_loopback_opens_the_first_origin_and_no_other_port() -> None:
    async def play() -> None:
        async with listening_server() as ours, listening_server() as other:
            transport = CheckedTransport(loopback=True, verify=TRUSTED, resolve=system_like)
            async with httpx2.AsyncClient(transport=transport) as client:
                assert (await client.get(f"http://127.0.0.1:{ours.port}/mcp")).text == "ok"
                with pytest.raises(AddressRefused):
                    await client.get(f"http://127.0.0.1:{other.port}/mcp")
                with pytest.raises(AddressRefused):
                    await client.get(f"http://localhost:{ours.port}/mcp")
            assert (len(ours.requests_received), len(other.requests_received)) == (1, 0)

    asyncio.run(play())


def test_http_goes_to_this_machine_alone_and_a_public_first_origin_keeps_it_shut() -> None:
    async def play() -> None:
        recorder = RecordingBackend()
        transport = CheckedTransport(loopback=True, resolve=fixed_resolver(PUBLIC), backend=recorder)
        async with httpx2.AsyncClient(transport=transport) as client:
            with pytest.raises(httpx2.ConnectError, match="recorded"):
                await client.get("https://public.example/mcp")
            for url in ("http://public.example/mcp", "http://127.0.0.1:1/", "https://localhost/", "http://localhost/"):
                with pytest.raises(AddressRefused):
                    await client.get(url)
        assert recorder.hosts == [PUBLIC]

    asyncio.run(play())


def fixed_resolver(*addresses: str) -> Any:
    async def resolve(host: str, port: int) -> Sequence[str]:
        del host, port
        return addresses

    return resolve


def test_a_public_address_is_connected_to_by_its_number_and_the_next_one_is_tried_when_it_fails() -> None:
    async def play() -> list[str]:
        recorder = RecordingBackend()
        transport = CheckedTransport(resolve=fixed_resolver(PUBLIC_6, PUBLIC, PUBLIC), backend=recorder)
        assert await get_result("https://public.example./mcp", transport) == "ConnectError"
        return recorder.hosts

    assert asyncio.run(play()) == [PUBLIC_6, PUBLIC]


class RedirectingBackend(httpcore2.AnyIOBackend):
    """Redirects connections meant for a public address to a port of this machine."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.hosts: list[str] = []

    async def connect_tcp(self, host: str, port: int, **more: Any) -> Any:
        self.hosts.append(host)
        return await super().connect_tcp("127.0.0.1", self.port, **more)


@pytest.mark.parametrize(("name", "outcome"), [("mcp.example", "200"), ("other.example", "ConnectError")])
def test_tls_and_host_are_those_of_the_name(name: str, outcome: str, tmp_path: Path) -> None:
    serving, trusted = certificates("mcp.example", tmp_path)

    async def play() -> None:
        async with listening_server(tls=serving) as server:
            network = RedirectingBackend(server.port)
            transport = CheckedTransport(resolve=fixed_resolver(PUBLIC), backend=network, verify=trusted)
            assert await get_result(f"https://{name}/mcp", transport) == outcome
            assert network.hosts == [PUBLIC]
            if outcome == "200":
                assert b"\r\nhost: mcp.example\r\n" in server.requests_received[0].lower()

    asyncio.run(play())


def certificates(name: str, folder: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.UTC)
    made = (
        x509.CertificateBuilder().subject_name(who).issuer_name(who).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - datetime.timedelta(days=1)).not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    pem = folder / "cert.pem"
    pem.write_bytes(
        made.public_bytes(serialization.Encoding.PEM)
        + key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(pem)
    return serving, ssl.create_default_context(cafile=str(pem))


def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        async with listening_server() as proxy:
            for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "https_proxy", "all_proxy"):
                monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
            recorder = RecordingBackend()
            await get_result(
                "https://public.example/", CheckedTransport(resolve=fixed_resolver(PUBLIC), backend=recorder)
            )
            assert (recorder.hosts, proxy.requests_received) == ([PUBLIC], [])

    asyncio.run(play())


def test_an_answer_that_breaks_off_is_an_error_of_the_client_s_own_kind() -> None:
    async def play() -> str:
        async with listening_server(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort") as server:
            return await get_result(f"http://127.0.0.1:{server.port}/", CheckedTransport(loopback=True, verify=TRUSTED))

    assert asyncio.run(play()) == "RemoteProtocolError"


def test_a_look_up_that_hangs_ends_with_the_connection_s_deadline() -> None:
    async def never(host: str, port: int) -> Sequence[str]:
        del host, port
        await asyncio.Event().wait()
        return ()

    async def play() -> None:
        async with httpx2.AsyncClient(transport=CheckedTransport(resolve=never), timeout=0.05) as client:
            with pytest.raises(httpx2.ConnectTimeout, match="looking up"):
                await client.get("https://slow.example/")

    asyncio.run(play())


@pytest.mark.parametrize("network", CLOSED_4 + CLOSED_6)
def test_both_ends_of_every_closed_range_are_judged_closed(network: str) -> None:
    net = ipaddress.ip_network(network)
    assert blocked_reason(str(net[0]))
    assert blocked_reason(str(net[-1]))


@pytest.mark.parametrize(
    "address", [PUBLIC, PUBLIC_6, "1.1.1.1", "8.8.8.8", "9.255.255.255", "100.63.255.255", "100.128.0.0", "2400::1"]
)
def test_public_addresses_are_open(address: str) -> None:
    assert blocked_reason(address) == ""
    assert check_host(address) == ""


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("http://example.com/mcp", "only https"),
        ("https://user:hunter2@example.com/mcp", "keys are named by `secret`"),
        ("https://127.0.0.1/mcp", "this machine"),
        ("https://2130706433/", "unusual spelling"),
        ("https://0x7f.1/", "unusual spelling"),
        ("https://localhost./", "one's own network"),
        ("https://vault.internal/", "one's own network"),
        ("https://[fe80::1%25eth0]/", "network card"),
        ("https://[::ffff:10.0.0.1]/", "inside an IPv6 address"),
        ("https://１２７.0.0.1/", "no place"),
        ("https://%31%32%37.0.0.1/", "plain letters"),
        ("https://exa mple.com/", "no place"),
        ("https://example.com:99999/", "not an address"),
        ("https:///mcp", "no host"),
        ("file:///etc/passwd", "no host"),
        ("", "empty"),
    ],
)
def test_a_catalogue_s_address_is_refused_with_a_reason(url: str, says: str) -> None:
    with pytest.raises(UserError) as caught:
        check_url(url)
    assert says in caught.value.message
    assert "hunter2" not in caught.value.message


def test_addresses_that_are_fine_come_back_as_they_were() -> None:
    assert check_url("https://mcp.example.com/mcp?x=1") == "https://mcp.example.com/mcp?x=1"
    assert check_url("https://mcp.example.com:8443/") == "https://mcp.example.com:8443/"
    assert check_url("http://127.0.0.1:8000/mcp", loopback=True).endswith("/mcp")
    assert check_url("http://localhost:8000/mcp", loopback=True).endswith("/mcp")
    with pytest.raises(UserError):
        check_url("http://example.com/mcp", loopback=True)
