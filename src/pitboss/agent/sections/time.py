"""`## Time`: the instant of the tick."""

from pitboss.agent.observation import Observation
from pitboss.agent.sections import Memo
from pitboss.prompt.render import time

PLACE = 10


def render(observation: Observation, memo: Memo) -> str:
    """Always there."""
    return f"## Time\n{time(observation.at)} UTC"
