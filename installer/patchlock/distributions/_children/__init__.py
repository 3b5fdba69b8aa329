"""The program that runs the cases of a patched distribution; imports nothing of patchlock."""
