"""Real servers for notifications on this machine: one takes JSON over HTTP, one takes mail over SMTP, with STARTTLS if it has a certificate."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from aiohttp import web


@dataclass
class HttpReceiver:
    """Keeps what is posted to it. `statuses` are the answers to the first requests; then it says 200."""

    statuses: list[int] = field(default_factory=list[int])
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list[Any])
    url: str = ""

    async def take(self, request: web.Request) -> web.Response:
        self.requests.append(
            (request.path, {name.lower(): value for name, value in request.headers.items()}, await request.read())
        )
        status = self.statuses.pop(0) if self.statuses else 200
        headers = {"Location": f"{self.url}/elsewhere"} if status == 302 else {}
        return web.Response(status=status, headers=headers)


@asynccontextmanager
async def http_receiver(*statuses: int) -> AsyncIterator[HttpReceiver]:
    receiver = HttpReceiver(list(statuses))
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", receiver.take)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    receiver.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield receiver
    finally:
        await runner.cleanup()


@dataclass
class MailReceiver:
    """Keeps the mail that it gets, and whether it came through TLS."""

    context: ssl.SSLContext | None = None
    password_ok: bool = True
    mails: list[str] = field(default_factory=list[str])
    over_tls: list[bool] = field(default_factory=list[bool])
    logins: int = 0
    port: int = 0

    async def talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        is_tls = False
        writer.write(b"220 mail ready\r\n")
        while line := await reader.readline():
            word = line.decode().split()[0].upper()
            if word == "EHLO":
                extensions = [b"250-localhost", b"250-AUTH PLAIN LOGIN"]
                if self.context is not None and not is_tls:
                    extensions.append(b"250-STARTTLS")
                writer.write(b"\r\n".join(extensions) + b"\r\n250 8BITMIME\r\n")
            elif word == "STARTTLS" and self.context is not None:
                writer.write(b"220 go ahead\r\n")
                await writer.drain()
                await writer.start_tls(self.context)
                is_tls = True
            elif word == "AUTH":
                self.logins += 1
                writer.write(b"235 in\r\n" if self.password_ok else b"535 no\r\n")
            elif word == "DATA":
                writer.write(b"354 tell\r\n")
                content = await reader.readuntil(b"\r\n.\r\n")
                self.mails.append(content.decode())
                self.over_tls.append(is_tls)
                writer.write(b"250 taken\r\n")
            elif word == "QUIT":
                writer.write(b"221 bye\r\n")
                await writer.drain()
                break
            else:
                writer.write(b"250 ok\r\n")
            await writer.drain()
        writer.close()


@asynccontextmanager
async def mail_receiver(context: ssl.SSLContext | None = None, password_ok: bool = True) -> AsyncIterator[MailReceiver]:
    receiver = MailReceiver(context, password_ok)
    server = await asyncio.start_server(receiver.talk, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    async with server:
        yield receiver


def certificate(folder: Path, name: str = "localhost") -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context with a certificate for a name, and a client's that trusts it alone."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    who = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime(2026, 1, 1, tzinfo=UTC)
    made = (
        x509.CertificateBuilder().subject_name(who).issuer_name(who).public_key(key.public_key())
        .serial_number(1).not_valid_before(now - timedelta(days=4_000)).not_valid_after(now + timedelta(days=20_000))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    file = folder / "certificate.pem"
    plain = serialization.NoEncryption()
    private = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    file.write_bytes(private + made.public_bytes(serialization.Encoding.PEM))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(file)
    return server, ssl.create_default_context(cafile=str(file))
