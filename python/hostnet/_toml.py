"""The standard library's TOML reader, or the package it came from on Python 3.10."""

import sys

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["tomllib"]
