"""Other shapes of a lock: PEP 751, CycloneDX, a Dockerfile. In: values. Out: text. Nothing reads them back."""
