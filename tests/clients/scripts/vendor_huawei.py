"""Huawei Cloud's own client: `vendor_huawei.py URL TOKEN PROJECT JOB TASK` prints metrics and log, or the error.

It signs each request with keys that nobody here can check, so the token goes along in a header.
"""

import json
import sys

from huaweicloudsdkcore.auth.credentials import BasicCredentials
from huaweicloudsdkcore.exceptions.exceptions import ServiceResponseException
from huaweicloudsdkmodelarts.v1 import (
    ModelArtsClient,
    ShowTrainingJobLogsPreviewRequest,
    ShowTrainingJobMetricsRequest,
)

url, token, project, job, task = sys.argv[1:]
credentials = BasicCredentials("unused", "unused", project)
client = ModelArtsClient.new_builder().with_endpoint(url).with_credentials(credentials).build()
metrics = client.show_training_job_metrics_invoker(ShowTrainingJobMetricsRequest(job, task))
log = client.show_training_job_logs_preview_invoker(ShowTrainingJobLogsPreviewRequest(job, task))
try:
    answer = {
        "metrics": metrics.add_header("X-Auth-Token", token).invoke().to_dict()["metrics"],
        "log": log.add_header("X-Auth-Token", token).invoke().to_dict(),
    }
except ServiceResponseException as error:
    answer = {"status": error.status_code, "code": error.error_code, "message": error.error_msg}
print(json.dumps(answer, default=float))  # numbers with a fraction are Decimal there
