"""events.*: scalars, vectors, plots, debug images and logs. Importing the package registers its handlers."""

from apiserver.services.events import (
    changes,
    clear,
    download,
    groups,
    logs,
    multi_plots,
    navigate,
    raw,
    samples,
    scalars,
    series,
    statistics,
    task_events,
    vectors,
    write,
)
