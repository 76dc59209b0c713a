"""All settings: each is a key of `settings.toml` in the workspace and an environment variable `PITBOSS_<KEY>`.

The environment takes precedence over the file, the file over the default. Secrets are not settings. A venue declares
the settings that only it has as a `VenueSettings` (`Venue.settings_type`).
"""

import os
import tomllib
from collections.abc import Iterator
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic.fields import FieldInfo

from pitboss.core.errors import UserError
from pitboss.core.suggestion import did_you_mean, fold_spelling, nearest, nearest_spelling
from pitboss.data.object_storage import read_address

FILE = "settings.toml"
DEFAULT_HOME = Path(".pitboss")
PREFIX = "PITBOSS_"
NOT_SETTINGS = ("secret_key", "traceback", "test_database_url", "test_s3_url")
"""Environment variables with the prefix that are read elsewhere."""
SIMILAR = 0.75
"""How similar an unknown variable must be to a setting to be taken for a misspelt one; any other may be meant for another version."""


class _Declared(BaseModel):
    """Settings read from the environment and from the values of the file, which are passed to the constructor."""

    model_config = ConfigDict(frozen=True, validate_default=True, extra="forbid")

    @model_validator(mode="before")
    @classmethod
    def _environment_first(cls, values: dict[str, Any]) -> dict[str, Any]:
        return {**values, **{name: value for name, value in _environment().items() if name in cls.model_fields}}


def _environment() -> dict[str, str]:
    """The environment variables with the prefix that are not empty, by the key of the setting."""
    return {
        name[len(PREFIX) :].lower(): value
        for name, value in os.environ.items()
        if value and name.upper().startswith(PREFIX)
    }


