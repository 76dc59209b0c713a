"""The live driver: calls the same `tick()` as the simulator, at the times of a clock. Independent of any venue."""
