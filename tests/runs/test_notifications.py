"""Notifications: they arrive at real servers, in bounded number and size, without secrets or markup, and failures stay theirs."""

import asyncio
import hashlib
import hmac
import json
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from notification_servers import certificate, http_receiver, mail_receiver
from pitboss.bootstrap.keys import open_secrets
from pitboss.bootstrap.notification_channels import EmailChannel, WebhookChannel, open_channels
from pitboss.bootstrap.redact import REDACTOR
from pitboss.bootstrap.settings import load_settings
from pitboss.bootstrap.settings_description import describe
from pitboss.bootstrap.workspace import open_workspace
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import MINUTE_MS
from pitboss.jobs.live_notices import check_channels, open_notifier
from pitboss.models.secret import Secret
from pitboss.runs.notifications import (
    EVENTS,
    MOST_QUEUED,
    RETRIES_S,
    Notification,
    NotificationLimiter,
    Notifier,
    events_of,
    of_entry,
    of_state,
    send_test,
)
from pitboss.store.deployments import Deployment

AT = 1_790_000_000_000
DEPLOYMENT = Deployment("d1", "r1", "trend", 1, "perp", "live", "main", "halted", "daily_loss", "lost 5 %", AT, AT)
ALL = frozenset(EVENTS)


def note(text: str = "hello", event: Any = "fills", at: int = AT, deployment: str = "d1") -> Notification:
    return Notification(event, "trend filled", text, at, deployment)


def run_async(story: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await story()

    asyncio.run(main())


async def no_pause(seconds: float) -> None:
    del seconds


# Channels -------------------------------------------------------------------------------------------------------------


def test_a_webhook_gets_json_that_is_signed_with_its_secret() -> None:
    async def story() -> None:
        async with http_receiver() as server:
            channel = WebhookChannel(f"{server.url}/hook", Secret("s3cret-of-the-hook"))
            await channel.send(note("filled ETH").message())
        ((path, headers, body),) = server.requests
        assert path == "/hook"
        assert json.loads(body)["text"] == "filled ETH"
        digest = hmac.new(b"s3cret-of-the-hook", body, hashlib.sha256).hexdigest()
        assert headers["x-pitboss-signature"] == f"sha256={digest}"

    run_async(story)


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/hook",
        "https://10.0.0.5/hook",
        "https://169.254.169.254/latest",
        "https://user:pass@example.org/hook",
        "file:///etc/passwd",
        "https://metadata.internal/",
    ],
)
def test_a_webhook_to_a_private_place_or_without_tls_is_refused_before_anything_is_sent(
    tmp_path: Path, url: str
) -> None:
    (tmp_path / "settings.toml").write_text(f'notify_webhook_url = "{url}"\n')
    with pytest.raises(UserError):
        open_channels(load_settings(tmp_path))
    with pytest.raises(UserError):
        asyncio.run(WebhookChannel(url).send(note().message()))


def test_a_redirect_is_not_followed_and_a_refusal_is_not_repeated() -> None:
    async def story() -> None:
        async with http_receiver(302, 404) as server:
            for status in (302, 404):
                with pytest.raises(UserError, match=str(status)):
                    await WebhookChannel(f"{server.url}/hook").send(note().message())
        assert [path for path, _, _ in server.requests] == ["/hook", "/hook"]

    run_async(story)


def test_telegram_gets_plain_text_and_its_token_is_in_no_message_of_ours(tmp_path: Path) -> None:
    token = "123456:ABC-very-secret-token"

    async def story() -> None:
        async with http_receiver(200, 401, 500) as server:
            lines = f'notify_telegram_chat = "42"\nnotify_telegram_url = "{server.url}"\n'
            (tmp_path / "settings.toml").write_text(lines)
            with pytest.raises(UserError, match="without a bot's token"):
                open_channels(load_settings(tmp_path))
            open_secrets(tmp_path).set("NOTIFY_TELEGRAM_TOKEN", token)
            (channel,) = open_channels(load_settings(tmp_path))
            await channel.send(note("<b>*bold*</b>").message())
            with pytest.raises(UserError) as refused:
                await channel.send(note().message())
            with pytest.raises(TransientError) as failed:
                await channel.send(note().message())
        assert token not in f"{refused.value} {failed.value}"
        path, _, body = server.requests[0]
        assert path == f"/bot{token}/sendMessage"
        assert json.loads(body) == {
            "chat_id": "42",
            "text": "trend filled\n<b>*bold*</b>",
            "disable_web_page_preview": True,
        }
        assert REDACTOR.redact(f"x {token} y") != f"x {token} y"

    run_async(story)


