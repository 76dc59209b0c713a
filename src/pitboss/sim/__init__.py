"""The simulator: replay a past range tick by tick, and compute the results from the records alone."""
