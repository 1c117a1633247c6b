{{- /* What no schema can say. Each message tells what to write instead. */ -}}
{{- define "llm-gateway.check" -}}
{{- $v := .Values -}}
{{- if not (include "llm-gateway.shared" .) -}}
{{- $why := "need stores that all replicas share: set stores.state.secret (redis://...) and stores.database.secret (postgres://...), or keep one replica; in memory and in SQLite each would count for itself" -}}
{{- if $v.autoscaling.enabled -}}
{{- fail (printf "autoscaling.enabled: several replicas %s" $why) -}}
{{- else if gt (int $v.replicas) 1 -}}
{{- fail (printf "replicas: %d replicas %s" (int $v.replicas) $why) -}}
{{- end -}}
{{- end -}}
{{- if and $v.autoscaling.enabled (gt (int $v.autoscaling.minReplicas) (int $v.autoscaling.maxReplicas)) -}}
{{- fail "autoscaling.minReplicas: is above autoscaling.maxReplicas" -}}
{{- end -}}
{{- if and $v.data.volumeClaim $v.stores.database.secret -}}
{{- fail "data.volumeClaim: is for the SQLite file, and stores.database.secret names another database; leave one of them out" -}}
{{- end -}}
{{- if and $v.config $v.existingConfigMap -}}
{{- fail "existingConfigMap: stands instead of config; write one of them" -}}
{{- end -}}
{{- if and $v.serviceMonitor.enabled $v.networkPolicy.enabled (not $v.networkPolicy.admin.namespace) -}}
{{- fail "networkPolicy.admin.namespace: name the namespace that Prometheus scrapes from" -}}
{{- end -}}
{{- range $name, $said := $v.config -}}
{{- include "llm-gateway.checkFile" (list $name (kindIs "string" $said | ternary (fromYaml (toString $said)) $said)) -}}
{{- end -}}
{{- range $name := keys $v.environment -}}
{{- if regexMatch "(?i)(^GATEWAY_(SERVER__(HOST|PORT|WORKERS|ANNOUNCE_S|DRAIN_S|ADMIN(__.*)?)|STORES__(STATE|DATABASE)|ADMIN_KEY)$|^(REDIS|DATABASE)_URL$)" $name -}}
{{- fail (printf "environment.%s: is set by other values of this chart" $name) -}}
{{- else if regexMatch "(?i)(API_?KEY|SECRET|TOKEN|PASSWORD)" $name -}}
{{- fail (printf "environment.%s: is shown to all who may read the deployment; write it under secrets.env" $name) -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "llm-gateway.checkFile" -}}
{{- $name := index . 0 -}}
{{- $tree := index . 1 -}}
{{- if and (eq (len $tree) 1) (hasKey $tree "Error") -}}
{{- fail (printf "config.%s: is no YAML map: %s" $name (get $tree "Error")) -}}
{{- end -}}
{{- $other := dict "host" "listen" "port" "service.port" "workers" "workers" "announce_s" "drain.announceSeconds" "drain_s" "drain.runningSeconds" "admin" "admin.secret and admin.port" -}}
{{- $server := get $tree "server" -}}
{{- if kindIs "map" $server -}}
{{- range $key, $instead := $other -}}
{{- if hasKey $server $key -}}
{{- fail (printf "config.%s: server.%s is set by this chart; write %s" $name $key $instead) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- $stores := get $tree "stores" -}}
{{- if kindIs "map" $stores -}}
{{- range $key := list "state" "database" -}}
{{- if hasKey $stores $key -}}
{{- fail (printf "config.%s: stores.%s is set by this chart; write stores.%s.secret" $name $key $key) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- include "llm-gateway.checkSecrets" (list (printf "config.%s" $name) "" $tree) -}}
{{- end -}}

{{- /* Refuse a secret in clear: a ConfigMap is no place for one. Takes the path, the name of the node, the node. */ -}}
{{- define "llm-gateway.checkSecrets" -}}
{{- $path := index . 0 -}}
{{- $key := index . 1 -}}
{{- $node := index . 2 -}}
{{- if kindIs "map" $node -}}
{{- range $name, $below := $node -}}
{{- include "llm-gateway.checkSecrets" (list (printf "%s: %s" $path $name) $name $below) -}}
{{- end -}}
{{- else if kindIs "slice" $node -}}
{{- range $below := $node -}}
{{- include "llm-gateway.checkSecrets" (list $path $key $below) -}}
{{- end -}}
{{- else if kindIs "string" $node -}}
{{- if regexMatch "(?i)^(api_keys?|secret|password|token|authorization|proxy-authorization|x-api-key|api-key|x-goog-api-key)$" $key -}}
{{- if not (regexMatch "^(env:[A-Za-z_][A-Za-z0-9_]*|file:.+)$" $node) -}}
{{- fail (printf "%s: is written in clear; write env:NAME or file:PATH, and the Secret under secrets.env or secrets.files" $path) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
