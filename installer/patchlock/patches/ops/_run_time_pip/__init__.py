"""The op `run-time-pip`: calls that install packages while the app runs become a value that their callers accept."""
