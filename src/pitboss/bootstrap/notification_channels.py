"""The channels by which a person is told of deployments: a webhook, a Telegram chat, e-mail. Addresses are settings, keys are secrets.

A channel sends one message and says whether it arrived; waiting, repeating and leaving out is the work of `runs/notifications.py`.
Messages are data: no markup is sent, and text that came from outside is shown as it is. A webhook is an https address on the
public network, or this machine itself; the address that is connected to is checked, not only its name.
"""

import asyncio
import hashlib
import hmac
import smtplib
import ssl
from collections.abc import Mapping, Sequence
from email.message import EmailMessage
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from pitboss.bootstrap.keys import key_for, open_secrets
from pitboss.bootstrap.machine import environment
from pitboss.bootstrap.owner_channels import FILE, LOCAL, read_owners, settings_of
from pitboss.bootstrap.redact import REDACTOR, keys_in
from pitboss.bootstrap.settings import Settings
from pitboss.core import codec
from pitboss.core.errors import TransientError, UserError
from pitboss.core.plain_http import names_this_machine
from pitboss.store.secrets import NAME

if TYPE_CHECKING:
    from pitboss.models.secret import Secret

TIMEOUT_S = 10.0
TELEGRAM_URL = "https://api.telegram.org"
WEBHOOK_SECRET, TELEGRAM_TOKEN, EMAIL_PASSWORD = (
    "NOTIFY_WEBHOOK_SECRET",
    "NOTIFY_TELEGRAM_TOKEN",
    "NOTIFY_EMAIL_PASSWORD",
)
"""The names of the secrets: `pitboss secrets set NAME`."""
TLS_PORT = 465
"""The port of mail servers that speak TLS from the first byte."""

Message = Mapping[str, Any]
"""A notification as plain data: `event`, `title`, `text` and further fields."""


class NotificationChannel(Protocol):
    """Sends messages. A failure that may pass is a `TransientError`, one that stays a `UserError`."""

    @property
    def name(self) -> str: ...

    async def send(self, message: Message) -> None: ...


async def _post(url: str, body: bytes, headers: Mapping[str, str], shown: str) -> None:
    """POST JSON to a checked address. Redirects are not followed, and of the answer only the status is read."""
    import httpx2

    from pitboss.tools.mcp.address import check_url
    from pitboss.tools.mcp.transport import AddressRefused, CheckedTransport

    check_url(url, loopback=True)
    is_local = names_this_machine(urlsplit(url).hostname or "")
    client = httpx2.AsyncClient(
        transport=CheckedTransport(loopback=is_local), timeout=TIMEOUT_S, follow_redirects=False, trust_env=False
    )
    try:
        async with asyncio.timeout(2 * TIMEOUT_S), client:
            fields = {"content-type": "application/json", **headers}
            async with client.stream("POST", url, content=body, headers=fields) as reply:
                status = reply.status_code
    except AddressRefused as error:
        raise UserError(f"{shown}: {error}", "notifications go to public https addresses, or to this machine") from None
    except TimeoutError:
        raise TransientError(f"{shown} did not answer in time") from None
    except httpx2.HTTPError as error:  # its text may hold the address, and with it a key
        raise TransientError(f"{shown} cannot be reached ({type(error).__name__})") from None
    if status in (408, 425, 429) or status >= 500:
        raise TransientError(f"{shown} answers {status}")
    if status >= 300:
        raise UserError(f"{shown} refuses the message: it answers {status}", "check its address and its key")


class WebhookChannel:
    """POSTs the message as JSON. With a secret, `X-Pitboss-Signature` is the HMAC-SHA256 of the body."""

    name = "webhook"

    def __init__(self, url: str, secret: "Secret | None" = None) -> None:
        self._url = url
        self._secret = secret

    async def send(self, message: Message) -> None:
        """Send one message."""
        body = codec.dumps(dict(message))
        headers: dict[str, str] = {}
        if self._secret is not None:
            digest = hmac.new(self._secret.reveal().encode(), body, hashlib.sha256).hexdigest()
            headers["x-pitboss-signature"] = f"sha256={digest}"
        await _post(self._url, body, headers, "the webhook")


class TelegramChannel:
    """Writes into a chat as a bot. Plain text: without a parse mode nothing in it is markup."""

    name = "telegram"

    def __init__(self, chat: str, token: "Secret", url: str = TELEGRAM_URL) -> None:
        self._chat = chat
        self._token = token
        self._url = url.rstrip("/")

    async def send(self, message: Message) -> None:
        """Send one message."""
        text = f"{message['title']}\n{message['text']}"
        body = codec.dumps({"chat_id": self._chat, "text": text, "disable_web_page_preview": True})
        await _post(f"{self._url}/bot{self._token.reveal()}/sendMessage", body, {}, "Telegram")


