"""`FakeProvider`: a local server for the chat completions API, with scripted replies and faults.

For tests, benchmarks and experiments; it contains no model. Its behaviour for a request is a `Play`: a coroutine that
gets the web request and the parsed body. Plays are taken from a script, one per request (the last one is repeated),
or computed by a function of the body.

    python -m pitboss.testing.provider --latency-ms 100      prints its address; ends with its standard input
"""

import argparse
import asyncio
import socket
import struct
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Self

import orjson
from aiohttp import web

Play = Callable[[web.BaseRequest, Mapping[str, Any]], Awaitable[web.StreamResponse]]
Script = Sequence[Play] | Callable[[Mapping[str, Any]], Play]

USAGE = {"prompt_tokens": 1_000, "completion_tokens": 50, "total_tokens": 1_050}
HOLD = {"action": "no_op", "reason": "nothing to do"}


def message(
    question: Mapping[str, Any], content: str | None = None, calls: Sequence[tuple[str, Any]] = (), **top: Any
) -> dict[str, Any]:
    """The body of a valid reply, in the protocol of the question. Arguments of calls are values, or text sent unchanged."""
    if "input" in question:
        return _response(question, content, calls) | top
    if "inferenceConfig" in question:
        return _converse(question, content, calls) | top
    reply_message: dict[str, Any] = {"role": "assistant", "content": content}
    if calls:
        reply_message["tool_calls"] = [
            {
                "id": f"call_{index}",
                "type": "function",
                "function": {"name": name, "arguments": args if isinstance(args, str) else orjson.dumps(args).decode()},
            }
            for index, (name, args) in enumerate(calls)
        ]
    finish = "tool_calls" if calls else "stop"
    choice = {"index": 0, "message": reply_message, "finish_reason": finish}
    body = {"id": "chatcmpl-fake", "object": "chat.completion", "created": 0, "model": question.get("model", "")}
    return body | {"choices": [choice], "usage": USAGE} | top


