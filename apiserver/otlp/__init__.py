"""Metrics of OpenTelemetry, sent by OTLP over HTTP, become scalars of the tasks that they name.

`protobuf.py` and `json_form.py` read the two forms of a body as points (`points.py`), `series.py` sorts the points into
series of tasks, and `server.py` answers `POST /v1/metrics`. The form of bodies and answers is that of the OTLP
specification 1.x, https://opentelemetry.io/docs/specs/otlp/.
"""
