"""The rate limiter keeps to a provider's limits, without starvation and endless waits; in virtual time."""

import asyncio
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from models.virtual_time import START_MS, run, virtual_lane
from pitboss.core.errors import TransientError
from pitboss.core.instant import MINUTE_MS, iso
from pitboss.core.intent import Usage
from pitboss.core.ports import Message, ModelReply, ModelRequest
from pitboss.models.call import CallContext, CallResult, ModelClient
from pitboss.models.failures import Failure
from pitboss.models.lane import Lane
from pitboss.models.limited import Limited
from pitboss.models.limiter import Limiter, fingerprint
from pitboss.models.quota_headers import read_quotas
from pitboss.models.quotas import QuotaNeed

ASK = ModelRequest("system", (Message("user", "hello"),), ())
NOW = START_MS
BUSY = Failure("retry", "busy", "429", status=429)


@dataclass
class LimitedProvider(ModelClient):
    """A provider with a limit per fixed window, reported in its headers; it refuses requests above it."""

    lane: Lane
    limit: int = 10_000
    window_s: float = 60.0
    latencies: list[float] = field(default_factory=lambda: [0.5])
    headers: bool = True
    output: int = 100
    name: str = "example/model"
    arrivals: list[float] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    refused: int = 0
    most_at_once: int = 0
    _at_once: int = 0
    _counts: Counter[int] = field(default_factory=Counter)

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        loop = asyncio.get_running_loop()
        latency = self.latencies[len(self.arrivals) % len(self.latencies)]
        self.order.append(str(request.settings.get("run")))
        self._at_once += 1
        self.most_at_once = max(self.most_at_once, self._at_once)
        try:
            await asyncio.sleep(latency / 3)
            arrived = loop.time()
            self.arrivals.append(arrived)
            window = int(arrived // self.window_s)
            self._counts[window] += 1
            left = self.limit - self._counts[window]
            reset = (window + 1) * self.window_s - arrived
            headers = {
                "X-RateLimit-Limit-Requests": str(self.limit),
                "X-RateLimit-Remaining-Requests": str(max(left, 0)),
                "X-RateLimit-Reset-Requests": f"{reset:.3f}s",
            }
            await asyncio.sleep(latency * 2 / 3)
        finally:
            self._at_once -= 1
        usage = Usage(10, self.output)
        if left < 0:
            self.refused += 1
            return CallResult(failure=BUSY, attempts=1, status=429, headers=headers)
        return CallResult(
            ModelReply("ok", usage=usage), attempts=1, status=200, headers=headers if self.headers else {}
        )


async def ask_all(provider: LimitedProvider, runs: Mapping[str, int]) -> None:
    """Every run asks all it has at once."""
    tasks: list[asyncio.Task[ModelReply]] = []
    for run_id, count in runs.items():
        model = Limited(provider, provider.lane, run_id)
        request = ModelRequest("", (), (), settings={"run": run_id})
        tasks += [asyncio.create_task(model.complete(request)) for _ in range(count)]
    await asyncio.gather(*tasks, return_exceptions=True)


latencies = st.lists(st.floats(0.01, 20), min_size=1, max_size=5)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 12), st.integers(1, 60), latencies, st.integers(1, 40))
def test_a_set_limit_is_kept_in_every_window_wherever_it_begins(
    rpm: int, count: int, slow: list[float], most: int
) -> None:
    async def main() -> None:
        provider = LimitedProvider(virtual_lane(rpm=rpm, most=most), latencies=slow, headers=False)
        await ask_all(provider, {"a": count})
        arrivals = sorted(provider.arrivals)
        assert len(arrivals) == count
        assert all(later - first >= 60 for first, later in zip(arrivals, arrivals[rpm:], strict=False))
        assert provider.most_at_once <= most

    run(main())


