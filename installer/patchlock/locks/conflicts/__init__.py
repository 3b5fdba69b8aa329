"""Why a question to the resolver has no answer, and which edits give it one."""
