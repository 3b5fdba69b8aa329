"""Observe a Windows machine. `host` asks by the other modules, and `view` joins their answers."""
