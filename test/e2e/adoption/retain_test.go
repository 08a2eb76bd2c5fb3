package adoption_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "github.com/fairlead/fairlead/api/policy/v1alpha1"
	"github.com/fairlead/fairlead/test/harness/wait"
)

// at is what an object has at a path, as kubectl -o jsonpath prints it.
func at(t testing.TB, object *unstructured.Unstructured, path string) string {
	t.Helper()
	p := jsonpath.New(path).AllowMissingKeys(true)
	p.EnableJSONOutput(true)
	if err := p.Parse("{" + path + "}"); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := p.Execute(&out, object.Object); err != nil {
		t.Fatal(err)
	}
	var found []any
	if err := json.Unmarshal(out.Bytes(), &found); err != nil {
		t.Fatalf("%v: %s", err, out.String())
	}
	if len(found) == 0 {
		return ""
	}
	if text, ok := found[0].(string); ok {
		return text
	}
	text, err := json.Marshal(found[0])
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What a cluster has assigned, and what others keep on an object, is there after it was taken over; what the template says
// holds, and what a user could have said and has not is gone.
func TestOverwriteRetainsFields(t *testing.T) {
	t.Parallel()
	const pod = `spec: {containers: [{name: a, image: a}]}`
	for name, c := range map[string]struct {
		member, hub string
		// more is what there is besides in the member.
		more    string
		kept    []string
		becomes map[string]string
	}{
		"the addresses of a Service": {
			member:  "{apiVersion: v1, kind: Service, metadata: {name: it}, spec: {selector: {app: a}, sessionAffinity: ClientIP, ports: [{port: 80}]}}",
			hub:     "{apiVersion: v1, kind: Service, metadata: {name: it}, spec: {selector: {app: b}, ports: [{port: 80}]}}",
			kept:    []string{".spec.clusterIP", ".spec.clusterIPs"},
			becomes: map[string]string{".spec.selector.app": "b", ".spec.sessionAffinity": "None"},
		},
		"the node ports of a Service": {
			member:  "{apiVersion: v1, kind: Service, metadata: {name: it}, spec: {type: NodePort, ports: [{name: a, port: 80}, {name: b, port: 443}]}}",
			hub:     "{apiVersion: v1, kind: Service, metadata: {name: it}, spec: {type: NodePort, ports: [{name: b, port: 443, targetPort: 8443}, {name: a, port: 80}]}}",
			kept:    []string{".spec.ports[?(@.port==80)].nodePort", ".spec.ports[?(@.port==443)].nodePort"},
			becomes: map[string]string{".spec.ports[?(@.port==443)].targetPort": "8443"},
		},
		"the port for health checks of a Service": {
			member:  "{apiVersion: v1, kind: Service, metadata: {name: it}, spec: {type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80}]}}",
			hub:     "{apiVersion: v1, kind: Service, metadata: {name: it}, spec: {type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80, targetPort: 81}]}}",
			kept:    []string{".spec.healthCheckNodePort", ".spec.ports[0].nodePort"},
			becomes: map[string]string{".spec.ports[0].targetPort": "81"},
		},
		"the volume of a claim": {
			member:  "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: it}, spec: {accessModes: [ReadWriteOnce], volumeName: disk, resources: {requests: {storage: 1Gi}}}}",
			hub:     "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: it, labels: {new: yes1}}, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}",
			kept:    []string{".spec.volumeName"},
			becomes: map[string]string{".metadata.labels.new": "yes1"},
		},
		"the selector of a Job, and the labels that go with it": {
			member:  "{apiVersion: batch/v1, kind: Job, metadata: {name: it}, spec: {suspend: true, template: {" + strings.Replace(pod, "{", "{restartPolicy: Never, ", 1) + "}}}",
			hub:     "{apiVersion: batch/v1, kind: Job, metadata: {name: it}, spec: {suspend: true, ttlSecondsAfterFinished: 77, template: {" + strings.Replace(pod, "{", "{restartPolicy: Never, ", 1) + "}}}",
			kept:    []string{".spec.selector", ".spec.template.metadata.labels"},
			becomes: map[string]string{".spec.ttlSecondsAfterFinished": "77"},
		},
		"the class of a load balancer": {
			member:  "{apiVersion: v1, kind: Service, metadata: {name: it}, spec: {type: LoadBalancer, loadBalancerClass: example.com/nlb, ports: [{port: 80}]}}",
			hub:     "{apiVersion: v1, kind: Service, metadata: {name: it}, spec: {type: LoadBalancer, ports: [{port: 80, targetPort: 81}]}}",
			kept:    []string{".spec.loadBalancerClass"},
			becomes: map[string]string{".spec.ports[0].targetPort": "81"},
		},
		"the pull secrets of a ServiceAccount that the cluster has added": {
			member:  "{apiVersion: v1, kind: ServiceAccount, metadata: {name: it}, imagePullSecrets: [{name: cluster}]}",
			hub:     "{apiVersion: v1, kind: ServiceAccount, metadata: {name: it}, imagePullSecrets: [{name: template}]}",
			kept:    []string{".imagePullSecrets[?(@.name=='cluster')]"},
			becomes: map[string]string{".imagePullSecrets[?(@.name=='template')].name": "template"},
		},
		"the secrets of a ServiceAccount": {
			member:  "{apiVersion: v1, kind: ServiceAccount, metadata: {name: it}, secrets: [{name: token}]}",
			hub:     "{apiVersion: v1, kind: ServiceAccount, metadata: {name: it}, automountServiceAccountToken: false}",
			kept:    []string{".secrets"},
			becomes: map[string]string{".automountServiceAccountToken": "false"},
		},
		"the token of a ServiceAccount": {
			member: "{apiVersion: v1, kind: Secret, metadata: {name: it, annotations: {kubernetes.io/service-account.name: default}}, type: kubernetes.io/service-account-token}",
			hub:    "{apiVersion: v1, kind: Secret, metadata: {name: it, labels: {new: yes1}, annotations: {kubernetes.io/service-account.name: default}}, type: kubernetes.io/service-account-token}",
			kept:   []string{".data.token", `.metadata.annotations.kubernetes\.io/service-account\.uid`}, becomes: map[string]string{".metadata.labels.new": "yes1"},
		},
		"finalizers, labels and annotations of others": {
			member:  "{apiVersion: v1, kind: ConfigMap, metadata: {name: it, finalizers: [example.com/hold], labels: {team: x, app: old}, annotations: {note: theirs}}, data: {a: b, extra: c}}",
			hub:     "{apiVersion: v1, kind: ConfigMap, metadata: {name: it, labels: {app: new}}, data: {a: b2}}",
			kept:    []string{".metadata.finalizers", ".metadata.labels.team", ".metadata.annotations.note"},
			becomes: map[string]string{".metadata.labels.app": "new", ".data": `{"a":"b2"}`},
		},
		"replicas that the template leaves to the cluster": {
			member:  "{apiVersion: apps/v1, kind: Deployment, metadata: {name: it}, spec: {replicas: 3, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, " + pod + "}}}",
			hub:     "{apiVersion: apps/v1, kind: Deployment, metadata: {name: it, annotations: {resourcetemplate.karmada.io/retain-replicas: 'true'}}, spec: {replicas: 1, minReadySeconds: 1, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, " + pod + "}}}",
			kept:    []string{".spec.replicas"},
			becomes: map[string]string{".spec.minReadySeconds": "1"},
		},
		"replicas that an autoscaler of the cluster decides on": {
			more:    "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: it}, spec: {minReplicas: 3, maxReplicas: 5, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: it}}}",
			member:  "{apiVersion: apps/v1, kind: Deployment, metadata: {name: it}, spec: {replicas: 3, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, " + pod + "}}}",
			hub:     "{apiVersion: apps/v1, kind: Deployment, metadata: {name: it}, spec: {replicas: 1, minReadySeconds: 1, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, " + pod + "}}}",
			kept:    []string{".spec.replicas"},
			becomes: map[string]string{".spec.minReadySeconds": "1"},
		},
		"no replicas otherwise": {
			member:  "{apiVersion: apps/v1, kind: Deployment, metadata: {name: it}, spec: {replicas: 3, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, " + pod + "}}}",
			hub:     "{apiVersion: apps/v1, kind: Deployment, metadata: {name: it}, spec: {replicas: 1, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, " + pod + "}}}",
			kept:    []string{".spec.template"},
			becomes: map[string]string{".spec.replicas": "1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			m := s.members[member1]
			if c.more != "" {
				s.create(t, m, parse(t, c.more))
			}
			before := s.settled(t, m, c.member, c.kept)
			if strings.Contains(c.hub, "service-account.name") {
				// The hub deletes the token of a ServiceAccount that is not there, and makes this one a moment after the namespace.
				wait.Until(t, func(ctx context.Context) error {
					return s.hub.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: "default"}, &corev1.ServiceAccount{})
				})
			}
			s.takeOver(t, parse(t, c.hub))
			after := parse(t, c.hub)
			s.read(t, m, after)
			for _, path := range c.kept {
				if diff := cmp.Diff(at(t, before, path), at(t, after, path)); diff != "" {
					t.Errorf("%s (-before +after)\n%s", path, diff)
				}
			}
			for path, want := range c.becomes {
				if got := at(t, after, path); got != want {
					t.Errorf("%s is %s", path, got)
				}
			}
			if len(after.GetFinalizers()) > 0 {
				s.change(t, m, after, func() { after.SetFinalizers(nil) })
			}
		})
	}
}