class EmailChannel:
    """Sends plain text by SMTP. TLS is required, except to this machine."""

    name = "email"

    def __init__(
        self,
        host: str,
        port: int,
        sender: str,
        to: Sequence[str],
        user: str = "",
        password: "Secret | None" = None,
        context: ssl.SSLContext | None = None,
    ) -> None:
        self._host = host
        self._port = port
        self._sender = sender
        self._to = tuple(to)
        self._user = user
        self._password = password
        self._context = context

    async def send(self, message: Message) -> None:
        """Send one message, in a thread: the library waits for the server."""
        try:
            await asyncio.to_thread(self._send, message)
        except (smtplib.SMTPAuthenticationError, smtplib.SMTPRecipientsRefused, smtplib.SMTPSenderRefused) as error:
            raise UserError(
                f"the mail server refuses the message ({type(error).__name__})", "check user, password and addresses"
            ) from None
        except ssl.SSLCertVerificationError:
            raise UserError("the certificate of the mail server is not valid", "check notify_email_host") from None
        except (OSError, smtplib.SMTPException) as error:
            raise TransientError(f"the mail server cannot be used ({type(error).__name__})") from None

    def _send(self, message: Message) -> None:
        mail = EmailMessage()
        mail["Subject"], mail["From"], mail["To"] = f"pitboss: {message['title']}", self._sender, ", ".join(self._to)
        lines = [str(message["text"]), "", *(f"{name}: {value}" for name, value in message.items() if name != "text")]
        mail.set_content("\n".join(lines))
        context = self._context or ssl.create_default_context()
        # The name in EHLO is fixed: the machine's own name is not disclosed, and looking it up may take long.
        if self._port == TLS_PORT:
            server: smtplib.SMTP = smtplib.SMTP_SSL(
                self._host, self._port, local_hostname="localhost", timeout=TIMEOUT_S, context=context
            )
        else:
            server = smtplib.SMTP(self._host, self._port, local_hostname="localhost", timeout=TIMEOUT_S)
        with server:
            server.ehlo()
            if self._port != TLS_PORT:
                if server.has_extn("starttls"):
                    server.starttls(context=context)
                    server.ehlo()
                elif not names_this_machine(self._host):
                    raise UserError(
                        "the mail server offers no STARTTLS", "nothing is sent unencrypted to another machine"
                    )
            if self._user:
                server.login(self._user, "" if self._password is None else self._password.reveal())
            server.send_message(mail)


def _secret(home: Path, name: str) -> "Secret | None":
    return key_for((name,), environment, open_secrets(home))


def _webhook_secret(home: Path, owner: str) -> "Secret | None":
    """The secret that signs for the webhook of an owner; None if there is none.

    Each owner has its own: with one for several, an owner could sign messages that seem to be for another.
    """
    if owner == LOCAL:
        return _secret(home, WEBHOOK_SECRET)
    owners = read_owners(home)
    if name := owners[owner].webhook_secret:
        if not NAME.fullmatch(name):  # the name is not repeated: it may be the secret
            raise UserError(
                f"{FILE}: webhook_secret of {owner} is not the name of a secret",
                f"for example {WEBHOOK_SECRET}_OF_ANNA",
            )
        secret = _secret(home, name)
        if secret is None:
            raise UserError(f"webhook_secret of {owner}: there is no secret {name}", f"`pitboss secrets set {name}`")
        return secret
    name = _default_secret(owner)
    secret = _secret(home, name) if NAME.fullmatch(name) else None
    sharing = [other for other in owners if _default_secret(other) == name and not owners[other].webhook_secret]
    if secret is not None and len(sharing) > 1:
        raise UserError(
            f"the owners {' and '.join(sharing)} share the secret {name}",
            f"name one for each in {FILE}, as webhook_secret",
        )
    return secret


def _default_secret(owner: str) -> str:
    return f"{WEBHOOK_SECRET}_{owner.upper().replace('-', '_')}"


def open_channels(settings: Settings, owner: str = LOCAL) -> list[NotificationChannel]:
    """The channels of an owner. Raises `UserError` for one that lacks something."""
    from pitboss.tools.mcp.address import check_url

    settings = settings_of(settings, owner)
    channels: list[NotificationChannel] = []
    if settings.notify_webhook_url:
        REDACTOR.add(*keys_in(settings.notify_webhook_url))  # the address of many services is its key
        check_url(settings.notify_webhook_url, loopback=True)
        channels.append(WebhookChannel(settings.notify_webhook_url, _webhook_secret(settings.home, owner)))
    if settings.notify_telegram_chat:
        token = _secret(settings.home, TELEGRAM_TOKEN)
        if token is None:
            raise UserError(
                "notify_telegram_chat is set without a bot's token", f"`pitboss secrets set {TELEGRAM_TOKEN}`"
            )
        url = settings.notify_telegram_url or TELEGRAM_URL
        check_url(url, loopback=True)
        channels.append(TelegramChannel(settings.notify_telegram_chat, token, url))
    if settings.notify_email_to:
        to = [each.strip() for each in settings.notify_email_to.split(",") if each.strip()]
        sender = settings.notify_email_from or to[0]
        if not settings.notify_email_host:
            raise UserError("notify_email_to is set without a mail server", "set notify_email_host")
        if any(not each.isprintable() or "@" not in each for each in (*to, sender)):
            raise UserError("notify_email_to or notify_email_from is no address", "for example me@example.org")
        password = _secret(settings.home, EMAIL_PASSWORD) if settings.notify_email_user else None
        if settings.notify_email_user and password is None:
            raise UserError("notify_email_user is set without a password", f"`pitboss secrets set {EMAIL_PASSWORD}`")
        channels.append(
            EmailChannel(
                settings.notify_email_host, settings.notify_email_port, sender, to, settings.notify_email_user, password
            )
        )
    return channels
