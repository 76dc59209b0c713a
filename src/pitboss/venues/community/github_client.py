"""The part of GitHub's REST API that reports need: create an issue, and find one again by a marker in its body.

One call is one attempt; nothing waits. Redirects are not followed, replies are bounded, and the token is in one header only. A refusal
that would be repeated is a `GithubRefused`; everything else is a `GithubUnavailable`, which says whether the request may have been
carried out. What GitHub says is untrusted text.
"""

import re
from typing import Any, cast
from urllib.parse import urlencode, urlsplit

import aiohttp
import orjson

from pitboss.bootstrap.redact import REDACTOR
from pitboss.core.errors import TransientError, UserError
from pitboss.core.instant import SECOND_MS, Instant, iso
from pitboss.core.noun import noun
from pitboss.core.plain_http import check_plain_http, names_this_machine
from pitboss.core.ports import Clock
from pitboss.live.board import display_text
from pitboss.models.secret import Secret
from pitboss.venues.community.addresses import split_address

TIMEOUT_S = 20.0
MOST_REPLY_BYTES = 64 << 20
"""A hundred issues with bodies of the largest length, all characters escaped."""
PER_PAGE = 100
MOST_PAGES = 50
MOST_RETRY_AFTER_S = 86_400
_REPOSITORY = re.compile(r"/([A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))/([A-Za-z0-9._-]{1,100}?)(?:\.git)?/?")
_HINTS = {
    301: "the repository was renamed or moved: change its address in the community",
    401: "check GITHUB_TOKEN",
    403: "the token needs the right to write issues of this repository",
    404: "the repository does not exist, or the token may not see it",
    410: "issues are switched off in this repository",
}


@noun
class Repository:
    """A repository on GitHub."""

    owner: str
    name: str


class GithubRefused(UserError):
    """GitHub refused a request; the same request would be refused again."""


class GithubUnavailable(TransientError):
    """GitHub cannot answer now. `is_uncertain`: the request may have been carried out nevertheless."""

    def __init__(self, text: str, *, is_uncertain: bool, retry_after_s: float | None = None) -> None:
        super().__init__(text)
        self.is_uncertain = is_uncertain
        self.retry_after_s = retry_after_s


def web_host(api_url: str) -> str:
    """The host of the pages that belong to an API. A server on this machine stands for github.com, in trials."""
    host = (split_address(api_url, "github_api_url").hostname or "").lower()
    return "github.com" if names_this_machine(host) else host.removeprefix("api.")


def parse_repository(url: str, host: str) -> Repository:
    """Read the address of a repository, such as https://github.com/owner/name, strictly: it comes from a stranger."""
    hint = f"give an address such as https://{host}/owner/name"
    try:
        parts = urlsplit(url)
        origin = (parts.scheme, parts.netloc.lower())
    except ValueError:
        raise UserError("the repository of the community is not an address", hint) from None
    path = _REPOSITORY.fullmatch(parts.path)
    if origin != ("https", host) or path is None or path[2] in (".", "..") or parts.query or parts.fragment:
        raise UserError(f"{display_text(url, 100)!r} is not a repository on {host}", hint)
    return Repository(path[1], path[2])


