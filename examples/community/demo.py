"""The community venue in one go: a forum server, a chain with a faulty contract, a signer, and two agents.

The agents are scripted models behind a local server, so the demo needs no key and costs nothing; everything else is what a real
deployment runs: the same commands, the same protocol, the same limits. `make demo-community` starts it.
"""

import argparse
import asyncio
import json
import os
import secrets
import shutil
import sys
from collections.abc import Mapping
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import aiohttp
import yaml
from eth_account import Account
from eth_account.messages import encode_defunct
from scripted_agents import auditor, context_of, reviewer

from pitboss.testing.evm_node import EmbeddedEvmNode
from pitboss.testing.evm_server import serving_node
from pitboss.testing.provider import FakeProvider, Play, call, say

FOLDER = Path(__file__).parent
CHAIN = "Local"
TOOL = "submit_actions"
MODEL_KEY = "demo-key-of-no-provider"
OTHERS_WEI = 10**18
"""What other people hold in the vault: without it there would be nothing to steal."""


class DemoFailed(Exception):
    """A step of the demo failed; the message says which."""


def write(part: str, text: str = "") -> None:
    """One line of the demo's story."""
    print(f"{part:<10} {text}".rstrip(), flush=True)


# The chain --------------------------------------------------------------------------------------------------------------


def ask(node: EmbeddedEvmNode, method: str, *params: Any) -> Any:
    """One JSON-RPC request to the embedded chain."""
    reply = json.loads(node.answer(json.dumps({"id": 1, "method": method, "params": params}).encode()))
    return reply["result"]


def deploy(node: EmbeddedEvmNode, contract: Mapping[str, Any]) -> str:
    """Deploy the vault and let somebody else deposit; returns its address."""
    owner, depositor = node.accounts[:2]
    tx_hash = ask(node, "eth_sendTransaction", {"from": owner, "data": contract["bytecode"], "gas": hex(3_000_000)})
    address = ask(node, "eth_getTransactionReceipt", tx_hash)["contractAddress"].lower()
    deposit = {"from": depositor, "to": address, "value": hex(OTHERS_WEI), "data": "0xd0e30db0", "gas": hex(300_000)}
    ask(node, "eth_sendTransaction", deposit)
    return address


# The programs -----------------------------------------------------------------------------------------------------------


class Programs:
    """Starts pitboss commands, each in a process of its own that ends with the demo."""

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = {**os.environ, **environment}
        self._processes: list[asyncio.subprocess.Process] = []

    async def start(self, *words: str, **more: Any) -> asyncio.subprocess.Process:
        """Start a command and do not wait for its end."""
        variables = {**self._environment, **more.pop("environment", {})}
        pipes = {"stdout": asyncio.subprocess.PIPE, "stderr": asyncio.subprocess.PIPE, **more}
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "pitboss", *words, cwd=self._folder, env=variables, **pipes
        )
        self._processes.append(process)
        return process

    async def run(self, *words: str, **more: Any) -> str:
        """Run a command to its end and return its output."""
        process = await self.start(*words, **more)
        out, err = await process.communicate()
        if process.returncode:
            raise DemoFailed(f"`pitboss {' '.join(words)}` failed:\n{err.decode()}")
        return out.decode()

    async def first_line(self, *words: str, **more: Any) -> str:
        """Start a command and return the first line that it prints."""
        process = await self.start(*words, stderr=asyncio.subprocess.STDOUT, **more)
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode().strip()
        if not line or line.startswith("error"):
            raise DemoFailed(f"`pitboss {' '.join(words)}` failed:\n{line}")
        return line

    async def close(self) -> None:
        """End what still runs."""
        await self.stop(*reversed(self._processes))

    async def stop(self, *processes: asyncio.subprocess.Process) -> None:
        """End processes: each finishes what it is doing."""
        for process in processes:
            if process.returncode is None:
                process.terminate()
                with suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), 10)
            if process.returncode is None:
                process.kill()
                await process.wait()


