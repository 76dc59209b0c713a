"""What an agent on the coin venue sees, and the programs that can decide in its place."""

from typing import Any

from pitboss.agent.decider import Judge
from pitboss.agent.prompt import Prompt
from pitboss.core.asof import View
from pitboss.core.instant import Instant
from pitboss.core.intent import Decision
from pitboss.core.noun import noun
from pitboss.core.ports import ModelRequest
from pitboss.core.state import LastDecision
from pitboss.models.standin import StandInReply
from pitboss.prompt import render
from pitboss_coin.intents import TOOL
from pitboss_coin.skill import CoinSkill
from pitboss_coin.world import CoinWorld


@noun
class CoinObservation:
    """What the agent may know at `at`: closed bars, the account, its last decision."""

    at: Instant
    skill: CoinSkill
    view: View
    world: CoinWorld
    last: LastDecision | None
    memory: Any = None

    def flips(self, count: int) -> str:
        """The newest flips, newest first."""
        bars = self.view.bars(self.skill.symbol, self.skill.every, count)
        heads = (bars.close > bars.open).tolist()
        return " ".join("heads" if one else "tails" for one in reversed(heads))


class CoinPrompts:
    """Prompts of one skill."""

    anonymiser = None

    def __init__(self, skill: CoinSkill) -> None:
        self._system = f"You bet on coin flips. Call {TOOL} exactly once; hold is valid.\n\nStrategy: {skill.strategy}"

    def shown(self, observation: CoinObservation) -> CoinObservation:
        return observation

    def prompt(self, observation: CoinObservation) -> Prompt:
        world, skill = observation.world, observation.skill
        lines = [
            f"## Time\n{render.time(observation.at)} UTC",
            f"## Flips, newest first\n{observation.flips(8)}",
            f"## Account\ncash {render.cents(world.cash)}, largest stake {render.cents(skill.max_stake)}",
        ]
        if observation.last is not None and observation.last.outcome == "refused":
            lines.append(f"## Last decision\nrefused by {observation.last.code}: {observation.last.detail}")
        return Prompt(self._system, "\n\n".join(lines))


class AlwaysHeads:
    """`policy/heads`: the largest stake on heads at every tick."""

    name = "policy/heads"

    async def decide(self, observation: CoinObservation, judge: Judge) -> Decision:
        del judge
        stake = min(observation.skill.max_stake, observation.world.cash)
        return Decision(({"action": "bet", "side": "heads", "stake": stake, "reason": "always"},) if stake > 0 else ())


def answer(request: ModelRequest) -> StandInReply:
    """The stand-in: heads after two tails, now and then with a stake that is too large."""
    text = request.messages[0].text
    flips = text.partition("## Flips, newest first\n")[2].split("\n", 1)[0].split()
    if flips[:2] != ["tails", "tails"]:
        return "No pattern.", TOOL, {"action": "hold", "reason": "no two tails in a row"}
    stake = 50 if flips[2:3] == ["tails"] else 5
    return "Two tails.", TOOL, {"action": "bet", "side": "heads", "stake": stake, "reason": "two tails in a row"}
