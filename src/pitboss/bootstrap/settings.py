"""All settings: each is a key of `settings.toml` in the workspace and an environment variable `PITBOSS_<KEY>`.

The environment takes precedence over the file, the file over the default. Secrets are not settings.
"""

import tomllib
from decimal import Decimal
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from pitboss.core.errors import UserError
from pitboss.data.object_storage import read_address

FILE = "settings.toml"
DEFAULT_HOME = Path(".pitboss")


class Settings(BaseSettings):
    """All settings, with defaults and descriptions."""

    model_config = SettingsConfigDict(env_prefix="PITBOSS_", env_ignore_empty=True, extra="forbid", frozen=True)

    home: Path = Field(default=DEFAULT_HOME, description="Workspace folder: database, lake, reports, settings.")
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
    model_timeout_s: float = Field(default=45.0, gt=0, le=3_600, description="Longest wait for one try at an answer.")
    model_attempts: int = Field(default=4, ge=1, le=20, description="Tries at an answer before the tick goes without.")
    model_deadline_s: float = Field(
        default=120.0, gt=0, le=36_000, description="Longest wait for an answer, all its tries and pauses together."
    )
    model_errors: int = Field(
        default=5, ge=1, description="Ticks in a row without an answer that end a run (it can be resumed)."
    )
    model_rpm: int = Field(
        default=0, ge=0, description="Requests a minute to one provider; 0: learned from its replies."
    )
    model_tpm: int = Field(default=0, ge=0, description="Tokens a minute to one provider; 0: learned from its replies.")
    local_threads: int = Field(default=0, ge=0, description="Threads of a local model; 0: all cores but one.")
    local_timeout_s: float = Field(default=300.0, gt=0, description="Longest wait for an answer of a local model.")
    model_cutoffs: str = Field(
        default="", description="Training cutoffs that you know better, as llm/mine=2025-01-31, with commas between."
    )
    telemetry: str = Field(
        default="", description="Where OpenTelemetry goes: empty for nowhere, console, or an OTLP address."
    )
    log_level: Literal["debug", "info", "warning", "error", "off"] = Field(
        default="warning", description="From which level on the log is written."
    )
    log_file: Path | None = Field(default=None, description="File for the log; empty: standard error.")
    mcp_catalog: Path | None = Field(
        default=None, description="TOML file with MCP servers of your own, beside those that are shipped."
    )
    hyperliquid_url: str = Field(default="", description="Where hyperliquid is downloaded from; empty: its public API.")
    binance_url: str = Field(default="", description="Where binance is downloaded from; empty: its public API.")
    binance_files_url: str = Field(default="", description="Where binance's files are; empty: the published ones.")
    cryptopanic_url: str = Field(default="", description="Where cryptopanic is asked; empty: the service itself.")
    pyth_url: str = Field(default="", description="Where pyth's candles are downloaded from; empty: Pyth Benchmarks.")
    hermes_url: str = Field(default="", description="Where Pyth prices of this moment are asked; empty: Pyth Hermes.")
    predict_server_url: str = Field(
        default="", description="Address of the predict protocol's indexer; it has no default."
    )
    predict_id: str = Field(default="", description="Id of the protocol's Predict object, as 0x and hex digits.")
    predict_manager_id: str = Field(default="", description="Id of your PredictManager object, as 0x and hex digits.")
    predict_package_id: str = Field(default="", description="Id of the protocol's package, for writing to the chain.")
    predict_quote_type: str = Field(
        default="", description="Type of the coin that is paid with, as 0x…::dusdc::DUSDC, for writing to the chain."
    )
    sui_node_url: str = Field(default="", description="Address of a Sui node's GraphQL service; it has no default.")
    sui_network: Literal["testnet", "devnet", "localnet", "mainnet"] = Field(
        default="testnet", description="The network that node must belong to."
    )
    sui_allow_mainnet: bool = Field(default=False, description="Whether sui_network may be mainnet: real money.")
    sui_gas_budget: int = Field(
        default=50_000_000, ge=1_000_000, le=10_000_000_000, description="Most MIST that one transaction may burn."
    )
    live_poll_s: float = Field(
        default=2.0, ge=0.2, le=10, description="How often a live run asks for the price of this moment, in seconds."
    )
    commit_records: int = Field(default=50, ge=1, description="Free ticks that may share one transaction.")
    executor: Literal["local", "ray", "none"] = Field(
        default="local", description="Who starts workers for queued runs: this machine, a Ray cluster, or nobody."
    )
    max_workers: int = Field(
        default=0, ge=0, le=4_096, description="Most workers that are started for queued runs; 0: one for each core."
    )
    worker_runs: int = Field(default=16, ge=1, le=1_024, description="Runs that one worker works on at once.")
    worker_idle_s: float = Field(
        default=20.0, ge=0, le=86_400, description="How long a worker that was started for the queue waits for more."
    )
    worker_drain_s: float = Field(
        default=10.0, ge=0, le=3_600, description="How long a worker told to stop waits for answers on their way."
    )
    runs_per_user: int = Field(default=0, ge=0, description="Most runs of one user at once; 0: no limit.")
    lease_heartbeat_s: float = Field(
        default=5.0, gt=0, le=3_600, description="How often a worker says that it is alive."
    )
    lease_stale_s: float = Field(
        default=20.0, gt=0, le=36_000, description="Silence of a worker after which its runs go to another."
    )
    scan_s: float = Field(default=2.0, gt=0, le=3_600, description="How often workers look for runs of lost ones.")
    daily_usd: Decimal = Field(
        default=Decimal(5),
        ge=0,
        description="Most that one user may spend on queued runs in a day, in USD; 0: no limit.",
    )
    log_commits: bool = Field(
        default=False, description="Whether workers tell every commit in the log of events, to check a history by it."
    )
    ray_address: str = Field(default="", description="Ray cluster to start workers on; empty: the one of this machine.")
    ray_cpus: float = Field(default=1.0, gt=0, le=1_024, description="Cores that a worker on Ray asks for.")
    ray_memory_mb: int = Field(
        default=0, ge=0, description="Memory that a worker on Ray asks for; 0: none in particular."
    )

    @field_validator("lake")
    @classmethod
    def _no_secret_in_an_address(cls, text: str) -> str:
        if text:
            read_address(text)
        return text

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Environment first, then the values of the file, which are passed to the constructor."""
        return env_settings, init_settings


def load_settings(home: Path | None = None, database_url: str | None = None) -> Settings:
    """Load the settings of a workspace. Command line options take precedence over everything."""
    try:
        root = home or Settings().home
        settings = Settings(**_file(root / FILE))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = ".".join(str(part) for part in first["loc"])
        message = "no such setting" if first["type"] == "extra_forbidden" else first["msg"]
        raise UserError(f"setting {name}: {message}", "`pitboss settings` lists them") from None
    changes: dict[str, Any] = {"home": root}
    if database_url:
        changes["database_url"] = database_url
    return settings.model_copy(update=changes)


def _file(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise UserError(f"{path}: cannot be read: {error}", "fix or remove the file") from None


def describe(settings: Settings) -> list[dict[str, Any]]:
    """Every setting with its value, default and description."""
    return [
        {
            "key": name,
            "variable": f"PITBOSS_{name.upper()}",
            "value": str(getattr(settings, name)),
            "default": str(field.default),
            "meaning": field.description,
        }
        for name, field in Settings.model_fields.items()
    ]
