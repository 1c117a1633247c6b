{{- /* At most 52 characters, so that what is derived from it stays below 63; a longer name keeps apart by its digest. */ -}}
{{- define "llm-gateway.fullname" -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- $full := .Values.fullnameOverride -}}
{{- if not $full -}}
{{- $full = ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- end -}}
{{- if gt (len $full) 52 -}}
{{- $full = printf "%s-%s" (trunc 43 $full | trimSuffix "-") (sha256sum $full | trunc 8) -}}
{{- end -}}
{{- $full -}}
{{- end -}}

{{- define "llm-gateway.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride | trunc 63 | trimSuffix "-" | quote }}
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end -}}

{{- define "llm-gateway.labels" -}}
{{ include "llm-gateway.selector" . }}
app.kubernetes.io/version: {{ default .Chart.AppVersion .Values.image.tag | trunc 63 | trimAll "-_." | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service | quote }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" | trunc 63 | trimSuffix "-" | quote }}
{{- end -}}

{{- define "llm-gateway.account" -}}
{{- if .Values.serviceAccount.create -}}
{{- default (include "llm-gateway.fullname" .) .Values.serviceAccount.name -}}
{{- else -}}
{{- default "default" .Values.serviceAccount.name -}}
{{- end -}}
{{- end -}}

{{- define "llm-gateway.configMap" -}}
{{- if .Values.existingConfigMap -}}
{{- .Values.existingConfigMap -}}
{{- else if .Values.config -}}
{{- include "llm-gateway.fullname" . -}}
{{- end -}}
{{- end -}}

{{- define "llm-gateway.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{- /* "yes" where every replica sees the same counters and records. */ -}}
{{- define "llm-gateway.shared" -}}
{{- if and .Values.stores.state.secret .Values.stores.database.secret -}}yes{{- end -}}
{{- end -}}

{{- /* The least number of pods that are asked for. */ -}}
{{- define "llm-gateway.pods" -}}
{{- ternary .Values.autoscaling.minReplicas .Values.replicas .Values.autoscaling.enabled | int -}}
{{- end -}}

{{- /* Each file of the configuration as text, in YAML so that it can be read back. */ -}}
{{- define "llm-gateway.files" -}}
{{- $files := dict -}}
{{- range $name, $said := .Values.config -}}
{{- if not (kindIs "string" $said) -}}
{{- $said = include "llm-gateway.yaml" (list $name $said) -}}
{{- end -}}
{{- $_ := set $files $name $said -}}
{{- end -}}
{{- include "llm-gateway.yaml" (list "" $files) -}}
{{- end -}}

{{- /* Helm writes some characters as others, and nothing at all for some keys: what does not read back is refused. */ -}}
{{- define "llm-gateway.yaml" -}}
{{- $text := index . 1 | toYaml -}}
{{- if ne (fromYaml $text | toRawJson) (index . 1 | toRawJson) -}}
{{- fail (printf "config.%s: holds characters or keys that Helm cannot write; put them into a ConfigMap of your own and name it in existingConfigMap" (index . 0)) -}}
{{- end -}}
{{- $text -}}
{{- end -}}
