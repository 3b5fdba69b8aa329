"""Small programs that run inside an app's environment, each in its own process; they never import patchlock."""
