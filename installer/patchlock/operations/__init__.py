"""The transactions that join the rooms: install, repair, roll back, uninstall, check, propose and export.

In: a request. Out: an installation that is either the old one or the new one, whenever it is killed. Imports every
room but `cli`.
"""
