"""Programs that ask a driver's library, each in a process of its own; they import nothing of patchlock."""
