"""Programs that run in a process of their own; they import nothing of patchlock."""
