"""Upstream's repositories and the user's working tree: fetch, read, patch, merge, and move from one commit to another.

In: a commit, patches, and a tree that belongs to the user. Out: a moved tree, or a conflict and the way back. May
import the rooms from `model` to `hardware`.
"""
