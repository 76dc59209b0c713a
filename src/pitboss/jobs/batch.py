"""Building jobs for many similar requests: the parts that they share are computed once.

Building a job loads, checks and hashes its data, which takes longer than many runs. Requests that differ only in fields on
which no data depends (the risk limits of the skill, seeds, fees, cost limits) share the result.
"""

from dataclasses import replace
from typing import Any

from pitboss.bootstrap.workspace import Workspace
from pitboss.core import codec
from pitboss.runs.run import job_of
from pitboss.runs.venues import venue_of
from pitboss.sim.request import BacktestRequest
from pitboss.skill.digest import skill_digest
from pitboss.skill.load import read_skill
from pitboss.store.queue import Job

OF_SKILL = ("risk",)
OF_REQUEST = ("skill", "seed", "repeat", "max_cost_usd", "taker_bps", "maker_bps")
"""Fields in which requests may differ and still share data, checks and prices."""


class JobBuilder:
    """Builds jobs, and caches those from which others can be derived."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._jobs: dict[str, Job] = {}

    def job(self, request: BacktestRequest, **fields: Any) -> Job:
        """The job of a request, as `job_of` builds it. `fields` are further fields of `Job`."""
        if request.blind:  # the anonymised mapping depends on the seed
            return job_of(self._workspace, request, **fields)
        key = _shared_key(request)
        if key not in self._jobs:
            self._jobs[key] = job_of(self._workspace, request, **fields)
            return self._jobs[key]
        template = self._jobs[key]
        skill = read_skill(request.skill, venue_of(request.skill).skill_type())
        digest = skill_digest(skill)
        saved = self._workspace.skills.save(skill.name, digest, codec.dumps(skill.normal()))
        params = {
            **template.params,
            **codec.plain(replace(request, skill={}, data_venue=template.params["data_venue"])),
            "skill": codec.number_fragments(dict(request.skill)),
            "skill_digest": digest,
        }
        return replace(template, skill_id=saved.id, skill_version=saved.version, params=params, **fields)


def _shared_key(request: BacktestRequest) -> str:
    """A digest that is equal for requests that share data, checks and prices."""
    fields = codec.plain(replace(request, skill={}))
    plain = {name: value for name, value in fields.items() if name not in OF_REQUEST}
    skill = {name: value for name, value in request.skill.items() if name not in OF_SKILL}
    return codec.digest({"request": plain, "skill": codec.number_fragments(skill)})
