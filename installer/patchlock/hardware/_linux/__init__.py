"""A Linux machine: desktop, server, Jetson, WSL or container."""
