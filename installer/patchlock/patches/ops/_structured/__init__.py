"""The ops on TOML, JSON and YAML files: `set-key` and `delete-key`."""
