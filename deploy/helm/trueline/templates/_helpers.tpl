{{/* The name of everything: that of the release, which need not repeat the chart's. With `-worker` and the hash that
Kubernetes appends it has to fit into the 63 characters of a label. */}}
{{- define "trueline.name" -}}
{{- if contains .Chart.Name .Release.Name -}}
{{- .Release.Name | trunc 45 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name .Chart.Name | trunc 45 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}

{{/* What selects the pods of the release; `role` is added where one of them is meant. */}}
{{- define "trueline.selector" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "trueline.labels" -}}
{{ include "trueline.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{/*
A StatefulSet. `role` is `single` (reads and judges), `worker` (reads) or `judge`; `verdicts` is the key
of [state] that makes it one.
*/}}
{{- define "trueline.statefulset" -}}
{{- $values := .root.Values -}}
{{- $name := include "trueline.name" .root -}}
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: {{ .name }}
  labels:
    {{- include "trueline.labels" .root | nindent 4 }}
    app.kubernetes.io/component: {{ .role }}
spec:
  replicas: {{ .replicas }}
  serviceName: {{ $name }}
  # Processes do not wait for each other.
  podManagementPolicy: Parallel
  selector:
    matchLabels:
      {{- include "trueline.selector" .root | nindent 6 }}
      app.kubernetes.io/component: {{ .role }}
  template:
    metadata:
      labels:
        {{- include "trueline.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .role }}
        {{- with $values.podLabels }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      annotations:
        # A changed file restarts the pods.
        checksum/config: {{ $values.config | sha256sum }}
        {{- if $values.scrapeAnnotations }}
        prometheus.io/scrape: "true"
        prometheus.io/port: "9464"
        prometheus.io/path: /metrics
        {{- end }}
        {{- with $values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      automountServiceAccountToken: false
      enableServiceLinks: false
      terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
      securityContext:
        runAsNonRoot: true
        runAsUser: 65532
        runAsGroup: 65532
        fsGroup: 65532
        fsGroupChangePolicy: OnRootMismatch
        seccompProfile:
          type: RuntimeDefault
      {{- with $values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- if eq .role "worker" }}
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels:
              {{- include "trueline.selector" .root | nindent 14 }}
              app.kubernetes.io/component: worker
      {{- end }}
      containers:
        - name: trueline
          image: {{ printf "%s:%s" $values.image.repository ($values.image.tag | default .root.Chart.AppVersion) }}
          imagePullPolicy: {{ $values.image.pullPolicy }}
          args: [run, --config, /etc/trueline/trueline.toml]
          env:
            - name: TRUELINE_LISTEN
              value: 0.0.0.0:9464
            - name: TRUELINE_VERDICTS
              value: {{ .verdicts }}
            - name: TRUELINE_INSTANCE
              valueFrom:
                fieldRef:
                  fieldPath: metadata.name
            {{- range $key, $value := $values.environment }}
            - name: {{ $key }}
              value: {{ $value | quote }}
            {{- end }}
          {{- with $values.secret }}
          envFrom:
            - secretRef:
                name: {{ . }}
          {{- end }}
          ports:
            - name: http
              containerPort: 9464
          # A loop that stands still is started again; a broker that is away is not a reason to.
          {{- if ne .role "single" }}
          # /live fails after 30 s without a heartbeat. The loop has none while it unpacks a checkpoint
          # (seconds), nor while it waits until a slow state topic holds where new partitions begin (40 s
          # at most). So the process has a minute more.
          {{- end }}
          livenessProbe:
            httpGet:
              path: /live
              port: http
            initialDelaySeconds: 10
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: {{ ternary 3 6 (eq .role "single") }}
          readinessProbe:
            httpGet:
              path: /ready
              port: http
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 3
          resources:
            {{- $own := dict "worker" $values.fleet.workerResources "judge" $values.fleet.judgeResources }}
            {{- toYaml (get $own .role | default $values.resources) | nindent 12 }}
          securityContext:
            allowPrivilegeEscalation: false
            readOnlyRootFilesystem: true
            capabilities:
              drop: [ALL]
          volumeMounts:
            - name: config
              mountPath: /etc/trueline
              readOnly: true
            - name: state
              mountPath: /var/lib/trueline
            {{- with $values.extraVolumeMounts }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
      volumes:
        - name: config
          configMap:
            name: {{ $name }}
        {{- if eq .role "worker" }}
        - name: state
          emptyDir:
            sizeLimit: {{ $values.fleet.scratch }}
        {{- end }}
        {{- with $values.extraVolumes }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with $values.nodeSelector }}
      nodeSelector:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.tolerations }}
      tolerations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.affinity }}
      affinity:
        {{- toYaml . | nindent 8 }}
      {{- end }}
  {{- if ne .role "worker" }}
  volumeClaimTemplates:
    - apiVersion: v1
      kind: PersistentVolumeClaim
      metadata:
        name: state
      spec:
        accessModes: [ReadWriteOnce]
        {{- with $values.persistence.storageClass }}
        storageClassName: {{ . }}
        {{- end }}
        resources:
          requests:
            storage: {{ $values.persistence.size }}
  {{- end }}
{{- end -}}
