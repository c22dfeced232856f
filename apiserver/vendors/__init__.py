"""Training-metrics APIs of three clouds, answered from tasks: each module maps names, units and grids of time alone.

Jobs are tasks, nodes (pods, `worker-0` …) the workers that reported; what they have in common is in `jobs`, `callers`
and `routes`, and what is known of machines in `aggregation.monitoring`.
"""