class GithubClient:
    """Asks one GitHub server. Close it after use."""

    def __init__(
        self, api_url: str, token: Secret, clock: Clock, http_hosts: str = "", timeout_s: float = TIMEOUT_S
    ) -> None:
        parts = split_address(api_url, "github_api_url")
        if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc or parts.query:
            raise UserError("github_api_url is not the address of a server", "for example https://api.github.com")
        check_plain_http(parts.scheme, parts.hostname, "github_api_url", http_hosts)
        if not re.fullmatch("[!-~]+", token.reveal()):
            raise UserError("GITHUB_TOKEN has characters that no token has", "set it again")
        self._root = api_url.rstrip("/")
        self._token = token
        self._clock = clock
        self._timeout = aiohttp.ClientTimeout(total=timeout_s)
        self._session: aiohttp.ClientSession | None = None

    async def create_issue(self, repository: Repository, title: str, body: str) -> int:
        """Create an issue and return its number."""
        reply = await self._request("POST", self._issues(repository), orjson.dumps({"title": title, "body": body}))
        number = cast("dict[str, Any]", reply).get("number") if isinstance(reply, dict) else None
        if type(number) is not int or number < 1:
            raise GithubUnavailable("GitHub's answer has no issue number", is_uncertain=True)
        return number

    async def find_issue(self, repository: Repository, marker: str, since: Instant) -> int | None:
        """The first issue created since an instant whose body begins with a marker; None if there is none."""
        numbers: list[int] = []
        for page in range(1, MOST_PAGES + 1):
            query = {
                "state": "all",
                "sort": "created",
                "direction": "desc",
                "since": iso(since // SECOND_MS * SECOND_MS),
                "per_page": PER_PAGE,
                "page": page,
            }
            reply = await self._request("GET", f"{self._issues(repository)}?{urlencode(query)}")
            if not isinstance(reply, list):
                raise GithubUnavailable("GitHub's answer is not a list of issues", is_uncertain=False)
            issues = [cast("dict[str, Any]", issue) for issue in reply if isinstance(issue, dict)]
            numbers += [
                issue["number"]
                for issue in issues
                if type(issue.get("number")) is int and str(issue.get("body") or "").startswith(marker)
            ]
            if len(reply) < PER_PAGE:
                return min(numbers, default=None)
        if numbers:
            return min(numbers)
        raise GithubUnavailable("the repository has too many new issues to search", is_uncertain=False)

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _issues(self, repository: Repository) -> str:
        return f"{self._root}/repos/{repository.owner}/{repository.name}/issues"

    async def _request(self, method: str, url: str, data: bytes | None = None) -> object:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=self._timeout, cookie_jar=aiohttp.DummyCookieJar())
        headers = {
            "Authorization": f"Bearer {self._token.reveal()}",
            "Accept": "application/vnd.github+json",
            "X-GitHub-Api-Version": "2022-11-28",
            "User-Agent": "pitboss",
        }
        if data is not None:
            headers["Content-Type"] = "application/json"
        try:
            async with self._session.request(
                method, url, headers=headers, data=data, allow_redirects=False
            ) as response:
                return self._value(response, await _limited(response))
        except aiohttp.ClientConnectorError as error:
            text = f"GitHub cannot be reached ({type(error).__name__})"
            raise GithubUnavailable(text, is_uncertain=False) from None
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            text = f"no answer of GitHub ({type(error).__name__})"
            raise GithubUnavailable(text, is_uncertain=method == "POST") from None

    def _value(self, response: aiohttp.ClientResponse, content: bytes) -> object:
        """The JSON of a good answer; raises for every other."""
        status = response.status
        try:
            value: object = orjson.loads(content)
        except ValueError:
            value = None
        wait_s = self._retry_after_s(response)
        is_limited = status == 429 or (status == 403 and wait_s is not None)
        if is_limited or status >= 500:
            text = f"GitHub answered {status}{self._reason(value)}"
            raise GithubUnavailable(text, is_uncertain=not is_limited, retry_after_s=wait_s)
        if status >= 300:
            hint = _HINTS.get(301 if status < 400 else status, "")
            raise GithubRefused(f"GitHub refused the issue ({status}){self._reason(value)}", hint)
        if value is None:
            raise GithubUnavailable("GitHub's answer is not JSON", is_uncertain=True)
        return value

    def _reason(self, value: object) -> str:
        message = cast("dict[str, Any]", value).get("message") if isinstance(value, dict) else None
        return f": {display_text(REDACTOR.redact(self._token.hide(message)), 200)}" if isinstance(message, str) else ""

    def _retry_after_s(self, response: aiohttp.ClientResponse) -> float | None:
        """How long GitHub wants to be left alone, from either of its headers; None if it does not say so."""
        after, reset = response.headers.get("Retry-After", ""), response.headers.get("X-RateLimit-Reset", "")
        if re.fullmatch("[0-9]{1,9}", after):
            return min(float(after), MOST_RETRY_AFTER_S)
        if response.headers.get("X-RateLimit-Remaining") == "0":
            wait_s = float(reset) - self._clock.now() / SECOND_MS if re.fullmatch("[0-9]{1,12}", reset) else 60.0
            return min(max(wait_s, 0.0), MOST_RETRY_AFTER_S)
        return None


async def _limited(response: aiohttp.ClientResponse) -> bytes:
    content = bytearray()
    async for part in response.content.iter_chunked(1 << 16):
        content += part
        if len(content) > MOST_REPLY_BYTES:
            raise GithubUnavailable("GitHub's answer is too long", is_uncertain=True)
    return bytes(content)
