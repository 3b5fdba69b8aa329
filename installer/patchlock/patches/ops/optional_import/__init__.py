"""The op `optional-import`: a file can be imported without a package."""
