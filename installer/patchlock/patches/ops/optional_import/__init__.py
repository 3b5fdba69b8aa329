"""The op `optional-import`: a file can be imported although a package is absent."""
