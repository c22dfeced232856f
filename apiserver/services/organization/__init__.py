"""organization.*: the caller's company as a whole. Importing the package registers its handlers."""

from apiserver.services.organization import company, counts, downloads, usages
