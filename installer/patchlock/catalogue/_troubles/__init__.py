"""Known troubles of machines: their files, and the language of their conditions."""
