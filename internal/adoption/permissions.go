package adoption

// What the operator may do on the hub. It reads the common kinds of templates; others are granted with rbac.extraRules of the chart.

// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,resourceNames=propagationpolicies.policy.karmada.io;clusterpropagationpolicies.policy.karmada.io;resourcebindings.work.karmada.io;clusterresourcebindings.work.karmada.io;works.work.karmada.io;clusters.cluster.karmada.io,verbs=get;create;patch
// +kubebuilder:rbac:groups=coordination.k8s.io,resources=leases,resourceNames=karmada-controller-manager;karmada-scheduler,verbs=list;watch
// +kubebuilder:rbac:groups=policy.karmada.io,resources=propagationpolicies;clusterpropagationpolicies,verbs=list;watch;patch
// +kubebuilder:rbac:groups=policy.karmada.io,resources=propagationpolicies/status;clusterpropagationpolicies/status,verbs=patch
// +kubebuilder:rbac:groups=work.karmada.io,resources=resourcebindings;clusterresourcebindings;works,verbs=get;list;watch;create;update;patch;delete
// +kubebuilder:rbac:groups=work.karmada.io,resources=resourcebindings/status;clusterresourcebindings/status;works/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.karmada.io,resources=clusters,verbs=list;watch;update;patch
// +kubebuilder:rbac:groups=cluster.karmada.io,resources=clusters/status,verbs=patch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch;create;update;delete
// +kubebuilder:rbac:groups="",resources=namespaces,verbs=create
// +kubebuilder:rbac:groups="",resources=namespaces;configmaps;services;serviceaccounts;persistentvolumeclaims,verbs=get;list;watch
// +kubebuilder:rbac:groups=apps,resources=deployments;statefulsets;daemonsets,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch,resources=jobs;cronjobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=networking.k8s.io,resources=ingresses;networkpolicies,verbs=get;list;watch
// +kubebuilder:rbac:groups=autoscaling,resources=horizontalpodautoscalers,verbs=get;list;watch
// +kubebuilder:rbac:groups=policy,resources=poddisruptionbudgets,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
