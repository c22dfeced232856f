"""Alibaba Cloud's own client: `vendor_pai.py URL TOKEN JOB METRIC START END STEP` prints the answer, or the error."""

import json
import sys

from alibabacloud_pai_dlc20201203.client import Client
from alibabacloud_pai_dlc20201203.models import GetJobMetricsRequest
from alibabacloud_tea_openapi.exceptions import AlibabaCloudException
from alibabacloud_tea_openapi.utils_models import Config

url, token, job, metric, start, end, step = sys.argv[1:]
scheme, endpoint = url.split("://")
client = Client(Config(access_key_id="unused", access_key_secret="unused", protocol=scheme, endpoint=endpoint))
request = GetJobMetricsRequest(metric_type=metric, start_time=start, end_time=end, time_step=step, token=token)
try:
    answer = client.get_job_metrics(job, request).body.to_map()
except AlibabaCloudException as error:
    answer = {"status": error.status_code, "code": error.code, "message": error.message}
print(json.dumps(answer))
