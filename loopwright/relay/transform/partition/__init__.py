"""Passes that hand parts of a graph to another compiler: annotate, merge, make functions of the regions."""