def test_mail_goes_through_starttls_with_the_password_of_the_secrets(tmp_path: Path) -> None:
    served, trusting = certificate(tmp_path)

    async def story() -> None:
        async with mail_receiver(served) as server:
            password = Secret("mail-pass-word")
            channel = EmailChannel("localhost", server.port, "a@x.org", ["b@y.org"], "a", password, trusting)
            await channel.send(note("filled ETH\r\nBcc: evil@z.org").message())
        assert (server.over_tls, server.logins) == ([True], 1)
        assert "Subject: pitboss: trend filled" in server.mails[0]
        assert "\r\nBcc:" not in server.mails[0]

    run_async(story)


def test_mail_is_not_sent_to_a_server_whose_certificate_is_anothers_or_that_has_no_tls(tmp_path: Path) -> None:
    served, trusting = certificate(tmp_path, "other.example")

    async def story() -> None:
        async with mail_receiver(served) as server:
            channel = EmailChannel("localhost", server.port, "a@x.org", ["b@y.org"], context=trusting)
            with pytest.raises(UserError, match="certificate"):
                await channel.send(note().message())
        assert server.mails == []
        async with mail_receiver() as plain:  # on this machine plain SMTP is allowed
            await EmailChannel("127.0.0.1", plain.port, "a@x.org", ["b@y.org"]).send(note().message())
        assert plain.over_tls == [False]
        async with mail_receiver(password_ok=False) as strict:
            channel = EmailChannel("127.0.0.1", strict.port, "a@x.org", ["b@y.org"], "a", Secret("wrong-pass"))
            with pytest.raises(UserError, match="refuses"):
                await channel.send(note().message())

    run_async(story)


def test_settings_that_lack_something_say_what_and_show_no_address_that_may_be_a_key(tmp_path: Path) -> None:
    (tmp_path / "settings.toml").write_text('notify_email_to = "me@example.org"\n')
    with pytest.raises(UserError, match="without a mail server"):
        open_channels(load_settings(tmp_path))
    (tmp_path / "settings.toml").write_text('notify_webhook_url = "https://hooks.example.org/T0/B0/abcdefghijklmnop"\n')
    settings = load_settings(tmp_path)
    assert [channel.name for channel in open_channels(settings)] == ["webhook"]
    shown = next(row["value"] for row in describe(settings) if row["key"] == "notify_webhook_url")
    assert "abcdefghijklmnop" not in shown
    assert "abcdefghijklmnop" not in REDACTOR.redact("see abcdefghijklmnop")
    with pytest.raises(UserError, match="no event 'fils'"):
        events_of("fils")


# How often ------------------------------------------------------------------------------------------------------------


def test_the_same_event_of_a_deployment_is_told_once_a_minute_with_a_count() -> None:
    limiter = NotificationLimiter()
    first = limiter.offer(note("1"))
    assert first is not None
    assert first.count == 1
    for number in range(50):
        assert limiter.offer(note(str(number), at=AT + number * 100)) is None
    assert limiter.offer(note("other", event="halts", at=AT + 10)) is not None
    assert limiter.offer(note("other", deployment="d2", at=AT + 10)) is not None
    assert list(limiter.due(AT + MINUTE_MS - 1)) == []
    (later,) = [each for each in limiter.due(AT + MINUTE_MS) if each.deployment_id == "d1" and each.event == "fills"]
    assert (later.text, later.count) == ("49", 50)
    assert list(limiter.due(AT + MINUTE_MS + 1)) == []
    assert "(50 times in the last minute)" in later.message()["text"]


class RecordingChannel:
    """A channel that raises the given failures first and records every later message."""

    name = "collector"

    def __init__(self, *failures: Exception) -> None:
        self.failures = list(failures)
        self.attempts = 0
        self.messages: list[Any] = []
        self.go_on = asyncio.Event()
        self.go_on.set()

    async def send(self, message: Any) -> None:
        await self.go_on.wait()
        self.attempts += 1
        if self.failures:
            raise self.failures.pop(0)
        self.messages.append(message)


