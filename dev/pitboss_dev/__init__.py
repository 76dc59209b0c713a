"""Tools for developing pitboss, not part of what users install: benchmarks and the generator of reference pages."""