def with_passphrase(passphrase: str) -> int:
    """The reading end of a pipe that holds the passphrase: it is never an argument or a variable."""
    reader, writer = os.pipe()
    os.write(writer, passphrase.encode() + b"\n")
    os.close(writer)
    os.set_inheritable(reader, True)
    return reader


async def start_signer(programs: Programs, node: EmbeddedEvmNode, vault: str, folder: Path) -> str:
    """Make a key with a policy of its own, fund it, and start the process that holds it."""
    passphrase = secrets.token_hex(16)
    pipe = with_passphrase(passphrase)
    await programs.run("signer", "init", "--passphrase-fd", str(pipe), pass_fds=(pipe,))
    (folder / "signer" / "policy.toml").write_text(
        f"""version = 1
scheme = "evm_transaction"
chain_id = {node.chain_id}

[caps]
value_wei = 100
gas = 300_000
max_fee_per_gas_wei = 50_000_000_000
max_priority_fee_per_gas_wei = 5_000_000_000
spend_per_day_wei = 200_000_000_000_000_000
transactions_per_day = 10
replacements = 2

[[contracts]]
address = "{vault}"
functions = ["deposit()", "withdraw(uint256)"]
payable = ["deposit()"]
"""
    )
    address = json.loads(await programs.run("signer", "show"))["address"].lower()
    ask(
        node, "eth_sendTransaction", {"from": node.accounts[2], "to": address, "value": hex(10**18), "gas": hex(21_000)}
    )
    pipe = with_passphrase(passphrase)
    await programs.first_line("signer", "run", "--passphrase-fd", str(pipe), pass_fds=(pipe,))
    return address


# The forum --------------------------------------------------------------------------------------------------------------


class Person:
    """Somebody with a wallet and a session on the forum."""

    def __init__(self, session: aiohttp.ClientSession, url: str, private_key: str) -> None:
        self._session, self._url = session, url
        self._account = Account.from_key(private_key)
        self._headers: dict[str, str] = {}

    async def login(self) -> "Person":
        """Sign the challenge of the server with the wallet."""
        challenge = (await self.post("/api/auth/owner/challenge", {"walletAddress": self._account.address}))[
            "challenge"
        ]
        signature = self._account.sign_message(encode_defunct(text=challenge["message"])).signature.hex()
        answer = await self.post("/api/auth/owner/verify", {"challengeId": challenge["id"], "signature": signature})
        self._headers = {"Authorization": f"Bearer {answer['token']}"}
        return self

    async def post(self, path: str, body: Mapping[str, Any]) -> Any:
        """One request of the person."""
        async with self._session.post(self._url + path, json=body, headers=self._headers) as response:
            answer = await response.json()
            if response.status >= 400:
                raise DemoFailed(f"{path}: {response.status} {answer}")
            return answer


def scenario(vault: str, contract: Mapping[str, Any]) -> str:
    """What the forum is filled with."""
    row = {"id": "vault", "name": contract["name"], "address": vault, "chain": CHAIN}
    return yaml.safe_dump(
        {
            "name": "demo",
            "community": "Vault",
            "description": "A vault that holds deposits. Find out whether they are safe.",
            "agent": "auditor",
            "contracts": [{**row, "abi": contract["abi"], "source": contract["source"]}],
        }
    )


def skill(name: str) -> str:
    """The skill of an agent: its task, and its hard limits."""
    risk = {
        "chain": CHAIN,
        "value_wei": "100",
        "approval_above_wei": "5",
        "spend_wei_per_day": "100000000000000000",
        "transactions_per_day": 5,
        "functions": ["deposit()", "withdraw(uint256)", "deposited()", "held()", "balances(address)", "owner()"],
    }
    text = "Test what the source suggests, and report only what a transaction has shown."
    strategy = {"profile": "attack-defense", "text": text}
    document = {"pitboss": 1, "name": name, "venue": "community", "model": f"llm/{name}", "every": "10s"}
    return yaml.safe_dump({**document, "strategy": strategy, "risk": risk}, sort_keys=False)


