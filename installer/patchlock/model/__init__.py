"""Values that several rooms share, frozen and already parsed, and the errors that patchlock can meet.

In: nothing but Python values. Out: types, and pure functions of them. Imports no other room; reads no file and asks
nobody.
"""
