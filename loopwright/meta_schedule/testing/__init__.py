"""What tests of searches use: parts that measure nothing, workloads by name, comparison of design spaces."""
