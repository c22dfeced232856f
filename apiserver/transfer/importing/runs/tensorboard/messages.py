"""The fields of TensorBoard's events that are read."""

from __future__ import annotations

from apiserver.transfer.importing.runs.protobuf import Float32, Message, field, repeated

# --- hyperparameters, which are the content of a plugin's data -----------------------------------------


class MetricName(Message):
    tag = field(2, bytes)


class MetricInfo(Message):
    name = field(1, MetricName)


class Experiment(Message):
    metric_infos = repeated(5, MetricInfo)


class Parameter(Message):
    """The value of a hyperparameter, which has one of these."""

    number_value = field(2, float)
    string_value = field(3, bytes)
    bool_value = field(4, bool)


class ParameterEntry(Message):
    key = field(1, bytes)
    value = field(2, Parameter)


class SessionStart(Message):
    hparams = repeated(1, ParameterEntry)
    start_time_secs = field(5, float)


class SessionEnd(Message):
    status = field(1, int)


class Hyperparameters(Message):
    experiment = field(2, Experiment)
    session_start_info = field(3, SessionStart)
    session_end_info = field(4, SessionEnd)


# --- values ------------------------------------------------------------------------------------------


class PluginData(Message):
    plugin_name = field(1, bytes)
    content = field(2, bytes)


class Metadata(Message):
    plugin_data = field(1, PluginData)


class Image(Message):
    encoded_image_string = field(4, bytes)


class Histogram(Message):
    min = field(1, float)
    max = field(2, float)
    bucket_limit = repeated(6, float)
    bucket = repeated(7, float)


class Tensor(Message):
    dtype = field(1, int)
    tensor_content = field(4, bytes)
    float_val = repeated(5, Float32)
    double_val = repeated(6, float)
    int_val = repeated(7, int)
    string_val = repeated(8, bytes)
    int64_val = repeated(10, int)
    bool_val = repeated(11, bool)
    half_val = repeated(13, int)


class Value(Message):
    tag = field(1, bytes)
    simple_value = field(2, Float32)
    image = field(4, Image)
    histo = field(5, Histogram)
    audio = field(6, bytes)
    tensor = field(8, Tensor)
    metadata = field(9, Metadata)


class Summary(Message):
    value = repeated(1, Value)


# --- events ------------------------------------------------------------------------------------------


class LogMessage(Message):
    message = field(2, bytes)


class SessionLog(Message):
    status = field(1, int)
    checkpoint_path = field(2, bytes)


class Event(Message):
    wall_time = field(1, float)
    step = field(2, int)
    file_version = field(3, bytes)
    graph_def = field(4, bytes)
    summary = field(5, Summary)
    log_message = field(6, LogMessage)
    session_log = field(7, SessionLog)
    tagged_run_metadata = field(8, bytes)
    meta_graph_def = field(9, bytes)
    source_metadata = field(10, bytes)
