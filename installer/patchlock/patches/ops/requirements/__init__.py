"""The ops on requirements, in every format that declares them; one module for each format."""
