"""YES at one tick, NO at the next."""

from pitboss.models.rungs import define_heuristic

POLICY = define_heuristic("alternate", "YES and NO in turn, a tick each", lambda ticks: "NO" if ticks % 2 else "YES")