@settings(max_examples=30, deadline=None)
@given(st.integers(50, 500), st.lists(st.tuples(st.integers(1, 400), st.integers(0, 100)), max_size=30), latencies)
def test_a_limit_of_tokens_is_kept_in_every_window(tpm: int, calls: list[tuple[int, int]], slow: list[float]) -> None:
    async def main() -> None:
        tested_lane, times = virtual_lane(tpm=tpm), []

        async def call(number: int, estimate: int, percent: int) -> None:
            estimate = min(estimate, tpm)
            ticket = await tested_lane.acquire("a", QuotaNeed(estimate, 0))
            await asyncio.sleep(slow[number % len(slow)])
            times.append((asyncio.get_running_loop().time(), max(estimate * percent // 100, 1)))
            tested_lane.release(ticket, Usage(times[-1][1], 0))

        await asyncio.gather(*(call(number, *sizes) for number, sizes in enumerate(calls)))
        assert len(times) == len(calls)
        for at, _ in times:
            assert sum(tokens for when, tokens in times if at <= when < at + 60) <= tpm

    run(main())


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 20), st.floats(1, 200), st.integers(1, 60), latencies)
def test_a_learned_limit_is_never_run_into_once_a_reply_has_reported_it(
    limit: int, window_s: float, count: int, slow: list[float]
) -> None:
    async def main() -> None:
        provider = LimitedProvider(virtual_lane(), limit, window_s, [0.01])
        await ask_all(provider, {"a": 1})
        provider.latencies = slow
        await ask_all(provider, {"a": count, "b": count})
        assert provider.refused == 0
        assert len(provider.arrivals) == 1 + 2 * count

    run(main())


@dataclass
class CountingProvider(ModelClient):
    """Counts requests when they arrive, in windows or in a token bucket, and reports what is left.

    Some replies do not report it. A call that is cancelled before it arrives is not counted; later ones are.
    """

    lane: Lane
    limit: int
    period_s: float
    fills: bool
    latencies: list[float]
    silent: int
    name: str = "example/model"
    call_count: int = 0
    refused: int = 0
    unheard: int = 0
    _used: float = 0.0
    _at: float = 0.0

    def _arrive(self) -> dict[str, str]:
        now = asyncio.get_running_loop().time()
        if self.fills:
            self._used = max(self._used - (now - self._at) * self.limit / self.period_s, 0.0)
        elif now // self.period_s != self._at // self.period_s:
            self._used = 0.0
        self._at = now
        if self._used + 1 > self.limit + 1e-6:
            self.refused += 1
        else:
            self._used += 1
        full_s = self._used * self.period_s / self.limit if self.fills else self.period_s - now % self.period_s
        return {
            "x-ratelimit-limit-requests": str(self.limit),
            "x-ratelimit-remaining-requests": str(int(self.limit - self._used + 1e-6)),
            "x-ratelimit-reset-requests": f"{full_s + 0.001:.3f}s",
        }

    async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
        number, self.call_count = self.call_count, self.call_count + 1
        latency = self.latencies[number % len(self.latencies)]
        await asyncio.sleep(latency / 3)
        headers = self._arrive()
        self.unheard += 1
        await asyncio.sleep(latency * 2 / 3)
        says = number == 0 or number % 4 >= self.silent
        self.unheard -= says
        reply = ModelReply("ok", usage=Usage(10, 10))
        return CallResult(reply, attempts=1, status=200, headers=headers if says else {})


@settings(max_examples=80, deadline=None)
@given(
    st.integers(1, 12),
    st.floats(2, 200),
    st.booleans(),
    latencies,
    st.integers(0, 3),
    st.lists(st.tuples(st.integers(0, 90), st.one_of(st.none(), st.integers(0, 120))), min_size=1, max_size=25),
)
def test_a_learned_limit_is_kept_however_it_is_counted_whatever_is_cancelled_or_left_unsaid(
    limit: int,
    period_s: float,
    fills: bool,
    slow: list[float],
    silent: int,
    calls: list[tuple[int, int | None]],
) -> None:
    async def main() -> None:
        provider = CountingProvider(virtual_lane(), limit, period_s, fills, [0.01], silent)
        await Limited(provider, provider.lane, "first").complete(ASK)
        provider.latencies = slow
        loop = asyncio.get_running_loop()

        async def call_model(number: int, start: int) -> None:
            await asyncio.sleep(start)
            await Limited(provider, provider.lane, f"run {number % 3}").complete(ASK)

        tasks = [asyncio.create_task(call_model(number, start)) for number, (start, _) in enumerate(calls)]
        for task, (_, cancelled) in zip(tasks, calls, strict=True):
            if cancelled is not None:
                loop.call_later(cancelled, task.cancel)
        await asyncio.gather(*tasks, return_exceptions=True)
        # A reading that overtook a call of which nothing was heard may be older than that call: one too many for each.
        assert provider.refused <= provider.unheard
        assert (provider.lane.under_way, provider.lane.waiting) == (0, 0)
        assert all(task.exception() is None for task in tasks if not task.cancelled())

    run(main())


@pytest.mark.parametrize(("limit", "period_s", "fills"), [(1, 62.0, False), (1, 200.0, True), (3, 200.0, True)])
def test_calls_that_nothing_was_heard_of_do_not_make_a_quota_look_full_too_soon(
    limit: int, period_s: float, fills: bool
) -> None:
    async def main() -> None:
        provider = CountingProvider(virtual_lane(), limit, period_s, fills, [0.1], silent=0)
        await ask_all_at_once(provider, 1)
        provider.silent = 4
        await ask_all_at_once(provider, max(limit - 1, 1))
        await ask_all_at_once(provider, 1)
        provider.silent = 0
        await ask_all_at_once(provider, 2 * limit)
        assert provider.refused == 0

    run(main())


async def ask_all_at_once(provider: CountingProvider, count: int) -> None:
    model = Limited(provider, provider.lane, "a")
    await asyncio.gather(*(model.complete(ASK) for _ in range(count)))


def test_calls_below_the_limit_are_not_delayed() -> None:
    async def main() -> None:
        provider = LimitedProvider(virtual_lane(), limit=1_000)
        await ask_all(provider, {"a": 200})
        assert asyncio.get_running_loop().time() == pytest.approx(0.5, abs=0.01)

    run(main())


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(1, 40), min_size=2, max_size=5), st.integers(1, 3))
def test_waiting_runs_are_served_in_turn(counts: list[int], rpm: int) -> None:
    async def main() -> None:
        provider = LimitedProvider(virtual_lane(rpm=rpm), headers=False)
        await ask_all(provider, {f"run {number}": count for number, count in enumerate(counts)})
        left = {f"run {number}": count for number, count in enumerate(counts)}
        # The first runs found none waiting. From then on no run gets a second call while another waits for its first.
        for run_id in provider.order[:rpm]:
            left[run_id] -= 1
        waiting = [run_id for run_id, count in left.items() if count]
        since = dict.fromkeys(waiting, 0)
        for run_id in provider.order[rpm:]:
            for earlier in since:
                since[earlier] += earlier != run_id
            assert since.pop(run_id) <= 2 * len(waiting)
            left[run_id] -= 1
            if left[run_id]:
                since[run_id] = 0

    run(main())


