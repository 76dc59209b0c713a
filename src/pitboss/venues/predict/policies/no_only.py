"""NO at every tick, whatever the price does."""

from pitboss.venues.predict.ladder_policy import define_heuristic

POLICY = define_heuristic("no_only", "NO at every tick", lambda ticks: "NO")