def test_what_fails_for_a_while_is_repeated_and_a_broken_channel_does_not_hold_up_another() -> None:
    async def story() -> None:
        flaky = RecordingChannel(*[TransientError("down")] * 3)
        broken = RecordingChannel(*[RuntimeError("a bug")] * 9)
        good = RecordingChannel()
        async with Notifier({"local": [broken, flaky, good]}, ALL, lambda: AT, no_pause) as notifier:
            notifier.tell(note("one"))
        assert [len(each.messages) for each in (broken, flaky, good)] == [0, 1, 1]
        assert (flaky.attempts, broken.attempts) == (4, 1)

        hopeless = RecordingChannel(*[TransientError("down")] * 99)
        async with Notifier({"local": [hopeless]}, ALL, lambda: AT, no_pause) as notifier:
            notifier.tell(note("one"))
        assert hopeless.attempts == len(RETRIES_S) + 1
        assert notifier.dropped == 1

    run_async(story)


def test_telling_returns_at_once_and_the_queue_is_bounded() -> None:
    async def story() -> None:
        slow = RecordingChannel()
        slow.go_on.clear()
        async with Notifier({"local": [slow]}, ALL, lambda: AT) as notifier:
            for number in range(3 * MOST_QUEUED):
                notifier.tell(note(str(number), deployment=f"d{number}"))
            await asyncio.sleep(0)
            assert notifier.dropped == 2 * MOST_QUEUED
            slow.go_on.set()
        assert slow.messages[-1]["text"] == str(3 * MOST_QUEUED - 1)
        assert len(slow.messages) == MOST_QUEUED

    run_async(story)


def test_an_event_that_is_not_wanted_is_not_sent() -> None:
    async def story() -> None:
        collector = RecordingChannel()
        async with Notifier({"local": [collector]}, events_of("halts"), lambda: AT) as notifier:
            notifier.tell(note())
            notifier.tell(note(event="halts"))
        assert [message["event"] for message in collector.messages] == ["halts"]

    run_async(story)


# What is told ---------------------------------------------------------------------------------------------------------


def test_fills_refusals_and_outages_are_found_in_entries() -> None:
    entry: dict[str, Any] = {
        "kind": "tick",
        "flags": ["model_error"],
        "events": [{"kind": "filled", "symbol": "ETH", "side": "buy", "size": "1", "price": "3000"}],
        "verdicts": [{"outcome": "refused", "code": "R5", "detail": "too much"}, {"outcome": "allowed"}],
    }
    told = {each.event: each.text for each in of_entry(DEPLOYMENT, entry, AT)}
    assert told == {"fills": "filled ETH buy 1 at 3000", "refusals": "R5 too much", "outages": "model_error"}
    remark = {"kind": "remark", "detail": "feed: no data"}
    assert [each.event for each in of_entry(DEPLOYMENT, remark, AT)] == ["outages"]
    assert list(of_entry(DEPLOYMENT, {"kind": "tick", "flags": [], "events": [], "verdicts": []}, AT)) == []
    state = of_state(DEPLOYMENT, AT)
    assert (state.event, state.text) == ("halts", "daily_loss lost 5 %")


def test_a_message_is_bounded_on_one_line_and_without_secrets() -> None:
    REDACTOR.add("a-key-that-was-used-somewhere")
    message = note("x\n\x1b[31m" + "a-key-that-was-used-somewhere " + "y" * 10_000).message()
    assert len(message["text"]) <= 500
    assert message["text"].isprintable()
    assert "a-key-that-was-used-somewhere" not in message["text"]


def test_a_test_says_for_each_channel_whether_it_arrived() -> None:
    async def story() -> None:
        assert await send_test([RecordingChannel(), RecordingChannel(TransientError("down"))], AT) == [
            ("collector", ""),
            ("collector", "down"),
        ]

    run_async(story)


