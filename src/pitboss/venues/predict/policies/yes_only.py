"""YES at every tick, whatever the price does."""

from pitboss.venues.predict.ladder_policy import define_heuristic

POLICY = define_heuristic("yes_only", "YES at every tick", lambda ticks: "YES")