def test_a_run_with_a_hundred_waiting_calls_does_not_starve_a_run_with_one() -> None:
    async def main() -> None:
        provider = LimitedProvider(virtual_lane(rpm=2), headers=False)
        await ask_all(provider, {"many": 100, "one": 1})
        assert provider.order.index("one") <= 3

    run(main())


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 4),
    st.lists(st.tuples(st.integers(0, 90), st.one_of(st.none(), st.integers(0, 120))), min_size=1, max_size=20),
)
def test_cancelled_waits_leave_no_trace(rpm: int, calls: list[tuple[int, int | None]]) -> None:
    async def main() -> None:
        provider = LimitedProvider(virtual_lane(rpm=rpm, most=2), headers=False)
        loop = asyncio.get_running_loop()

        async def call_model(number: int, start: int) -> None:
            await asyncio.sleep(start)
            await Limited(provider, provider.lane, f"run {number % 3}").complete(ASK)

        tasks = [asyncio.create_task(call_model(number, start)) for number, (start, _) in enumerate(calls)]
        for task, (_, cancelled) in zip(tasks, calls, strict=True):
            if cancelled is not None:
                loop.call_later(cancelled, task.cancel)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert all(task.done() for task in tasks)
        assert provider.lane.under_way == 0
        await provider.complete(ASK)
        assert all(not task.cancelled() for task, (_, cancelled) in zip(tasks, calls, strict=True) if cancelled is None)

    run(main())


def test_a_burst_of_rate_limit_errors_halves_the_bound_once_and_it_recovers() -> None:
    async def main() -> None:
        tested_lane = virtual_lane(most=64)
        tickets = [await tested_lane.acquire("a") for _ in range(64)]
        waiting = asyncio.create_task(tested_lane.acquire("b"))
        await asyncio.sleep(0)
        assert not waiting.done()

        class RateLimitedClient(ModelClient):
            name = "m"

            async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
                return CallResult(failure=BUSY, attempts=1, status=429)

        for ticket in tickets:
            tested_lane.release(ticket)
        tested_lane.release(await waiting)
        permits = [await tested_lane.acquire("a") for _ in range(39)]
        with pytest.raises(TransientError):
            await Limited(RateLimitedClient(), tested_lane, "a").complete(ASK)
        assert tested_lane.concurrency_limit == 20  # half of the 40 that were under way
        for ticket in permits:
            tested_lane.release(ticket)
        for _ in range(3_000):
            tested_lane.learn({})
        assert tested_lane.concurrency_limit == 64

    run(main())