// allThere tells what the cluster has not assigned yet.
func allThere(t testing.TB, object *unstructured.Unstructured, paths []string) error {
	t.Helper()
	for _, path := range paths {
		if value := at(t, object, path); value == "" || value == "null" {
			return fmt.Errorf("%s has no %s yet", object.GetName(), path)
		}
	}
	return nil
}

// takeOver brings a template to the hub with a policy that overwrites, and waits until it is applied.
func (s *stage) takeOver(t testing.TB, template *unstructured.Unstructured, changes ...func(*policyv1alpha1.PropagationSpec)) *policyv1alpha1.PropagationPolicy {
	t.Helper()
	p := policy(template.GetAPIVersion(), template.GetKind(), append(changes, overwrite)...)
	p.Spec.ResourceSelectors[0].Name = template.GetName()
	s.create(t, s.hub, template, p)
	s.says(t, bindingOf(template), applied)
	return p
}

func bindingOf(template *unstructured.Unstructured) string {
	return template.GetName() + "-" + strings.ToLower(template.GetKind())
}

func TestOverwriteRetainsOwnerReferences(t *testing.T) {
	t.Parallel()
	s := newStage(t)
	owner, owned := configMap("owner"), configMap("it", "a", "b")
	s.create(t, s.members[member1], owner)
	s.read(t, s.members[member1], owner)
	owned.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: owner.UID}}
	s.create(t, s.members[member1], owned)
	s.takeOver(t, parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: it}, data: {a: c}}"))
	now := configMap("it")
	s.read(t, s.members[member1], now)
	if diff := cmp.Diff(owned.OwnerReferences, now.OwnerReferences); diff != "" || now.Data["a"] != "c" {
		t.Errorf("data %v, owners (-before +after)\n%s", now.Data, diff)
	}
}

