"""Jobs for many requests that differ little: what is the same under all of them is worked out once.

To make a job its data is loaded, checked and hashed, which takes longer than many a run. Requests that differ only in what no
data depends on (the risk limits of the skill, seeds, fees, limits on cost) share that. Everything else goes the long way.
"""

from dataclasses import replace
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.runs.run import job_of
from pitboss.runs.venues import venue_of
from pitboss.sim.request import BacktestRequest
from pitboss.skill.digest import normal, skill_digest
from pitboss.skill.load import read_skill
from pitboss.store.queue import Job

OF_SKILL = ("risk",)
OF_REQUEST = ("skill", "seed", "repeat", "max_cost_usd", "taker_bps", "maker_bps")
"""What a request may differ in and still rest on the same data, checks and prices."""


class Preparation:
    """Makes jobs, and remembers those that others can be made from."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._known: dict[str, Job] = {}

    def job(self, request: BacktestRequest, **more: Any) -> Job:
        """What `job_of` gives, sooner. `more` are fields of `Job`."""
        if request.blind:  # the disguise depends on the seed
            return job_of(self._workspace, request, **more)
        key = _ground(request)
        if key not in self._known:
            self._known[key] = job_of(self._workspace, request, **more)
            return self._known[key]
        like = self._known[key]
        skill = read_skill(request.skill, venue_of(request.skill).skill_type())
        digest = skill_digest(skill)
        saved = self._workspace.skills.save(skill.name, digest, codec.dumps(normal(skill)))
        params = {
            **like.params,
            **codec.plain(replace(request, skill={}, data_venue=like.params["data_venue"])),
            "skill": codec.number_fragments(dict(request.skill)),
            "skill_digest": digest,
        }
        return replace(like, skill_id=saved.id, skill_version=saved.version, params=params, **more)


def _ground(request: BacktestRequest) -> str:
    """What two requests have in common that rest on the same."""
    asked = codec.plain(replace(request, skill={}))
    plain = {name: value for name, value in asked.items() if name not in OF_REQUEST}
    skill = {name: value for name, value in request.skill.items() if name not in OF_SKILL}
    return codec.digest({"request": plain, "skill": codec.number_fragments(skill)})
