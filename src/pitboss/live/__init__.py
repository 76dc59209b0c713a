"""The live driver: ticks by the clock instead of by a recorded past, over the same `tick()`. It knows no venue."""
