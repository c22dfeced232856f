"""workers.*: the agents that run tasks. Importing the package registers its handlers."""

from apiserver.services.workers import properties, read, reports, stats