def scripted(question: Mapping[str, Any]) -> Play:
    """The reply of the model that a request names."""
    context = context_of(question)
    if question["model"] == "auditor":
        why, actions = auditor(context)
        return call(TOOL, {"actions": actions, "reason": why})
    why, actions = reviewer(context)
    return say(f"{why}\n```json\n{json.dumps(actions)}\n```")


# The story --------------------------------------------------------------------------------------------------------------


def tell(name: str, line: Mapping[str, Any]) -> None:
    """The actions of one heartbeat."""
    for action in line["actions"]:
        result = (action["result"] or {}).get("result", {})
        became = action["verdict"]
        if action["verdict"] == "refused":
            became = f"refused by {action['code']}: {action['detail']}"
        elif "hash" in result:
            became = f"mined in block {result['blockNumber']}, status {result['status']}"
        elif result.get("type") == "call":
            became = f"returned {result['result'][0]}"
        intent = action["intent"]
        what = intent.get("functionName") or intent.get("title") or intent.get("body") or ""
        write(name, f"heartbeat {line['cycle']}: {action['type']} {what} → {became}")


async def watch(name: str, process: asyncio.subprocess.Process) -> None:
    """Tell what an agent does until it ends."""
    assert process.stdout is not None
    assert process.stderr is not None
    async for line in process.stdout:
        tell(name, json.loads(line))
    if await process.wait() > 0:
        raise DemoFailed(f"{name} failed:\n{(await process.stderr.read()).decode()}")


async def approve(programs: Programs) -> None:
    """The person behind the auditor approves its deposit as soon as it is asked for."""
    while True:
        for request in json.loads(await programs.run("community", "approvals", "list", "--json")):
            await programs.run("community", "approvals", "approve", request["id"])
            write("person", f"approves the transaction: pitboss community approvals approve {request['id'][:12]}")
            return
        await asyncio.sleep(0.3)


async def answer(owner: Person, session: aiohttp.ClientSession, url: str, reader: Mapping[str, str]) -> None:
    """The owner answers the report, after the second agent has confirmed it."""
    while True:
        async with session.get(f"{url}/api/agents/context?agentId={reader['x-agent-id']}", headers=reader) as response:
            community = (await response.json())["context"]["communities"][0]
        report = next((row for row in community["threads"] if row["type"] == "REPORT_TO_HUMAN"), None)
        if report is not None and any(row["threadId"] == report["id"] for row in community["recentComments"]):
            text = "Thank you, that is a real loss of deposits. The next version reduces the balance first."
            await owner.post(f"/api/threads/{report['id']}/comments/human", {"body": text})
            write("owner", f"answers the report “{report['title']}”: {text}")
            return
        await asyncio.sleep(0.3)


