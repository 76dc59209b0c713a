"""YES at one tick, NO at the next."""

from pitboss.venues.predict.ladder_policy import define_heuristic

POLICY = define_heuristic("alternate", "YES and NO in turn, a tick each", lambda ticks: "NO" if ticks % 2 else "YES")