def test_two_users_are_told_of_their_own_deployments_by_webhook_telegram_and_mail(tmp_path: Path) -> None:
    async def story() -> None:
        async with http_receiver() as web, mail_receiver() as mail:
            lines = [f'notify_webhook_url = "{web.url}/local"', f'notify_telegram_url = "{web.url}"']
            lines += ['notify_email_host = "127.0.0.1"', f"notify_email_port = {mail.port}"]
            (tmp_path / "settings.toml").write_text("\n".join(lines))
            tables = [
                f"[{owner}]\nnotify_webhook_url = '{web.url}/{owner}'\nnotify_telegram_chat = '{owner}'\n"
                f"notify_email_to = '{owner}@example.org'\n"
                for owner in ("anna", "otto")
            ]
            (tmp_path / "notifications.toml").write_text("\n".join(tables))
            open_secrets(tmp_path).set("NOTIFY_TELEGRAM_TOKEN", "123456:a-bot-token")
            open_secrets(tmp_path).set("NOTIFY_WEBHOOK_SECRET_ANNA", "a-secret-of-hers")
            with open_workspace(load_settings(tmp_path)) as workspace:
                check_channels(workspace)
                async with open_notifier(workspace) as notifier:
                    for owner in ("anna", "otto", "nobody"):
                        notifier.tell(of_state(replace(DEPLOYMENT, id=owner, owner=owner, skill=f"of-{owner}"), AT))
            told = {
                path: body.decode() for path, _, body in web.requests if path != "/bot123456:a-bot-token/sendMessage"
            }
            chats = [json.loads(body) for path, _, body in web.requests if path not in told]
            assert set(told) == {"/anna", "/otto"}
            assert all(f"of-{path[1:]}" in body for path, body in told.items())
            assert {path for path, headers, _ in web.requests if "x-pitboss-signature" in headers} == {"/anna"}
            assert sorted((each["chat_id"], each["text"].split()[0]) for each in chats) == [
                ("anna", "of-anna"),
                ("otto", "of-otto"),
            ]
            assert len(mail.mails) == 2
            for text in mail.mails:
                owner = "anna" if "anna@example.org" in text else "otto"
                assert f"of-{owner}" in text
                assert f"of-{'otto' if owner == 'anna' else 'anna'}" not in text

    run_async(story)


def test_each_owner_signs_with_the_secret_that_its_table_names(tmp_path: Path) -> None:
    async def story() -> None:
        async with http_receiver() as web:
            table = "[{}]\nnotify_webhook_url = '{}/{}'\nwebhook_secret = '{}'\n"
            tables = [
                table.format('"anna@example.org"', web.url, "anna", "SECRET_OF_ANNA"),
                table.format("a-b", web.url, "a-b", "SECRET_OF_AB"),
                table.format("a_b", web.url, "a_b", ""),
                table.format('"otto@example.org"', web.url, "otto", ""),
            ]
            (tmp_path / "notifications.toml").write_text("\n".join(tables))
            secrets = {"anna": "SECRET_OF_ANNA", "a-b": "SECRET_OF_AB", "a_b": "NOTIFY_WEBHOOK_SECRET_A_B"}
            for owner, name in secrets.items():
                open_secrets(tmp_path).set(name, f"the-secret-of-{owner}")
            for owner in ("anna@example.org", "a-b", "a_b", "otto@example.org"):
                (channel,) = open_channels(load_settings(tmp_path), owner)
                await channel.send(note().message())
            signed = {path[1:]: (body, headers.get("x-pitboss-signature")) for path, headers, body in web.requests}
            assert signed.pop("otto")[1] is None
            assert set(signed) == set(secrets)
            for owner, (body, signature) in signed.items():
                digest = hmac.new(f"the-secret-of-{owner}".encode(), body, hashlib.sha256).hexdigest()
                assert signature == f"sha256={digest}"

    run_async(story)


def test_a_secret_that_two_owners_share_or_that_is_missing_is_refused(tmp_path: Path) -> None:
    file, table = tmp_path / "notifications.toml", "[{}]\nnotify_webhook_url = 'https://example.org/x'\n"
    file.write_text(table.format("a-b") + table.format("a_b"))
    settings = load_settings(tmp_path)
    assert [channel.name for channel in open_channels(settings, "a-b")] == ["webhook"], "without a secret"
    open_secrets(tmp_path).set("NOTIFY_WEBHOOK_SECRET_A_B", "the-secret-of-both")
    for owner in ("a-b", "a_b"):
        with pytest.raises(UserError, match="share the secret NOTIFY_WEBHOOK_SECRET_A_B") as caught:
            open_channels(settings, owner)
        assert "webhook_secret" in caught.value.hint
    for name, message in (("NOT_THERE", "there is no secret NOT_THERE"), ("not a name", "not the name of a secret")):
        file.write_text(table.format("a-b") + f"webhook_secret = '{name}'\n")
        with pytest.raises(UserError, match=message):
            open_channels(settings, "a-b")


def test_a_table_of_an_owner_that_cannot_be_read_says_where(tmp_path: Path) -> None:
    (tmp_path / "notifications.toml").write_text("[anna]\nnotify_chat = '1'\n")
    with pytest.raises(UserError, match="notify_chat"):
        open_channels(load_settings(tmp_path), "anna")
    assert open_channels(load_settings(tmp_path)) == []
    (tmp_path / "notifications.toml").write_text("anna = '1'\n")
    with pytest.raises(UserError, match=r"notifications\.toml: anna: "):
        open_channels(load_settings(tmp_path), "anna")
