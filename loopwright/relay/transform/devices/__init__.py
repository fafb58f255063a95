"""Where a program runs: `plan_devices.py` decides a device for every value, and puts copies where devices differ.

`places.py` finds what must be together, `constraints.py` reads the program for it, `plan_devices.py` fills in what is
open and writes the result into the program, `require_cpu.py` refuses what needs more than CPUs.
"""
