"""Tests of who answers: policies, files of decisions, scripts, the stand-in. `scene` builds what they look at."""