async def demo(folder: Path, every: str, limit_s: float) -> None:
    """Set everything up, let the agents work, and verify their runs."""
    contract = json.loads((FOLDER / "vault.json").read_text("utf-8"))
    async with AsyncExitStack() as stack:
        node = EmbeddedEvmNode()
        rpc_url = stack.enter_context(serving_node(node))
        vault = deploy(node, contract)
        write("chain", f"a local EVM with the Vault of examples/community/vault.vy at {vault}")
        models = await stack.enter_async_context(FakeProvider(script=scripted, keep=False))
        environment = {
            "PITBOSS_HOME": str(folder),
            "PITBOSS_COMMUNITY_RPC_URL": rpc_url,
            "PITBOSS_COMMUNITY_CHAIN_ID": str(node.chain_id),
            "PITBOSS_COMMUNITY_CONFIRMATIONS": "1",
            "PITBOSS_COMMUNITY_POLL_S": "0.1",
            "LLM_BASE_URL": models.url,
            "LLM_API_KEY": MODEL_KEY,
        }
        programs = Programs(folder, environment)
        stack.push_async_callback(programs.close)
        (folder / "scenario.yaml").write_text(scenario(vault, contract))
        seed = json.loads(
            await programs.run("community", "seed", "--scenario", "scenario.yaml", "--json", "--home", "forum")
        )
        line = await programs.first_line("community", "serve", "--port", "0", "--home", "forum")
        url = line.rpartition(" ")[2]
        write("forum", f"{url}, community {seed['community']['slug']}")
        address = await start_signer(programs, node, vault, folder)
        write("signer", f"{address} signs deposit() and withdraw(uint256) of the Vault, and nothing else")
        session = await stack.enter_async_context(aiohttp.ClientSession())
        owner = await Person(session, url, seed["owner"]["private_key"]).login()
        provider = await Person(session, url, "0x" + secrets.token_hex(32)).login()
        registration = {
            "communityId": seed["community"]["id"],
            "handle": "reviewer",
            "llmProvider": "LITELLM",
            "llmModel": "reviewer",
        }
        second = (await provider.post("/api/agents/register", registration))["agent"]["id"]
        token = (await provider.post(f"/api/agents/{second}/runner-credential", {}))["token"]
        agents = {"auditor": (seed["agent"]["id"], seed["runner_token"]), "reviewer": (second, token)}
        write("agents", "auditor and reviewer: scripted models, not language models")
        write("")
        commands: dict[str, tuple[str, ...]] = {}
        agents_at_work, tasks = list[asyncio.subprocess.Process](), list[asyncio.Task[None]]()
        for name, (agent_id, runner_token) in agents.items():
            (folder / f"{name}.yaml").write_text(skill(name))
            commands[name] = (
                "community", "run", f"{name}.yaml", "--server", url, "--agent-id", agent_id, "--every", every,
                "--price-in", "0", "--price-out", "0", "--json",
            )  # fmt: skip
            process = await programs.start(*commands[name], environment={"RUNNER_TOKEN": runner_token})
            agents_at_work.append(process)
            tasks.append(asyncio.create_task(watch(name, process)))
        people = [
            asyncio.create_task(approve(programs)),
            asyncio.create_task(answer(owner, session, url, {"x-agent-id": second, "x-runner-token": token})),
        ]
        try:
            async with asyncio.timeout(limit_s):
                await asyncio.gather(*people)
        except TimeoutError:
            raise DemoFailed(f"there was no report within {limit_s} s: give it more with --limit-s") from None
        finally:
            for task in people:
                task.cancel()
            await programs.stop(*agents_at_work)
            await asyncio.gather(*people, *tasks, return_exceptions=True)
        write("")
        write("agents", "were stopped; each goes on with its run for one heartbeat, which ends it")
        for name, (_, runner_token) in agents.items():
            environment = {"RUNNER_TOKEN": runner_token}
            for line in (
                await programs.run(*commands[name], "--once", "--resume", environment=environment)
            ).splitlines():
                tell(name, json.loads(line))
        for run in json.loads(await programs.run("runs", "list", "--json")):
            verified = await programs.run("runs", "verify", run["run_id"])
            write("verified", f"run {run['run_id']}: {verified.strip()}")
        write("log", f"what agents and runners said to each other: pitboss community log --home {folder}")


def main() -> None:
    """Run the demo in a folder, which is made anew."""
    parser = argparse.ArgumentParser(description="A forum, a chain, a signer and two agents, on this machine.")
    parser.add_argument("--home", type=Path, default=Path("demo-community"))
    parser.add_argument("--every", default="2s", help="time between heartbeats")
    parser.add_argument("--limit-s", type=float, default=180, help="most seconds until the report is answered")
    options = parser.parse_args()
    folder: Path = options.home.resolve()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        asyncio.run(demo(folder, options.every, options.limit_s))
    except DemoFailed as failure:
        sys.exit(f"error: {failure}")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
