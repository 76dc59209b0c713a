"""What an agent on the coin venue sees, and the programs that can decide in its place."""

from pitboss.agent.decider import Judge
from pitboss.agent.last_decision import last_decision_section
from pitboss.agent.prompt import Prompts, Section
from pitboss.core.intent import Decision
from pitboss.core.ports import ModelRequest
from pitboss.models.standin import StandIn, StandInReply
from pitboss.prompt import render
from pitboss.tick.bar_ports import BarObservation
from pitboss_coin.intents import DECISION
from pitboss_coin.skill import CoinSkill

SHOWN_FLIPS = 8
SYSTEM = f"You bet on coin flips. Call {DECISION.tool} exactly once; hold is valid.\n\nStrategy: "


def past_flips(observation: BarObservation, count: int) -> str:
    """The newest flips, newest first."""
    bars = observation.view.bars(observation.skill.symbol, observation.skill.every, count)
    return " ".join("heads" if heads else "tails" for heads in reversed((bars.close > bars.open).tolist()))


SECTIONS: tuple[Section, ...] = (
    lambda observation: f"## Time\n{render.time(observation.at)} UTC",
    lambda observation: f"## Flips, newest first\n{past_flips(observation, SHOWN_FLIPS)}",
    lambda observation: (
        f"## Account\ncash {render.cents(observation.world.cash)}, "
        f"largest stake {render.cents(observation.skill.max_stake)}"
    ),
    lambda observation: last_decision_section(observation.last, "bet", "no bet"),
)


def prompts(skill: CoinSkill) -> Prompts:
    """The prompts of a skill."""
    return Prompts(SYSTEM + skill.strategy, SECTIONS)


class AlwaysHeads:
    """`policy/heads`: the largest stake on heads at every tick."""

    name = "policy/heads"

    async def decide(self, observation: BarObservation, judge: Judge) -> Decision:
        stake = min(observation.skill.max_stake, observation.world.cash)
        return Decision(({"action": "bet", "side": "heads", "stake": stake, "reason": "always"},))


POLICIES = {"heads": AlwaysHeads()}


def stand_in() -> StandIn:
    """`standin/analyst`: a program in the place of a model, which reads the prompt."""
    return StandIn(answer)


def answer(request: ModelRequest) -> StandInReply:
    """Bet on heads after two tails, and a stake that is too large after three."""
    flips = request.messages[0].text.partition("newest first\n")[2].split("\n", 1)[0].split()
    if flips[:2] != ["tails", "tails"]:
        return "No pattern.", DECISION.tool, {"action": "hold", "reason": "no two tails in a row"}
    stake = 50 if flips[2:3] == ["tails"] else 5
    bet = {"action": "bet", "side": "heads", "stake": stake, "reason": "two tails in a row"}
    return "Two tails.", DECISION.tool, bet
