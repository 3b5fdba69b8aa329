"""Programs that are copied into each environment, where its Python runs them; they import nothing of patchlock."""
