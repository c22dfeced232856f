{{- define "apiserver.name" -}}
{{- .Release.Name | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "apiserver.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "apiserver.labels" -}}
{{ include "apiserver.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
{{- end -}}

{{- define "apiserver.secret" -}}
{{- .Values.secrets.existing | default (include "apiserver.name" .) -}}
{{- end -}}

{{- define "apiserver.claim" -}}
{{- .Values.persistence.existingClaim | default (printf "%s-data" (include "apiserver.name" .)) -}}
{{- end -}}

{{- define "apiserver.probe" -}}
httpGet: {path: {{ .path }}, port: api, scheme: {{ ternary "HTTPS" "HTTP" (ne .tls "") }}}
timeoutSeconds: 5
{{- end -}}
