"""Other shapes of a lock, for those who want them: PEP 751, CycloneDX, a Dockerfile; values in, text out."""
