"""The proof: what is installed loads, computes on the device, and is as it was installed.

In: an environment, a device, and checks. Out: results and a report. Each program that runs may hang, crash or eat
memory, and is ended by its limits. May import the rooms from `model` to `environments`.
"""