// Whoever set a field, and by whichever way.
func TestOverwriteRemovesFieldsNotInTemplate(t *testing.T) {
	t.Parallel()
	const plain = "{apiVersion: apps/v1, kind: Deployment, metadata: {name: it}, spec: {replicas: 1, selector: {matchLabels: {app: a}}, template: {metadata: {labels: {app: a}}, spec: {containers: [{name: a, image: a}]}}}}"
	extra := strings.Replace(plain, "image: a}", "image: a, env: [{name: EXTRA, value: x}]}", 1)
	for name, write := range map[string]func(t *testing.T, s *stage){
		"set by kubectl apply": func(t *testing.T, s *stage) { s.kubectlApply(t, s.members[member1], extra) },
		"set by kubectl apply --server-side": func(t *testing.T, s *stage) {
			s.kubectlApply(t, s.members[member1], extra, "--server-side", "--field-manager", "pipeline")
		},
		"set by another who applies": func(t *testing.T, s *stage) {
			s.create(t, s.members[member1], parse(t, plain))
			patch := `{"apiVersion":"apps/v1","kind":"Deployment","spec":{"template":{"spec":{"containers":[{"name":"a","env":[{"name":"EXTRA","value":"x"}]}]}}}}`
			d := deployment("it")
			d.Namespace = s.namespace
			if err := s.members[member1].Patch(t.Context(), d, client.RawPatch(types.ApplyPatchType, []byte(patch)), client.FieldOwner("injector")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			write(t, s)
			now := deployment("it")
			s.read(t, s.members[member1], now)
			if len(now.Spec.Template.Spec.Containers[0].Env) != 1 {
				t.Fatalf("it has %v", now.Spec.Template.Spec.Containers)
			}
			s.takeOver(t, parse(t, plain))
			s.read(t, s.members[member1], now)
			if env := now.Spec.Template.Spec.Containers[0].Env; len(env) > 0 {
				t.Errorf("it still has %v", env)
			}
		})
	}
}

