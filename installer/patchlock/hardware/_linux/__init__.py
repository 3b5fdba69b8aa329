"""Observe a Linux machine: desktop, server, Jetson, WSL or container. `host` joins what the other modules read."""
