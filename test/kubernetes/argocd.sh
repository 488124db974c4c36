#!/usr/bin/env bash
# Makes Argo CD 3.5 compile with Kubernetes 0.37: argocd.sh DIR writes DIR/go.mod, which is go.mod with copies of two modules in DIR. One line is
# changed in each: a parameter that kubectl's function no longer has, and the entry of a type that the API no longer has. Argo CD 3.6, which needs
# neither, requires Go 1.27.
set -euo pipefail
cd "$(dirname "$0")"
dir=$1
rm -rf "$dir"
mkdir -p "$dir"
cp go.mod go.sum "$dir"

patched() { # MODULE FILE PATTERN EDIT: a copy in which sed's EDIT changed FILE, which has PATTERN
  local copy
  copy="$dir/$(basename "$1")"
  cp -r "$(go list -m -f '{{.Dir}}' "$1")" "$copy"
  chmod -R u+w "$copy"
  grep -q "$3" "$copy/$2" || { echo "argocd.sh: $1 has no $3 in $2: if it compiles without this edit, remove the edit" >&2; exit 1; }
  sed -i "$4" "$copy/$2"
  go mod edit -replace "$1=$copy" "$dir/go.mod"
}
patched github.com/argoproj/argo-cd/gitops-engine pkg/utils/kube/resource_ops.go 'RunCreate(fact, cmd)' 's/RunCreate(fact, cmd)/RunCreate(fact)/'
patched github.com/argoproj/argo-cd/v3 util/argo/normalizers/corev1_known_types.go 'PodStatusResult' '/PodStatusResult/,/^\t}$/d'
