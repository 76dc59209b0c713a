"""The simulator: replay a past range tick by tick, and compute what came of it from the records alone."""
