"""Values that several rooms share, frozen and already parsed, and every error that patchlock can report.

In: nothing but Python values. Out: types, and pure functions of them. May import no other room; reads no file and asks
nobody.
"""
