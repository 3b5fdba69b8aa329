"""What a patched xtts-webui must do, executed in a child process with small stand-ins for its heavy packages."""
