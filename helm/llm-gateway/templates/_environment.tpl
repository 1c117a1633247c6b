{{- /* Variables win over files: what stands here is what the pod is probed by and stopped by. */ -}}
{{- define "llm-gateway.environment" -}}
{{- $v := .Values -}}
- {name: GATEWAY_SERVER__HOST, value: {{ $v.listen | quote }}}
- {name: GATEWAY_SERVER__PORT, value: "4000"}
- {name: GATEWAY_SERVER__WORKERS, value: {{ int $v.workers | quote }}}
- {name: GATEWAY_SERVER__ADMIN__HOST, value: {{ $v.listen | quote }}}
- {name: GATEWAY_SERVER__ADMIN__PORT, value: {{ int $v.admin.port | quote }}}
- {name: GATEWAY_SERVER__ANNOUNCE_S, value: {{ $v.drain.announceSeconds | toString | quote }}}
- {name: GATEWAY_SERVER__DRAIN_S, value: {{ $v.drain.runningSeconds | toString | quote }}}
{{- if $v.admin.secret }}
- name: GATEWAY_ADMIN_KEY
  valueFrom: {secretKeyRef: {name: {{ $v.admin.secret | quote }}, key: {{ $v.admin.key | quote }}}}
{{- end }}
{{- if $v.stores.state.secret }}
- name: GATEWAY_STORES__STATE
  valueFrom: {secretKeyRef: {name: {{ $v.stores.state.secret | quote }}, key: {{ $v.stores.state.key | quote }}}}
{{- end }}
{{- if $v.stores.database.secret }}
- name: GATEWAY_STORES__DATABASE
  valueFrom: {secretKeyRef: {name: {{ $v.stores.database.secret | quote }}, key: {{ $v.stores.database.key | quote }}}}
{{- end }}
{{- range $name, $from := $v.secrets.env }}
- name: {{ $name | quote }}
  valueFrom: {secretKeyRef: {name: {{ $from.secret | quote }}, key: {{ $from.key | quote }}}}
{{- end }}
{{- range $name, $value := $v.environment }}
- {name: {{ $name | quote }}, value: {{ $value | quote }}}
{{- end }}
{{- end -}}
