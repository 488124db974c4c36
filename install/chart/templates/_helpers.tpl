{{- define "rampart.name" -}}
{{- if contains "rampart" .Release.Name }}{{ .Release.Name | trunc 63 | trimSuffix "-" }}{{ else }}{{ printf "%s-rampart" .Release.Name | trunc 63 | trimSuffix "-" }}{{ end }}
{{- end }}

{{- define "rampart.selector" -}}
app.kubernetes.io/name: rampart
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "rampart.labels" -}}
{{ include "rampart.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end }}

{{- /* A setting as a variable has it: a list as a line of CSV, a number without an exponent. */}}
{{- define "rampart.text" -}}
{{- if kindIs "slice" . }}{{ range $i, $item := . }}{{ if $i }},{{ end }}"{{ $item | replace "\"" "\"\"" }}"{{ end }}{{ else if kindIs "float64" . }}{{ toJson . }}{{ else }}{{ . }}{{ end }}
{{- end }}
