"""Shared by the commands of pitboss and of venues: output, options, and the workspace they use."""
