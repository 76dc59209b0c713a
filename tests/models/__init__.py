"""Tests of models: policies, files of decisions, scripts, the stand-in, and clients of providers."""