def test_calls_from_before_a_halving_do_not_halve_again() -> None:
    async def main() -> None:
        provider = LimitedProvider(virtual_lane(most=64), limit=8, headers=False, latencies=[1.0])
        await ask_all(provider, {"a": 64})
        assert provider.refused == 56
        assert 25 <= provider.lane.concurrency_limit <= 32  # one halving of what was left after the good answers

    run(main())


def test_retry_after_counts_only_on_errors() -> None:
    async def main() -> None:
        tested_lane = virtual_lane()
        tested_lane.learn({"retry-after": "30"})
        tested_lane.release(await tested_lane.acquire("a"))
        assert asyncio.get_running_loop().time() < 0.01
        tested_lane.learn({"Retry-After": "30"}, 429)
        tested_lane.release(await tested_lane.acquire("a"))
        assert asyncio.get_running_loop().time() == pytest.approx(30, abs=0.01)

    run(main())


def test_a_provider_that_wants_hours_of_rest_fails_the_call_at_once() -> None:
    async def main() -> None:
        tested_lane = virtual_lane()
        tested_lane.learn({"retry-after": "7200"}, 429)
        with pytest.raises(TransientError, match=r"api.example.com: no more calls for 7200 s"):
            await tested_lane.acquire("a")
        assert asyncio.get_running_loop().time() < 0.01

    run(main())


def test_a_quota_of_the_day_that_is_used_up_is_tried_again_one_call_at_a_time() -> None:
    async def main() -> None:
        tested_lane = virtual_lane()
        headers = {"x-ratelimit-limit-requests": "1000", "x-ratelimit-remaining-requests": "0"}
        headers["x-ratelimit-reset-requests"] = "23h12m0.5s"

        class GroqClient(ModelClient):
            name = "groq/m"

            async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
                return CallResult(ModelReply("ok"), attempts=1, status=200, headers=headers)

        model = Limited(GroqClient(), tested_lane, "a")
        await model.complete(ASK)
        await asyncio.gather(model.complete(ASK), model.complete(ASK))
        assert asyncio.get_running_loop().time() == pytest.approx(600, abs=1)

    run(main())


def test_a_call_larger_than_the_whole_quota_goes_alone_instead_of_never() -> None:
    async def main() -> None:
        tested_lane = virtual_lane(tpm=100)
        first = await tested_lane.acquire("a", QuotaNeed(40, 0))
        large = asyncio.create_task(tested_lane.acquire("a", QuotaNeed(5_000, 0)))
        await asyncio.sleep(1)
        assert not large.done()
        tested_lane.release(first, Usage(40, 0))
        tested_lane.release(await large)
        assert asyncio.get_running_loop().time() == pytest.approx(61, abs=0.01)

    run(main())


def test_calls_that_fail_without_a_word_count_as_used() -> None:
    async def main() -> None:
        tested_lane = virtual_lane()
        tested_lane.learn({"x-ratelimit-remaining-requests": "2", "x-ratelimit-reset-requests": "10s"})
        for _ in range(2):
            tested_lane.release(await tested_lane.acquire("a"))
        assert asyncio.get_running_loop().time() < 0.01
        tested_lane.release(await tested_lane.acquire("a"))
        assert asyncio.get_running_loop().time() == pytest.approx(10, abs=0.01)

    run(main())


def test_repeated_attempts_of_a_call_count_each() -> None:
    async def main() -> None:
        tested_lane = virtual_lane(rpm=3)

        class Retrying(ModelClient):
            name = "m"

            async def call(self, request: ModelRequest, context: CallContext) -> CallResult:
                return CallResult(ModelReply("ok"), attempts=3, status=200)

        await Limited(Retrying(), tested_lane, "a").complete(ASK)
        await Limited(Retrying(), tested_lane, "a").complete(ASK)
        assert asyncio.get_running_loop().time() == pytest.approx(60, abs=0.01)

    run(main())


