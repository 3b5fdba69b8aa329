"""Ops on TOML, JSON and YAML files."""
