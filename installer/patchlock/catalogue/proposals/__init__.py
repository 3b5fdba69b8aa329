"""Draft the file of an app that the catalogue does not have, from the files of its clone; no I/O."""
