"""What trials of moved trees are made of."""
