"""The program that runs a codemod in a process of its own; imports nothing of patchlock."""
