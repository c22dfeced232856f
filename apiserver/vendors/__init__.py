"""The training-metrics APIs of three clouds, answered from tasks.

A vendor's job is a task, and its nodes (pods, `worker-0` …) are the workers that reported. Each vendor's module has its
names, units and time grids. What the vendors share is in `jobs` and `routes`; what the SDK reports about
machines is read by `monitoring`.
"""
