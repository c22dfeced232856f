"""The fields of W&B's records that are read, named as W&B names them. A record has one of the fields of `Record`."""

from __future__ import annotations

from apiserver.transfer.importing.runs.protobuf import Message, Zigzag, field, repeated


class Timestamp(Message):
    seconds = field(1, int)
    nanos = field(2, int)


# --- names and values, as JSON ------------------------------------------------------------------------


class Item(Message):
    """A value, and its name or the names that lead to it. The value is JSON, or one of the others."""

    key = repeated(1, bytes)
    nested_key = repeated(2, bytes)
    none = field(3, int)
    boolean = field(4, bool)
    integer = field(5, Zigzag)
    number = field(6, float)
    text = field(7, bytes)
    json = field(8, bytes)
    value_json = field(16, bytes)


class Items(Message):
    """A row of the history, or what a summary or a config adds."""

    item = repeated(1, Item)


class Step(Message):
    num = field(1, int)


class History(Message):
    """What a row of the history has beside its items, of older versions."""

    step = field(2, Step)


# --- the run ------------------------------------------------------------------------------------------


class Run(Message):
    run_id = field(1, bytes)
    entity = field(2, bytes)
    project = field(3, bytes)
    config = field(4, bytes)
    run_group = field(6, bytes)
    job_type = field(7, bytes)
    display_name = field(8, bytes)
    notes = field(9, bytes)
    tags = repeated(10, bytes)
    sweep_id = field(12, bytes)
    starting_step = field(14, int)
    start_time = field(17, Timestamp)
    branch_point = field(23, bytes)


class Exit(Message):
    exit_code = field(1, int)


class MetricOptions(Message):
    step_sync = field(1, bool)


class MetricControl(Message):
    overwrite = field(1, bool)


class Metric(Message):
    """A call of `define_metric`."""

    name = field(1, bytes)
    glob_name = field(2, bytes)
    step_metric = field(4, bytes)
    options = field(6, MetricOptions)
    control = field(9, MetricControl)
    expanded_from_glob = field(10, bool)


# --- what it reports ------------------------------------------------------------------------------------


class Output(Message):
    """A piece of the console."""

    output_type = field(1, int)
    timestamp = field(2, Timestamp)
    line = field(3, bytes)


class Statistic(Message):
    key = field(1, bytes)
    value_json = field(16, bytes)


class Statistics(Message):
    timestamp = field(2, Timestamp)
    item = repeated(3, Statistic)


class Alert(Message):
    title = field(1, bytes)
    text = field(2, bytes)
    level = field(3, bytes)


class Logged(Message):
    text = field(1, bytes)


class Artifact(Message):
    type = field(4, bytes)
    name = field(5, bytes)


class UseArtifact(Message):
    type = field(2, bytes)
    name = field(3, bytes)


class Record(Message):
    history = field(2, bytes)
    summary = field(3, bytes)
    output = field(4, Output)
    config = field(5, bytes)
    stats = field(7, Statistics)
    artifact = field(8, Artifact)
    tbrecord = field(9, bytes)
    alert = field(10, Alert)
    metric = field(12, Metric)
    output_raw = field(13, Output)
    run = field(17, Run)
    exit = field(18, Exit)
    use_artifact = field(25, UseArtifact)
    output_logger = field(27, Logged)