class Settings(_Declared):
    """The settings of the platform, with defaults and descriptions.

    Values of other keys are settings of venues, kept as extra values; `load_settings` checks them.
    """

    model_config = ConfigDict(extra="allow")

    home: Path = Field(
        default=DEFAULT_HOME,
        description="Workspace folder: database, lake, reports, settings. The default is also looked for in the folders above.",
    )
    database_url: str = Field(default="", description="Database address; empty: pitboss.db in the workspace.")
    lake: str = Field(
        default="",
        description="Where data is read from: empty for the folder lake of the workspace, or where one was pushed to, as "
        "s3://bucket/prefix, with #DIGEST for one push.",
    )
    sqlite_processes: Literal["one", "several"] = Field(
        default="several",
        description="'one' lets a single process use faster commits on SQLite below 3.51.3 and locks others out.",
    )
    data_venue: str = Field(default="", description="Venue whose data is used; empty: hyperliquid, or the only one.")
    max_gap: int = Field(default=12, ge=0, le=1_000_000_000, description="Missing bars in a row that a run tolerates.")
    model_timeout_s: float = Field(
        default=45.0,
        gt=0,
        le=3_600,
        description="Longest wait for one attempt at a reply; 300 for models that reason, unless it is changed.",
    )
    model_attempts: int = Field(
        default=4, ge=1, le=20, description="Attempts to get a reply before the tick ends without a decision."
    )
    model_deadline_s: float = Field(
        default=120.0, gt=0, le=36_000, description="Longest wait for a reply, all attempts and pauses together."
    )
    model_errors: int = Field(
        default=5,
        ge=1,
        description="Consecutive ticks without a reply after which a run ends in error (it can be resumed).",
    )
    model_rpm: int = Field(
        default=0, ge=0, description="Requests per minute to one provider; 0: learned from its replies."
    )
    model_tpm: int = Field(
        default=0, ge=0, description="Tokens per minute to one provider; 0: learned from its replies."
    )
    http_hosts: str = Field(
        default="", description="Hosts besides this machine that may be sent keys over plain http, with commas between."
    )
    local_threads: int = Field(default=0, ge=0, description="Threads of a local model; 0: all cores but one.")
    local_timeout_s: float = Field(default=300.0, gt=0, description="Longest wait for an answer of a local model.")
    model_cutoffs: str = Field(
        default="",
        description="Training cutoffs that replace those of the shipped table, such as llm/mine=2025-01-31, separated by commas.",
    )
    telemetry: str = Field(
        default="", description="Where OpenTelemetry data is sent: empty for nowhere, console, or an OTLP address."
    )
    log_level: Literal["debug", "info", "warning", "error", "off"] = Field(
        default="warning", description="Lowest level that is logged."
    )
    log_file: Path | None = Field(default=None, description="File for the log; empty: standard error.")
    mcp_catalog: Path | None = Field(
        default=None, description="TOML file with MCP servers of your own, beside those that are shipped."
    )
    hyperliquid_url: str = Field(
        default="", description="Hyperliquid's API, for downloads and deployments; empty: its public address."
    )
    binance_url: str = Field(default="", description="Address of Binance's API for downloads; empty: the public one.")
    binance_files_url: str = Field(
        default="", description="Address of Binance's published files; empty: the public one."
    )
    cryptopanic_url: str = Field(default="", description="Address of CryptoPanic; empty: the service itself.")
    pyth_url: str = Field(
        default="", description="Address that Pyth candles are downloaded from; empty: Pyth Benchmarks."
    )
    hermes_url: str = Field(
        default="", description="Address of the service for current Pyth prices; empty: Pyth Hermes."
    )
    live_poll_s: float = Field(
        default=2.0, ge=0.2, le=10, description="How often a live run requests the current price, in seconds."
    )
    live_require_watchdog: bool = Field(
        default=False,
        description="Whether a live deployment opens nothing unless a watchdog wrote a heartbeat for it in the last 15 s.",
    )
    raise_caps_delay_s: int = Field(
        default=3_600,
        ge=0,
        le=604_800,
        description="How long after it was asked for a raise of a deployment's caps takes effect; lower caps do at once.",
    )
    notify_webhook_url: str = Field(
        default="",
        repr=False,
        description="Address that notifications about deployments are posted to as JSON: https, or this machine.",
    )
    notify_telegram_chat: str = Field(
        default="", description="Telegram chat for notifications; the bot's token is the secret NOTIFY_TELEGRAM_TOKEN."
    )
    notify_telegram_url: str = Field(
        default="", description="Address of Telegram's bot API; empty: the service itself."
    )
    notify_email_to: str = Field(
        default="", description="E-mail addresses for notifications, with commas between; needs notify_email_host."
    )
    notify_email_from: str = Field(
        default="", description="Sender of notifications by e-mail; empty: the first receiver."
    )
    notify_email_host: str = Field(default="", description="Mail server (SMTP) that sends notifications.")
    notify_email_port: int = Field(
        default=587, ge=1, le=65_535, description="Port of the mail server: STARTTLS, or TLS at once on 465."
    )
    notify_email_user: str = Field(
        default="", description="User at the mail server; the password is the secret NOTIFY_EMAIL_PASSWORD."
    )
    notify_events: str = Field(
        default="fills,refusals,halts,pauses,outages,watchdog,alarms",
        description="What notifications are sent about, with commas between.",
    )
    commit_records: int = Field(default=50, ge=1, description="Free ticks that may share one transaction.")
    executor: Literal["local", "ray", "none"] = Field(
        default="local",
        description="Where workers for queued runs are started: on this machine, on a Ray cluster, or not at all.",
    )
    max_workers: int = Field(
        default=0, ge=0, le=4_096, description="Most workers that are started for queued runs; 0: one for each core."
    )
    worker_runs: int = Field(default=16, ge=1, le=1_024, description="Runs that one worker works on at once.")
    worker_idle_s: float = Field(
        default=20.0,
        ge=0,
        le=86_400,
        description="How long a worker that was started for the queue waits for another run before it exits, in seconds.",
    )
    worker_nice: int = Field(
        default=5,
        ge=0,
        le=19,
        description="Niceness of workers that are started for the queue: with a higher value other programs, such as the web server, take precedence.",
    )
    worker_drain_s: float = Field(
        default=10.0,
        ge=0,
        le=3_600,
        description="How long a worker that is stopped waits for replies in flight, in seconds.",
    )
    runs_per_user: int = Field(default=0, ge=0, description="Most runs of one user at once; 0: no limit.")
    lease_heartbeat_s: float = Field(
        default=5.0, gt=0, le=3_600, description="Seconds between two heartbeats of a worker."
    )
    lease_stale_s: float = Field(
        default=20.0,
        gt=0,
        le=36_000,
        description="Seconds without a heartbeat after which the runs of a worker go to another.",
    )
    scan_s: float = Field(
        default=2.0,
        gt=0,
        le=3_600,
        description="How often workers look for runs of workers without a heartbeat, in seconds.",
    )
    daily_usd: Decimal = Field(
        default=Decimal(5),
        ge=0,
        description="Most that one user may spend on models in a day, in USD; 0: no limit.",
    )
    confirm_above_usd: Decimal = Field(
        default=Decimal(5),
        ge=0,
        description="Estimated cost in USD above which a command asks before it starts; without a terminal it needs --yes.",
    )
    chat_model: str = Field(
        default="",
        description="Language model that answers in the chat, such as openai/gpt-5-mini or local/<file>; empty: none.",
    )
    chat_daily_usd: Decimal = Field(
        default=Decimal(1),
        ge=0,
        description="Most that one user may spend on the chat in a day, in USD, besides daily_usd; 0: no limit.",
    )
    chat_price_in: Decimal = Field(
        default=Decimal(0),
        ge=0,
        description="USD for a million tokens that the chat's model reads; 0: its known price.",
    )
    chat_price_out: Decimal = Field(
        default=Decimal(0),
        ge=0,
        description="USD for a million tokens that the chat's model writes; 0: its known price.",
    )
    serve_hosts: str = Field(
        default="",
        description="Names under which `pitboss serve` is reached besides this machine's and --host, with commas between.",
    )
    serve_https: bool = Field(
        default=False,
        description="Whether a proxy on this machine serves the app over HTTPS: cookies are for HTTPS alone, and the address of "
        "a caller is the one that the proxy reports.",
    )
    serve_rpm: int = Field(
        default=3_000, ge=0, description="Requests a minute that the server takes from one caller; 0: no limit."
    )
    session_idle_h: float = Field(
        default=12.0, gt=0, le=8_760, description="Hours without a request after which a session of the app ends."
    )
    session_max_h: float = Field(
        default=168.0, gt=0, le=8_760, description="Hours after which a session of the app ends in any case."
    )
    audit_days: int = Field(
        default=400,
        ge=0,
        le=36_500,
        description="Days for which entries of the audit log are kept; `pitboss serve` deletes older ones. 0: for ever.",
    )
    log_commits: bool = Field(
        default=False, description="Whether workers log every commit as an event, for checks of the history of a run."
    )
    ray_address: str = Field(default="", description="Ray cluster to start workers on; empty: the one of this machine.")
    ray_cpus: float = Field(default=1.0, gt=0, le=1_024, description="Cores that a worker on Ray requests.")
    ray_memory_mb: int = Field(
        default=0, ge=0, description="Memory that a worker on Ray requests, in MB; 0: no request."
    )

    @field_validator("log_file", "mcp_catalog", mode="before")
    @classmethod
    def _no_file_for_an_empty_text(cls, value: object) -> object:
        return None if value == "" else value

    @field_validator("lake")
    @classmethod
    def _no_secret_in_an_address(cls, text: str) -> str:
        if text:
            read_address(text)
        return text