// What the hub's own API server has assigned to a template is not what its user has set.
func TestFieldsAssignedByHubAreNotPropagated(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		template string
		assigned []string
	}{
		"a Service": {
			"{apiVersion: v1, kind: Service, metadata: {name: it}, spec: {type: LoadBalancer, externalTrafficPolicy: Local, ports: [{port: 80}]}}",
			[]string{".spec.clusterIP", ".spec.clusterIPs", ".spec.ports[0].nodePort", ".spec.healthCheckNodePort"},
		},
		"a Job": {
			"{apiVersion: batch/v1, kind: Job, metadata: {name: it}, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: a, image: a}]}}}}",
			[]string{".spec.selector", `.spec.template.metadata.labels.batch\.kubernetes\.io/controller-uid`},
		},
		"a token": {
			"{apiVersion: v1, kind: Secret, metadata: {name: it, annotations: {kubernetes.io/service-account.name: default}}, type: kubernetes.io/service-account-token}",
			[]string{".data.token", `.metadata.annotations.kubernetes\.io/service-account\.uid`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStage(t)
			template := s.settled(t, s.hub, c.template, c.assigned)
			s.create(t, s.hub, policy(template.GetAPIVersion(), template.GetKind()))
			s.says(t, bindingOf(template), applied)
			s.manifest(t, member1, bindingOf(template), func(m *unstructured.Unstructured) error {
				for _, path := range c.assigned {
					if value := at(t, m, path); value != "" {
						return fmt.Errorf("the Work carries %s: %s", path, value)
					}
				}
				return nil
			})
			there := parse(t, c.template)
			s.until(t, s.members[member1], there, func() error { return allThere(t, there, c.assigned) })
		})
	}
}

// kubectlApply writes an object as a user or a pipeline does.
func (s *stage) kubectlApply(t testing.TB, where *site, text string, args ...string) {
	t.Helper()
	s.kubectl(t, where, append([]string{"apply", "-f", writeFile(t, text)}, args...)...)
}

// settled makes an object, and waits until the cluster has assigned what it assigns. What belongs to something that a controller
// has yet to hear of is deleted by it, and made again.
func (s *stage) settled(t testing.TB, where *site, text string, assigned []string) *unstructured.Unstructured {
	t.Helper()
	var object *unstructured.Unstructured
	wait.Until(t, func(ctx context.Context) error {
		object = parse(t, text)
		object.SetNamespace(s.namespace)
		if err := client.IgnoreAlreadyExists(where.Create(ctx, object, client.FieldOwner("people"))); err != nil {
			return err
		}
		if err := where.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		return allThere(t, object, assigned)
	})
	return object
}
