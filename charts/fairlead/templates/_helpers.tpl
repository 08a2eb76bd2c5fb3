{{- define "fairlead.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 63 | trimAll "-" -}}
{{- end -}}

{{/*
The Service is the strictest of all that is named after this: at most 63 characters with "-metrics" behind it, no dot,
and a letter in front. A release may have dots in its name, and begin with a digit.
*/}}
{{- define "fairlead.fullname" -}}
{{- $name := include "fairlead.name" . -}}
{{- $full := .Values.fullnameOverride -}}
{{- if not $full -}}
{{- $full = .Release.Name | replace "." "-" -}}
{{- if regexMatch "^[0-9]" $full -}}
{{- $full = printf "%s-%s" $name $full -}}
{{- else if not (contains $name $full) -}}
{{- $full = printf "%s-%s" $full $name -}}
{{- end -}}
{{- end -}}
{{- $full | trunc 55 | trimAll "-" -}}
{{- end -}}

{{/* Cluster-scoped names carry the namespace, so that releases in two namespaces do not fight over one role. */}}
{{- define "fairlead.clusterName" -}}
{{- printf "%s:%s" .Release.Namespace (include "fairlead.fullname" .) -}}
{{- end -}}

{{- define "fairlead.serviceAccountName" -}}
{{- default (include "fairlead.fullname" .) .Values.serviceAccount.name -}}
{{- end -}}

{{- define "fairlead.selectorLabels" -}}
app.kubernetes.io/name: {{ include "fairlead.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fairlead.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "fairlead.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "fairlead.image" -}}
{{- if .Values.image.digest -}}
{{- printf "%s@%s" .Values.image.repository .Values.image.digest -}}
{{- else -}}
{{- printf "%s:%s" .Values.image.repository (default .Chart.AppVersion .Values.image.tag) -}}
{{- end -}}
{{- end -}}

{{/* Something if there are webhooks: those of the passage rollout, which convert between API versions. */}}
{{- define "fairlead.webhooks" -}}
{{- if or (not .Values.passages) (has "rollout" .Values.passages) -}}yes{{- end -}}
{{- end -}}

{{- define "fairlead.certificateSecret" -}}
{{- default (printf "%s-webhook-certificate" (include "fairlead.fullname" .)) .Values.operator.certificate.secretName -}}
{{- end -}}

{{- define "fairlead.webhookHost" -}}
{{- printf "%s-webhook.%s.svc" (include "fairlead.fullname" .) .Release.Namespace -}}
{{- end -}}

{{/* Something if proxies are served. */}}
{{- define "fairlead.meshServing" -}}
{{- if and .Values.mesh.serving.enabled (or (not .Values.passages) (has "meshservice" .Values.passages)) -}}yes{{- end -}}
{{- end -}}

{{/* The pods that serve proxies are none of the operator's, which are found by their name and instance. */}}
{{- define "fairlead.meshSelectorLabels" -}}
app.kubernetes.io/name: {{ include "fairlead.name" . | trunc 58 }}-mesh
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "fairlead.meshLabels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "fairlead.meshSelectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "fairlead.meshServiceAccountName" -}}
{{- default (printf "%s-mesh" (include "fairlead.fullname" .)) .Values.mesh.serving.serviceAccount.name -}}
{{- end -}}

{{/* Something if a rule is for writing the CRDs of Fairlead. Istio's come with a control plane. */}}
{{- define "fairlead.writesOwnCRDs" -}}
{{- range .resourceNames -}}
{{- if regexMatch "\\.(sailoperator\\.io|materialize\\.cloud|karmada\\.io|kuma\\.io|fairlead\\.dev)$" . -}}yes{{- end -}}
{{- end -}}
{{- end -}}

{{/*
How Prometheus scrapes a port of metrics, every so often. The certificate is signed by nobody: the token decides about access. Labels of
metrics, such as namespace, win over those of the pod.
*/}}
{{- define "fairlead.endpoint" -}}
{{- $root := first . -}}
scheme: https
path: /metrics
interval: {{ last . }}
honorLabels: true
tlsConfig:
  insecureSkipVerify: true
authorization:
  credentials:
    name: {{ include "fairlead.fullname" $root }}-scraper
    key: token
{{- end -}}
