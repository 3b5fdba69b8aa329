"""Small programs, each in its own process, for an app's environment and for codemods; they never import patchlock."""
