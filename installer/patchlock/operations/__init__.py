"""The transactions that join the rooms: install, repair, roll back, prune, uninstall; check, propose, export.

In: a `Request`, or an app's name. Out: for an installation, the old one or the new one, whenever it is killed. May
import every room but `cli`; prints nothing.
"""
