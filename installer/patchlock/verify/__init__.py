"""The proof: what is installed loads, computes on the device, and is as it was installed.

In: an environment, a device, and checks. Out: a report. Each program that is run may hang, crash or eat memory, and
is ended by its limits. Imports the rooms from `model` to `environments`.
"""
