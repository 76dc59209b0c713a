"""Fakes and builders for tests of pitboss and of extensions, shipped with the package."""
