"""Object storage behind a small port: addresses such as `s3://bucket/prefix`, and named objects under them.

Used by `lake_push` and `lake_cache`; it knows nothing of lakes. Credentials are passed as variables (`VARIABLES`), never in
an address. Errors of the library are reworded, because they may quote secrets. The library is `obstore`, an extra, loaded
by the first call that needs it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import IO, Any, Protocol
from urllib.parse import unquote, urlsplit

from pitboss.core.errors import UserError

_S3 = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT_URL_S3",
    "AWS_VIRTUAL_HOSTED_STYLE_REQUEST",
)
_AZURE = (
    "AZURE_STORAGE_ACCOUNT_NAME",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_ENDPOINT",
    "AZURE_CLIENT_ID",
    "AZURE_CLIENT_SECRET",
    "AZURE_TENANT_ID",
)
VARIABLES: dict[str, tuple[str, ...]] = {
    "s3": _S3,
    "gs": ("GOOGLE_SERVICE_ACCOUNT_KEY",),
    "az": _AZURE,
    "https": (),
    "http": (),
    "file": (),
}
"""By scheme: the variables with which storage is opened."""
SECRET = re.compile(r"KEY|SECRET|TOKEN")
"""Matches the names of variables that hold secrets."""

EXAMPLE = "for example s3://bucket/prefix; also gs://, az://, https:// and file:///folder"
FROM_ENVIRONMENT = "credentials come from the environment, such as AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
PIN = re.compile(r"[0-9a-f]{64}")
_CODE = re.compile(r"<Code>(\w{1,60})</Code>")
_STATUS = re.compile(r"status code: (\d{3}(?: [A-Z][A-Za-z-]+)*)")
_QUOTED = re.compile(r"\w+://\S*|\S*[?&=]\S*|/\S+")
CHUNK = 4 * 1024 * 1024
STALLED = timedelta(seconds=30)
LONGEST = timedelta(hours=6)
RETRIES = 6
GIVE_UP = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Address:
    """The address of a lake in object storage. `pin` is the digest of one push, or empty for the newest."""

    scheme: str
    url: str
    pin: str = ""

    def __str__(self) -> str:
        return self.url


def read_address(text: str) -> Address:
    """Parse the address in a setting or an option. The error never repeats the text, which may hold a password."""
    try:
        parts = urlsplit(text.strip())
        port_ok = parts.port is None or parts.port > 0
    except ValueError:
        raise UserError("not an address of object storage", EXAMPLE) from None
    if parts.username is not None or parts.password is not None or "@" in parts.netloc:
        raise UserError("an address with a user or a password in it is refused", FROM_ENVIRONMENT)
    if parts.query or "?" in text:
        raise UserError("an address with a ? in it is refused: what follows may be a key", FROM_ENVIRONMENT)
    path = unquote(parts.path).strip("/")
    sound = port_ok and bool(path if parts.scheme == "file" else parts.netloc) and text.isprintable()
    clean = not any(part in ("", ".", "..") for part in path.split("/")) if path else True
    if parts.scheme not in VARIABLES or not sound or not clean or (parts.scheme == "file" and parts.netloc):
        raise UserError("not an address of object storage", EXAMPLE)
    if parts.fragment and not PIN.fullmatch(parts.fragment):
        raise UserError("the part after # in an address is not the digest of a push", "it has 64 digits of 0-9 and a-f")
    url = f"{parts.scheme}://{parts.netloc}/{parts.path.strip('/')}".rstrip("/")  # quoted as it was given
    return Address(parts.scheme, url, parts.fragment)


class ObjectStorage(Protocol):
    """Named objects. A missing object is a normal result; every other failure is a `UserError`."""

    def read(self, name: str, take: Callable[[bytes], None]) -> bool:
        """Pass the bytes of an object to `take`, piece by piece. False if there is none. Errors of `take` propagate."""
        ...

    def write(self, name: str, content: bytes | IO[bytes]) -> None:
        """Write an object, completely or not at all."""
        ...

    def sizes(self, folder: str) -> dict[str, int]:
        """The objects below a folder, by name, with their sizes."""
        ...


@dataclass(frozen=True, slots=True)
class ObjectSource:
    """An address as it is shown, and its storage, opened by the first call."""

    address: str
    objects: Callable[[], ObjectStorage]

    def read_small(self, name: str, most_bytes: int) -> bytes | None:
        """The content of an object that fits in memory; None if there is none."""
        content = bytearray()

        def take(piece: bytes) -> None:
            content.extend(piece)
            if len(content) > most_bytes:
                raise UserError(f"{self.address}: {name} is larger than any that pitboss writes")

        return bytes(content) if self.objects().read(name, take) else None


def open_objects(address: Address, variables: Mapping[str, str], writing: bool = False) -> ObjectStorage:
    """Open the storage at an address. With `writing`, a missing local folder is created."""
    if writing and address.scheme in ("http", "https"):
        raise UserError(f"{address} is read-only", "push to s3://, gs://, az:// or file://")
    try:
        import obstore  # noqa: F401  # pyright: ignore[reportUnusedImport]  an extra, and it takes a moment to load
        from obstore.store import MemoryStore, from_url
    except ModuleNotFoundError:
        raise UserError(
            f"a lake at {address.scheme}:// needs the package obstore", "pip install 'pitboss[objects]'"
        ) from None
    if address.scheme == "file" and not writing and not Path(unquote(urlsplit(str(address)).path)).is_dir():
        return ObstoreStorage(address, MemoryStore())  # a folder that does not exist is not created for reading
    more: dict[str, Any] = {"mkdir": writing} if address.scheme == "file" else _client(address, variables)
    with _reworded_errors(address):
        return ObstoreStorage(address, from_url(str(address), **more))


def _client(address: Address, variables: Mapping[str, str]) -> dict[str, Any]:
    config = {name: variables[name] for name in VARIABLES[address.scheme] if variables.get(name)}
    if "AWS_ENDPOINT_URL_S3" in config:  # the more specific one wins, as in other tools
        config["AWS_ENDPOINT_URL"] = config.pop("AWS_ENDPOINT_URL_S3")
    endpoints = (str(address), config.get("AWS_ENDPOINT_URL", ""), config.get("AZURE_STORAGE_ENDPOINT", ""))
    return {
        **({"config": {name.lower(): value for name, value in config.items()}} if config else {}),
        "client_options": {
            "allow_http": any(each.startswith("http://") for each in endpoints),  # only if the address says http
            "timeout": LONGEST,  # of a whole transfer; a stalled one is ended by the read timeout
            "read_timeout": STALLED,
        },
        "retry_config": {"max_retries": RETRIES, "retry_timeout": GIVE_UP},
    }


class ObstoreStorage:
    """Object storage accessed through `obstore`."""

    def __init__(self, address: Address, store: Any) -> None:
        self._address = address
        self._store = store

    def read(self, name: str, take: Callable[[bytes], None]) -> bool:
        """Pass the bytes of an object to `take`, piece by piece. False if there is none."""
        with _reworded_errors(self._address):
            try:
                pieces = iter(self._store.get(name).stream(min_chunk_size=CHUNK))
            except FileNotFoundError:
                return False
        while True:
            with _reworded_errors(self._address):  # not around `take`, whose errors are the caller's
                piece = next(pieces, None)
            if piece is None:
                return True
            take(bytes(piece))

    def write(self, name: str, content: bytes | IO[bytes]) -> None:
        """Write an object, completely or not at all."""
        with _reworded_errors(self._address):
            self._store.put(name, content)

    def sizes(self, folder: str) -> dict[str, int]:
        """The objects below a folder, by name, with their sizes."""
        with _reworded_errors(self._address), suppress(FileNotFoundError):
            return {entry["path"]: entry["size"] for page in self._store.list(folder) for entry in page}
        return {}


@contextmanager
def _reworded_errors(address: Address) -> Iterator[None]:
    from obstore.exceptions import BaseError

    try:
        yield
    except (BaseError, OSError, ValueError) as error:
        raise _failed(address, error) from None


def _failed(address: Address, error: Exception) -> UserError:
    """Describe a failure without what the library quotes: addresses of requests can be signed with a key."""
    from obstore.exceptions import PermissionDeniedError, UnauthenticatedError

    text = str(error)
    if isinstance(error, FileNotFoundError) or "<Code>NoSuchBucket</Code>" in text:
        return UserError(f"{address}: there is no such bucket", "create it first")
    code, status = _CODE.search(text), _STATUS.search(text)
    if isinstance(error, PermissionDeniedError | UnauthenticatedError | PermissionError):
        detail = f" ({code[1]})" if code else ""
        return UserError(f"{address}: access is denied{detail}", FROM_ENVIRONMENT)
    if code or status:
        reason = code[1] if code else status[1] if status else ""
        return UserError(f"{address} answered with an error: {reason}", "check the address and the variables it needs")
    first = text.splitlines()[0] if text else type(error).__name__
    reason = " ".join(_QUOTED.sub("", first.rpartition(" - ")[2]).split())[:120]
    return UserError(f"{address} cannot be used: {reason}", "check that it exists and can be reached from this machine")
