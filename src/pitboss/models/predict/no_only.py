"""NO at every tick, whatever the price does."""

from pitboss.models.rungs import define_heuristic

POLICY = define_heuristic("no_only", "NO at every tick", lambda ticks: "NO")