class VenueSettings(_Declared):
    """The settings that only one venue has. Their keys must differ from those of the platform and of other venues."""

    model_config = ConfigDict(extra="ignore")

    @classmethod
    def of(cls, settings: Settings) -> Self:
        """The settings of this venue in the same workspace."""
        return cls(**(settings.model_extra or {}))


@cache
def venue_settings() -> tuple[type[VenueSettings], ...]:
    """The settings models of the installed venues. Imports the venues, so a short command calls it only if it must."""
    from pitboss.bootstrap.entry_points import entry_points_of
    from pitboss.bootstrap.venue_entry_point import GROUP, load_venue

    models = [load_venue(entry).settings_type() for entry in entry_points_of(GROUP)]
    return tuple(model for model in models if model is not None)


def load_settings(home: Path | None = None, database_url: str | None = None) -> Settings:
    """Load the settings of a workspace. Command line options take precedence over everything."""
    try:
        root = home or find_home(Path(_environment().get("home", DEFAULT_HOME)))
        if root.is_file():
            raise UserError(f"the workspace {root} is a file, not a folder", "name a folder with --home")
        settings = Settings(**_file(root / FILE))
        changes = _venue_values(settings)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise _invalid(str(first["loc"][0]), first["msg"]) from None
    changes["home"] = root
    if database_url:
        changes["database_url"] = database_url
    return settings.model_copy(update=changes)


def find_home(home: Path = DEFAULT_HOME) -> Path:
    """The workspace folder. The default is looked for upwards from the current folder; if there is none, it is here."""
    if home != DEFAULT_HOME or home.is_dir():
        return home
    here = Path.cwd()
    return next((folder / home for folder in here.parents if (folder / home).is_dir()), home)


def _venue_values(settings: Settings) -> dict[str, Any]:
    """The values of venues' settings that are set, checked. Raises `UserError` for a key that no venue declares.

    No venue is imported unless the file or the environment sets something that is not a setting of the platform.
    """
    extra = settings.model_extra or {}
    variables = {name[len(PREFIX) :].lower() for name in os.environ if name.upper().startswith(PREFIX)}
    if not extra and variables <= {*Settings.model_fields, *NOT_SETTINGS}:
        return {}
    values: dict[str, Any] = {}
    for model in venue_settings():
        values |= model.of(settings).model_dump(exclude_unset=True)
    names = [name for name, _ in setting_fields()]
    unknown = [name for name in extra if name not in values]
    if unknown:
        raise UserError(
            f"{FILE}: there is no setting {unknown[0][:60]!r}",
            did_you_mean(nearest_spelling(unknown[0], names), "`pitboss settings` lists them"),
        )
    for variable in sorted(variables - {*names, *NOT_SETTINGS}):
        if similar := nearest(variable, names, fold_spelling, SIMILAR):
            raise UserError(
                f"{variable_name(variable)} is not a setting", did_you_mean(variable_name(similar), "unset it")
            )
    return values


def _invalid(name: str, message: str) -> UserError:
    """The error for a value that does not fit: it names where the value comes from, and what the setting is for."""
    variable = variable_name(name)
    origin = variable if name in _environment() else f"{FILE}: {name}"
    field = dict(setting_fields()).get(name)
    return UserError(f"{origin}: {message[:1].lower()}{message[1:]}", field.description or "" if field else "")


def variable_name(name: str) -> str:
    """The environment variable of a setting."""
    return f"{PREFIX}{name.upper()}"


def _file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}", "fix or remove the file") from None


def setting_fields() -> Iterator[tuple[str, FieldInfo]]:
    """Every setting by its key, those of venues last."""
    for model in (Settings, *venue_settings()):
        yield from model.model_fields.items()