def _response(question: Mapping[str, Any], content: str | None, calls: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The body of a valid reply of the Responses protocol, with reasoning that must be sent back."""
    count = len(question["input"])
    output: list[dict[str, Any]] = [
        {"type": "reasoning", "id": f"rs_{count}", "summary": [], "encrypted_content": f"sealed-{count}"}
    ]
    if content is not None:
        blocks = [{"type": "output_text", "text": content, "annotations": []}]
        output.append({"type": "message", "id": f"msg_{count}", "role": "assistant", "content": blocks})
    output += [
        {
            "type": "function_call",
            "id": f"fc_{count}_{index}",
            "call_id": f"call_{count}_{index}",
            "name": name,
            "arguments": args if isinstance(args, str) else orjson.dumps(args).decode(),
        }
        for index, (name, args) in enumerate(calls)
    ]
    usage = {
        "input_tokens": 1_000, "input_tokens_details": {"cached_tokens": 400},
        "output_tokens": 50, "output_tokens_details": {"reasoning_tokens": 20}, "total_tokens": 1_050,
    }  # fmt: skip
    body = {"id": "resp-fake", "object": "response", "status": "completed", "model": question.get("model", "")}
    return body | {"output": output, "usage": usage, "error": None, "incomplete_details": None}


def _converse(question: Mapping[str, Any], content: str | None, calls: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    """The body of a valid reply of Bedrock's Converse protocol, with reasoning that must be sent back."""
    count = len(question["messages"])
    reasoning = {"reasoningText": {"text": "Let me see.", "signature": f"sealed-{count}"}}
    blocks: list[dict[str, Any]] = [{"reasoningContent": reasoning}]
    if content is not None:
        blocks.append({"text": content})
    blocks += [
        {"toolUse": {"toolUseId": f"tooluse_{count}_{index}", "name": name, "input": args}}
        for index, (name, args) in enumerate(calls)
    ]
    usage = {"inputTokens": 600, "outputTokens": 50, "cacheReadInputTokens": 400, "cacheWriteInputTokens": 0}
    return {
        "output": {"message": {"role": "assistant", "content": blocks}},
        "stopReason": "tool_use" if calls else "end_turn",
        "usage": usage | {"totalTokens": 1_050},
        "metrics": {"latencyMs": 1},
    }


def body(plain: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Play:
    """Reply with any JSON and any status."""
    content = orjson.dumps(plain)

    async def play(request: web.BaseRequest, question: Mapping[str, Any]) -> web.StreamResponse:
        return web.Response(body=content, status=status, headers=headers, content_type="application/json")

    return play


def say(text: str, **top: Any) -> Play:
    """Reply with text. `top` sets other fields of the body, such as `model`."""
    return _reply(lambda question: message(question, text, **top))


def call(name: str, arguments: Any, **top: Any) -> Play:
    """Reply with one tool call."""
    return _reply(lambda question: message(question, None, [(name, arguments)], **top))


def calls(*wishes: tuple[str, Any]) -> Play:
    """Reply with several tool calls."""
    return _reply(lambda question: message(question, None, wishes))


def error(status: int, text: str = "made to fail", headers: Mapping[str, str] | None = None, **more: Any) -> Play:
    """Reply with an error in the usual envelope."""
    return body({"error": {"message": text, "type": "fake", **more}}, status, headers)


def busy(retry_after: str | None = "0") -> Play:
    """Reply with 429, with or without a `Retry-After` header."""
    return error(429, "slow down", {} if retry_after is None else {"Retry-After": retry_after})


def streamed(content: str) -> Play:
    """Reply with status 200 and this text as the event stream."""

    async def play(request: web.BaseRequest, question: Mapping[str, Any]) -> web.StreamResponse:
        return web.Response(text=content, content_type="text/event-stream")

    return play


def spoken(*pieces: str, before: Callable[[int], Awaitable[None]] | None = None, wishes: Sequence[Any] = ()) -> Play:
    """Reply with text that is streamed piece by piece, then with tool calls; `before` is awaited before each piece."""

    async def play(request: web.BaseRequest, question: Mapping[str, Any]) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)

        async def send(delta: Mapping[str, Any], finish: str | None = None, **top: Any) -> None:
            choices = [{"index": 0, "delta": delta, "finish_reason": finish}]
            chunk = {"id": "chatcmpl-fake", "model": question.get("model", ""), "choices": choices} | top
            await response.write(b"data: " + orjson.dumps(chunk) + b"\n\n")

        for index, piece in enumerate(pieces):
            if before is not None:
                await before(index)
            await send({"content": piece})
        calls_made = message(question, None, wishes)["choices"][0]["message"].get("tool_calls", ())
        for index, made in enumerate(calls_made):
            await send({"tool_calls": [{"index": index, **made}]})
        await send({}, "tool_calls" if wishes else "stop")
        await send({}, choices=[], usage=USAGE)
        await response.write(b"data: [DONE]\n\n")
        return response

    return play


def garbage(content: str = "<html>not for you</html>") -> Play:
    """Reply with status 200 and a body that is not JSON."""

    async def play(request: web.BaseRequest, question: Mapping[str, Any]) -> web.StreamResponse:
        return web.Response(text=content, content_type="application/json")

    return play


async def hang(request: web.BaseRequest, question: Mapping[str, Any]) -> web.StreamResponse:
    """Never reply; ends when the client disconnects or the server closes."""
    return await asyncio.get_running_loop().create_future()


async def reset(request: web.BaseRequest, question: Mapping[str, Any]) -> web.StreamResponse:
    """Reset the connection, as a crashed server would."""
    _abort(request)
    return web.Response()


async def half(request: web.BaseRequest, question: Mapping[str, Any]) -> web.StreamResponse:
    """Announce a whole body, send the first half of it and reset the connection."""
    content = orjson.dumps(message(question, "cut in half"))
    response = web.StreamResponse(headers={"Content-Length": str(len(content)), "Content-Type": "application/json"})
    await response.prepare(request)
    await response.write(content[: len(content) // 2])
    _abort(request, lingering=True)
    return response


async def drip(request: web.BaseRequest, question: Mapping[str, Any]) -> web.StreamResponse:
    """Send spaces forever, one at a time."""
    return await _endless(request, b" ", 0.005)


async def flood(request: web.BaseRequest, question: Mapping[str, Any]) -> web.StreamResponse:
    """Send an excessively long body."""
    return await _endless(request, b" " * 1_048_576, 0)


async def _endless(request: web.BaseRequest, block: bytes, pause_s: float) -> web.StreamResponse:
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    await response.prepare(request)
    with suppress(ConnectionError):
        while True:
            await response.write(block)
            await asyncio.sleep(pause_s)
    return response


def _reply(make: Callable[[Mapping[str, Any]], dict[str, Any]]) -> Play:
    async def play(request: web.BaseRequest, question: Mapping[str, Any]) -> web.StreamResponse:
        return web.Response(body=orjson.dumps(make(question)), content_type="application/json")

    return play


def _abort(request: web.BaseRequest, lingering: bool = False) -> None:
    transport = request.transport
    if transport is None:
        return
    raw = transport.get_extra_info("socket")
    if raw is not None and not lingering:
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # RST instead of FIN
    transport.abort()


def decide(question: Mapping[str, Any]) -> Play:
    """Reply with a hold: by the last tool offered, or as JSON text if none is offered."""
    tools = question.get("tools") or (question.get("toolConfig") or {}).get("tools") or ()
    tools = [tool.get("function") or tool.get("toolSpec") or tool for tool in tools]
    names = [tool["name"] for tool in tools if "name" in tool]
    return call(names[-1], HOLD) if names else say(orjson.dumps(HOLD).decode())


@dataclass
class FakeProvider:
    """The server, as a context manager. `calls` counts requests; they are kept only if `keep` is set."""

    script: Script = decide
    latency_s: float = 0.0
    keep: bool = True
    path: str = "/chat/completions"
    """The end of the only path that is served."""
    other: Mapping[str, Callable[[], Any]] = field(default_factory=dict[str, Callable[[], Any]])
    """JSON documents that are served at other paths; they do not count as calls."""
    port: int = 0
    """The port; 0 for any that is free."""
    calls: int = 0
    questions: list[Mapping[str, Any]] = field(default_factory=list[Mapping[str, Any]])
    headers: list[Mapping[str, str]] = field(default_factory=list[Mapping[str, str]])
    peers: set[object] = field(default_factory=set[object])
    """One entry per connection that was opened."""
    url: str = ""
    _runner: web.ServerRunner | None = None

    async def __aenter__(self) -> Self:
        # A client that disconnects cancels its handler; otherwise every `hang` would outlive its test.
        server = web.Server(self._handle, access_log=None, handler_cancellation=True)
        runner = self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", self.port, backlog=2_048).start()
        port = runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}/v1"
        return self

    async def __aexit__(self, *reason: object) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.path in self.other:
            return web.json_response(self.other[request.path]())
        question = orjson.loads(await request.read() or b"{}")
        if self.keep:
            self.questions.append(question)
            self.headers.append(dict(request.headers))
            self.peers.add(request.transport and request.transport.get_extra_info("peername"))
        index = self.calls
        self.calls += 1
        if not request.path.endswith(self.path):
            message = "no such path"
            if self.path == "/responses":
                message = "This model is only supported in v1/responses and not in v1/chat/completions."
            return web.json_response({"error": {"message": message}}, status=404)
        if self.latency_s:
            await asyncio.sleep(self.latency_s)
        script = self.script
        play = script(question) if callable(script) else script[min(index, len(script) - 1)]
        return await play(request, question)


class CannedAnswer(asyncio.Protocol):
    """A minimal server that sends the same reply to every request after a delay, for measuring clients."""

    def __init__(self, tool: str, latency_s: float) -> None:
        content = orjson.dumps(message({"model": "canned"}, None, [(tool, HOLD)]))
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(content)}\r\n\r\n"
        self._answer = head.encode() + content
        self._latency_s = latency_s
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.WriteTransport | None = None
        self._missing = 0
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Store the transport for replies."""
        assert isinstance(transport, asyncio.WriteTransport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Count bytes until a request is complete; its content is ignored."""
        if not self._missing:
            self._head += data
            head, end, body_start = self._head.partition(b"\r\n\r\n")
            if not end:
                return
            lines = (line.partition(b":") for line in head.lower().split(b"\r\n"))
            length = next((int(value) for name, _, value in lines if name == b"content-length"), 0)
            self._head = b""
            self._missing = length - len(body_start)
        else:
            self._missing -= len(data)
        if self._missing <= 0:
            self._missing = 0
            self._loop.call_later(self._latency_s, self._write)

    def _write(self) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(self._answer)


async def _serve(latency_s: float, tool: str) -> None:
    if tool:
        loop = asyncio.get_running_loop()
        canned = await loop.create_server(lambda: CannedAnswer(tool, latency_s), "127.0.0.1", 0, backlog=2_048)
        print(f"http://127.0.0.1:{canned.sockets[0].getsockname()[1]}/v1", flush=True)
        await asyncio.to_thread(sys.stdin.read)
        canned.close()
        return
    async with FakeProvider(latency_s=latency_s, keep=False) as fake:
        print(fake.url, flush=True)
        await asyncio.to_thread(sys.stdin.read)


def main() -> None:
    """Serve until standard input ends, so that the server does not outlive the process that started it."""
    options = argparse.ArgumentParser(description="A fake provider of chat completions that always holds.")
    options.add_argument("--latency-ms", type=float, default=0.0)
    options.add_argument("--canned", default="", help="call this tool whatever is asked, with the least work")
    arguments = options.parse_args()
    asyncio.run(_serve(arguments.latency_ms / 1000, arguments.canned))


if __name__ == "__main__":
    main()
