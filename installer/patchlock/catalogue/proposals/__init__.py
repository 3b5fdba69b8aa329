"""From a clone of an app that the catalogue does not have, propose its file; values in, values out, reads no file."""
