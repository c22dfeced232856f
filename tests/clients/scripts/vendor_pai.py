"""Alibaba Cloud's own client: `vendor_pai.py QUESTION…` prints the answer, or the error, of each.

A question is `[URL, TOKEN, JOB, METRIC, START, END, STEP]`.
"""

import json
import sys

from alibabacloud_pai_dlc20201203.client import Client
from alibabacloud_pai_dlc20201203.models import GetJobMetricsRequest
from alibabacloud_tea_openapi.exceptions import AlibabaCloudException
from alibabacloud_tea_openapi.utils_models import Config


def answer(url, token, job, metric, start, end, step):
    scheme, endpoint = url.split("://")
    client = Client(Config(access_key_id="unused", access_key_secret="unused", protocol=scheme, endpoint=endpoint))
    request = GetJobMetricsRequest(metric_type=metric, start_time=start, end_time=end, time_step=step, token=token)
    try:
        return client.get_job_metrics(job, request).body.to_map()
    except AlibabaCloudException as error:
        return {"status": error.status_code, "code": error.code, "message": error.message}


print(json.dumps({"answers": [answer(*json.loads(question)) for question in sys.argv[1:]]}))