def test_one_lane_for_a_key_at_a_host_and_another_for_every_other() -> None:
    limiter = Limiter(lambda: 0)
    mine = fingerprint("sk-secret")
    assert limiter.lane("a.com", mine) is limiter.lane("a.com", mine)
    assert limiter.lane("a.com", mine) is not limiter.lane("a.com", fingerprint("other"))
    assert limiter.lane("a.com", mine) is not limiter.lane("b.com", mine)
    assert "secret" not in mine


# What headers say


def single_quota(headers: Mapping[str, str]) -> tuple[str, int, int | None, int | None]:
    (reading,) = read_quotas(headers, NOW)
    return reading.unit, reading.remaining, reading.limit, None if reading.reset_at is None else reading.reset_at - NOW


@pytest.mark.parametrize(
    ("reset", "ms"),
    [
        ("12ms", 12),
        ("7.66s", 7_660),
        ("2m59.56s", 179_560),
        ("6m0s", 360_000),
        ("1h2m3s", 3_723_000),
        ("1d", 86_400_000),
        ("250µs", 1),
        ("3.5", 3_500),
        ("3", 4_000),  # servers round whole seconds down
        (str(NOW + 1_234), 1_234),
        (str(NOW // 1000 + 5), 6_000),
        (iso(NOW + 5_000), 6_000),
        ("soon", None),
        ("-1", None),
        ("nan", None),
        ("", None),
        ("1e999", None),
    ],
)
def test_every_form_of_an_instant_is_read(reset: str, ms: int | None) -> None:
    headers = {
        "X-RateLimit-Remaining-Requests": "7",
        "x-ratelimit-limit-requests": "9",
        "x-ratelimit-reset-requests": reset,
    }
    assert single_quota(headers) == ("requests", 7, 9, ms)


def test_anthropic_headers_are_read_against_the_providers_own_clock() -> None:
    headers = {
        "anthropic-ratelimit-input-tokens-limit": "40000",
        "anthropic-ratelimit-input-tokens-remaining": "39000",
        "anthropic-ratelimit-input-tokens-reset": "2026-01-01T00:00:30Z",
        "date": "Thu, 01 Jan 2026 00:00:00 GMT",
    }
    assert single_quota(headers) == ("input-tokens", 39_000, 40_000, 31_000)


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        ({"ratelimit": '"api";r=999;t=295'}, ("requests", 999, None, 296_000)),
        ({"ratelimit": "limit=100, remaining=50, reset=5.5"}, ("requests", 50, 100, 5_500)),
        (
            {"ratelimit-limit": "100, 100;w=60", "ratelimit-remaining": "3", "ratelimit-reset": "9"},
            ("requests", 3, 100, 10_000),
        ),
        ({"X-RateLimit-Limit": "20", "X-RateLimit-Remaining": "0"}, ("requests", 0, 20, None)),
        (
            {"x-ratelimit-remaining-tokens-minute": "55", "x-ratelimit-reset-tokens-minute": "1.5"},
            ("tokens", 55, None, 1_500),
        ),
    ],
)
def test_other_forms_are_read(headers: Mapping[str, str], expected: tuple[str, int, int | None, int | None]) -> None:
    assert single_quota(headers) == expected


def test_several_quotas_in_one_reply_are_kept_apart() -> None:
    headers = {
        "x-ratelimit-remaining-requests": "5",
        "x-ratelimit-remaining-tokens": "500",
        "x-ratelimit-remaining-images": "1",
        "ratelimit-policy": '"api";q=1000;w=300',
    }
    assert {(reading.name, reading.remaining) for reading in read_quotas(headers, NOW)} == {
        ("requests", 5),
        ("tokens", 500),
    }


@given(st.dictionaries(st.sampled_from(["ratelimit", "x-ratelimit-remaining", "x-ratelimit-reset", "date"]), st.text()))
def test_headers_of_any_content_are_survived(headers: dict[str, str]) -> None:
    for reading in read_quotas(headers, NOW):
        assert reading.remaining >= 0


@given(st.lists(st.tuples(st.text(max_size=8), st.sampled_from([200, 429, 500])), max_size=8))
@settings(max_examples=20, deadline=None)
def test_whatever_a_provider_says_calls_go_on_in_the_end(readings: list[tuple[str, int]]) -> None:
    async def main() -> None:
        tested_lane = virtual_lane()
        for text, status in readings:
            tested_lane.learn({"x-ratelimit-remaining-requests": "0", "x-ratelimit-reset-requests": text}, status)
        tested_lane.release(await tested_lane.acquire("a"))
        assert asyncio.get_running_loop().time() * 1000 <= 6 * MINUTE_MS

    run(main())
