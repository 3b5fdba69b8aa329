"""A text goes in, a hummed tune comes out."""
