"""Keys of providers, encrypted in one file of the workspace. They are never shown again.

The file is one Fernet token over names, values and dates, so that a changed, swapped or foreign entry is detected. The master
key comes from the environment or from a file beside it that only its owner can read, created on first use; neither is in the
database, so a copy of the database contains no secrets. This protects keys in backups, exports and single leaked files. It
does not protect them from a process that can read all files of the owner.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from pitboss.core.errors import UserError
from pitboss.core.instant import Instant
from pitboss.core.suggestion import suggestion

if TYPE_CHECKING:
    from cryptography.fernet import Fernet

FILE, KEY_FILE = "secrets.json", "secret.key"
VARIABLE = "PITBOSS_SECRET_KEY"
FORMAT = 1
NAME = re.compile(r"[A-Z][A-Z0-9_]{1,63}")
LONGEST = 8_192
Entry = Mapping[str, Any]


class Secrets:
    """The encrypted secrets of one workspace. `master` is the master key, empty to use the key file."""

    def __init__(self, home: Path, master: str, now: Callable[[], Instant]) -> None:
        self._file = home / FILE
        self._key_file = home / KEY_FILE
        self._lock_file = home / f"{FILE}.lock"
        self._master = master.strip()
        self._now = now

    def get(self, name: str) -> str | None:
        """The value, or None."""
        entry = self._read().get(name)
        return None if entry is None else entry["value"]

    def names(self) -> dict[str, Instant]:
        """The times at which secrets were set, by name."""
        return {name: entry["set_at"] for name, entry in sorted(self._read().items())}

    def set(self, name: str, value: str) -> bool:
        """Store a value; returns whether it replaced another."""
        check_name(name)
        check_value(value)
        with self._locked():
            entries = self._read(make_key=True)
            self._write({**entries, name: {"value": value, "set_at": self._now()}})
        return name in entries

    def remove(self, name: str) -> None:
        """Remove a value."""
        self._require(name, self._read())  # before the lock file is created
        with self._locked():
            entries = self._read()
            self._require(name, entries)
            del entries[name]
            self._write(entries)

    def _require(self, name: str, entries: Mapping[str, Entry]) -> None:
        if name not in entries:
            hint = suggestion(name, sorted(entries), "stored are") or "no secrets are stored yet"
            raise UserError(f"no secret {name} is stored", hint)

    def _read(self, make_key: bool = False) -> dict[str, Entry]:
        try:
            content = self._file.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            if make_key:
                self._fernet(make=True)  # an invalid key is reported before anything is written
            return {}
        except OSError as error:
            raise _unusable(self._file, error) from None
        from cryptography.fernet import InvalidToken

        fernet = self._fernet()
        try:
            envelope = orjson.loads(content)
            if envelope["pitboss_secrets"] != FORMAT:
                raise UserError(f"{self._file} was written by a newer version of pitboss", "update pitboss")
            entries = orjson.loads(fernet.decrypt(envelope["token"].encode()))
            return {
                name: {"value": str(entry["value"]), "set_at": int(entry["set_at"])} for name, entry in entries.items()
            }
        except (ValueError, KeyError, TypeError, AttributeError, InvalidToken):
            raise UserError(
                f"{self._file} cannot be opened: it was changed, or encrypted with another key",
                f"restore its {KEY_FILE} or {VARIABLE}; or remove the file and set the secrets again",
            ) from None

    def _write(self, entries: Mapping[str, Entry]) -> None:
        token = self._fernet().encrypt(orjson.dumps(entries)).decode()
        _publish(self._file, orjson.dumps({"pitboss_secrets": FORMAT, "token": token}) + b"\n")

    def _fernet(self, make: bool = False) -> "Fernet":
        from cryptography.fernet import Fernet

        origin, key = (VARIABLE, self._master) if self._master else (str(self._key_file), self._key(make))
        try:
            return Fernet(key)
        except ValueError:
            raise UserError(
                f"{origin} is not a master key: 32 random bytes in url-safe base64 are expected",
                "restore the previous key, or remove it and pitboss creates one",
            ) from None

    def _key(self, make: bool) -> str:
        """The master key of the key file; created if it is missing and `make` is set."""
        try:
            with self._key_file.open("rb") as handle:
                if os.fstat(handle.fileno()).st_mode & 0o077:
                    raise UserError(
                        f"{self._key_file} can be read by other users of this machine and is refused",
                        f"chmod 600 {self._key_file}; if others may have read it, get new keys from your providers",
                    )
                return handle.read().decode("ascii", "replace").strip()
        except FileNotFoundError:
            pass
        except OSError as error:
            raise _unusable(self._key_file, error) from None
        if not make:
            raise UserError(
                f"{self._file} cannot be opened: its key {self._key_file} is missing",
                f"restore it or set {VARIABLE}; or remove {self._file.name} and set the secrets again",
            )
        from cryptography.fernet import Fernet

        key = Fernet.generate_key()
        _publish(self._key_file, key + b"\n")
        return key.decode()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock for changing the file. Readers need none: `_publish` replaces the file in one step."""
        from filelock import FileLock  # here: most commands never change a secret

        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(self._lock_file, mode=0o600, fallback_to_soft=False).acquire()
        except OSError as error:
            raise _unusable(self._file, error) from None
        with lock:
            yield


def check_name(name: str) -> None:
    """Raise unless the name is that of a variable. The message does not repeat the input: it may be the secret."""
    if not NAME.fullmatch(name):
        raise UserError(
            "this is not the name of a secret", "give a provider such as groq, or its variable such as GROQ_API_KEY"
        )
    if name == VARIABLE:
        raise UserError(f"{VARIABLE} decrypts the secrets and cannot be one of them", "set it in the environment")


def check_value(value: str) -> None:
    """Raise unless the value is printable ASCII without blanks: other characters are invalid in a header."""
    if not value:
        raise UserError("no value was given", "type it at the prompt, or pipe it in")
    if len(value) > LONGEST:
        raise UserError(f"the value is longer than {LONGEST} characters", "give the key alone")
    if not (value.isascii() and value.isprintable()) or " " in value:
        raise UserError("the value has blanks, line ends or other characters that no key has", "give the key alone")


def _publish(path: Path, data: bytes) -> None:
    """Replace a file atomically, readable by its owner alone. The caller holds the lock."""
    new = path.with_name(f"{path.name}.new")
    try:
        new.unlink(missing_ok=True)  # left by a process that died
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "wb") as handle:
            os.fchmod(handle.fileno(), 0o600)  # independent of the umask
            handle.write(data)
            handle.flush()
            os.fsync(handle.fileno())
        new.replace(path)
        _sync(path.parent)
    except OSError as error:
        with suppress(OSError):
            new.unlink(missing_ok=True)
        raise _unusable(path, error) from None


def _sync(folder: Path) -> None:
    """Flush a folder, so that a new name in it survives a power failure."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _unusable(path: Path, error: OSError) -> UserError:
    return UserError(f"{path}: {error.strerror or error}", "check the workspace folder, or name another with --home")
