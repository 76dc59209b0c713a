"""Tests of the signing process."""
