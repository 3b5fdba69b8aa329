"""Why uv finds no answer, and which edits give it one: found by asking it about parts of the question.

In: `ResolutionInputs` that have no answer. Out: an `Explanation`. Begins in `explanation`.
"""
