package release

import "testing"

// BenchmarkDiffers is what it costs to see that a live Deployment is as rendered, with the defaults of the API server.
func BenchmarkDiffers(b *testing.B) {
	desired, live := object(b, benchDeployment), object(b, benchDeployment+`
        imagePullPolicy: Always
        terminationMessagePath: /dev/termination-log
      restartPolicy: Always
      dnsPolicy: ClusterFirst
status: {replicas: 1}
`)
	b.ReportAllocs()
	for b.Loop() {
		if field, differs := Differs(desired, live); differs {
			b.Fatal(field)
		}
	}
}

const benchDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: istiod, namespace: istio-system, labels: {app: istiod, istio: pilot}, annotations: {a: b}}
spec:
  replicas: 1
  selector: {matchLabels: {app: istiod}}
  template:
    metadata: {labels: {app: istiod, istio: pilot}}
    spec:
      serviceAccountName: istiod
      volumes:
      - {name: cacerts, secret: {secretName: cacerts, optional: true}}
      - {name: token, projected: {sources: [{serviceAccountToken: {audience: istio-ca, expirationSeconds: 43200, path: istio-token}}]}}
      containers:
      - name: discovery
        image: docker.io/istio/pilot:1.24.0
        args: [discovery, --monitoringAddr=:15014, --log_output_level=default:info, --domain, cluster.local]
        ports: [{containerPort: 8080, protocol: TCP}, {containerPort: 15010, protocol: TCP}]
        env: [{name: A, value: b}, {name: C, value: d}, {name: E, value: f}]
        resources: {requests: {cpu: 500m, memory: 2Gi}}
        volumeMounts: [{name: cacerts, mountPath: /etc/cacerts, readOnly: true}]`
