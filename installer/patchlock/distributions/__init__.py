"""Third-party distributions: what an index has, wheels and sdists, patched wheels, and the rules about them.

In: a name, a version, a sha256. Out: bytes with that hash, facts about them, and violations of rules. May import the
rooms from `model` to `worktree`.
"""
