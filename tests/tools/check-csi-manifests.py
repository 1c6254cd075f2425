#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check-csi-manifests - manifests of the CSI driver: each as tests/schemas/kubernetes.json says, and all of them as one cluster's.

usage: check-csi-manifests.py FILE...

Prints one line for each thing that is wrong; exit status 1 if there was any.
"""

import json
import pathlib
import sys

import jsonschema
import yaml

SCHEMAS = pathlib.Path(__file__).parent.parent / "schemas" / "kubernetes.json"
SIZES = {"m": 1e-3, "k": 1e3, "Ki": 2**10, "M": 1e6, "Mi": 2**20, "G": 1e9, "Gi": 2**30, "T": 1e12, "Ti": 2**40}
CLUSTER_WIDE = {"Namespace", "PersistentVolume", "CSIDriver", "StorageClass", "VolumeSnapshotClass", "ClusterRole", "ClusterRoleBinding"}

problems = []
found = {}


def problem(where, text):
    problems.append(f"{where}: {text}")


def size(text):
    for unit in sorted(SIZES, key=len, reverse=True):
        if text.endswith(unit):
            return float(text[: -len(unit)]) * SIZES[unit]
    return float(text)


class UniqueKeys(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """A key that is repeated in a mapping is refused; PyYAML takes the last."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"{key} is repeated", node.start_mark)
        return super().construct_mapping(node, deep)


def read(path, schemas):
    with open(path, encoding="utf-8") as file:
        for document in yaml.load_all(file, Loader=UniqueKeys):
            if not isinstance(document, dict):
                problem(path, "a document is no object")
                continue
            kind = document.get("kind")
            word = f"{document.get('apiVersion')}/{kind}"
            metadata = document.get("metadata") or {}
            where = f"{path}: {kind} {metadata.get('name')}"
            if word not in schemas["$defs"]:
                problem(where, "no such kind in that apiVersion")
                continue
            schema = {**schemas, "$ref": "#/$defs/" + word.replace("/", "~1")}
            errors = list(jsonschema.Draft202012Validator(schema).iter_errors(document))
            for error in errors:
                problem(where, f"{'.'.join(map(str, error.absolute_path))}: {error.message}")
            if kind == "Kustomization":
                for resource in document.get("resources", []):
                    if not (pathlib.Path(path).parent / resource).is_file():
                        problem(where, f"there is no {resource}")
                continue
            if kind in CLUSTER_WIDE and "namespace" in metadata:
                problem(where, "it belongs to no namespace")
            key = (kind, metadata.get("namespace"), metadata.get("name"))
            if key in found:
                problem(where, f"there is another in {found[key][0]}")
            if not errors:
                found[key] = (where, document)


def there(kind, name, namespace=None):
    return (kind, None if kind in CLUSTER_WIDE else namespace, name) in found


def of_kind(kind):
    return [(where, document) for (key, _, _), (where, document) in found.items() if key == kind]


def drivers():
    return {document["metadata"]["name"] for _, document in of_kind("CSIDriver")}


def check_driver(where, name):
    if name not in drivers():
        problem(where, f"there is no CSIDriver {name}")


def check_pod(where, spec, namespace):
    """Names of volumes, claims, environment and service account; paths of sockets."""
    volumes = {volume["name"]: volume for volume in spec.get("volumes", [])}
    used = set()
    if not there("ServiceAccount", spec.get("serviceAccountName"), namespace) and "serviceAccountName" in spec:
        problem(where, f"there is no service account {spec['serviceAccountName']}")
    for container in spec.get("initContainers", []) + spec["containers"]:
        mounts = {mount["name"]: mount.get("mountPath") for mount in container.get("volumeMounts", []) + container.get("volumeDevices", [])}
        used |= mounts.keys()
        for name in mounts.keys() - volumes.keys():
            problem(where, f"there is no volume {name}")
        names = {entry["name"] for entry in container.get("env", [])}
        for word in container.get("command", []) + container.get("args", []):
            if "$(" in word and word[word.index("$(") + 2 : word.index(")")] not in names:
                problem(where, f"{container['name']} has no variable for {word}")
            if word.startswith("--csi-address="):
                check_socket(where, word.partition("=")[2], mounts, volumes)
            if word.startswith("--node-deployment=true") and "NODE_NAME" not in names:
                problem(where, f"{container['name']} needs NODE_NAME")
        if "csi-provisioner" in container["name"] and not {"NAMESPACE", "POD_NAME"} <= names:
            problem(where, f"{container['name']} needs NAMESPACE and POD_NAME")
    for name in volumes.keys() - used:
        problem(where, f"the volume {name} is mounted nowhere")
    for volume in volumes.values():
        claim = volume.get("persistentVolumeClaim", {}).get("claimName")
        if claim is not None:
            check_use_of_claim(where, spec, volume["name"], claim, namespace)
        if "csi" in volume:
            check_driver(where, volume["csi"]["driver"])


def check_use_of_claim(where, spec, volume, claim, namespace):
    if not there("PersistentVolumeClaim", claim, namespace):
        return problem(where, f"there is no claim {claim}")
    block = found[("PersistentVolumeClaim", namespace, claim)][1]["spec"].get("volumeMode") == "Block"
    for container in spec["containers"]:
        if any(mount["name"] == volume for mount in container.get("volumeMounts" if block else "volumeDevices", [])):
            problem(where, f"the claim {claim} is {'no filesystem' if block else 'no device'}")


def check_socket(where, path, mounts, volumes):
    for name, mount in mounts.items():
        if path.startswith(mount + "/"):
            directory = volumes.get(name, {}).get("hostPath", {}).get("path")
            if directory not in {f"/var/lib/kubelet/plugins/{driver}" for driver in drivers()} or path != mount + "/csi.sock":
                problem(where, f"{path} is not the driver's socket")
            return
    problem(where, f"nothing is mounted where {path} is")


def check_claim(where, document, namespace):
    spec = document["spec"]
    if "volumeName" in spec:
        if not there("PersistentVolume", spec["volumeName"]):
            return problem(where, f"there is no volume {spec['volumeName']}")
        volume = found[("PersistentVolume", None, spec["volumeName"])][1]["spec"]
        if spec.get("storageClassName") != "" or volume.get("storageClassName") != "":
            problem(where, 'storageClassName of claim and volume must be ""')
        if not set(spec["accessModes"]) <= set(volume["accessModes"]):
            problem(where, "the volume has not all its accessModes")
        if size(spec["resources"]["requests"]["storage"]) > size(volume["capacity"]["storage"]):
            problem(where, "asks for more than the volume has")
    elif not there("StorageClass", spec.get("storageClassName")):
        problem(where, f"there is no storage class {spec.get('storageClassName')}")
    if "dataSource" in spec and not there(spec["dataSource"]["kind"], spec["dataSource"]["name"], namespace):
        problem(where, f"there is no {spec['dataSource']['kind']} {spec['dataSource']['name']}")


def check_all():
    for (kind, namespace, _), (where, document) in found.items():
        spec = document.get("spec", {})
        if namespace is not None and not there("Namespace", namespace):
            problem(where, f"there is no namespace {namespace}")
        if kind == "Pod":
            check_pod(where, spec, namespace)
        elif kind == "DaemonSet":
            labels = spec["template"]["metadata"]["labels"]
            if not spec["selector"]["matchLabels"] or not spec["selector"]["matchLabels"].items() <= labels.items():
                problem(where, "the selector does not match the template")
            check_pod(where, spec["template"]["spec"], namespace)
        elif kind == "PersistentVolumeClaim":
            check_claim(where, document, namespace)
        elif kind == "PersistentVolume":
            check_driver(where, spec["csi"]["driver"])
        elif kind == "StorageClass":
            check_driver(where, document["provisioner"])
        elif kind == "VolumeSnapshotClass":
            check_driver(where, document["driver"])
        elif kind == "VolumeSnapshot":
            if not there("VolumeSnapshotClass", spec.get("volumeSnapshotClassName")):
                problem(where, f"there is no snapshot class {spec.get('volumeSnapshotClassName')}")
            if not there("PersistentVolumeClaim", spec["source"].get("persistentVolumeClaimName"), namespace):
                problem(where, f"there is no claim {spec['source'].get('persistentVolumeClaimName')}")
        elif kind in ("RoleBinding", "ClusterRoleBinding"):
            role = document["roleRef"]
            if role["kind"] != kind.replace("Binding", "") or not there(role["kind"], role["name"], namespace):
                problem(where, f"there is no {role['kind']} {role['name']}")
            for subject in document["subjects"]:
                if not there("ServiceAccount", subject["name"], subject["namespace"]):
                    problem(where, f"there is no service account {subject['namespace']}/{subject['name']}")


try:
    with open(SCHEMAS, encoding="utf-8") as stream:
        definitions = json.load(stream)
    for argument in sys.argv[1:]:
        read(argument, definitions)
    if not problems:
        check_all()
except yaml.YAMLError as error:
    problem("YAML", str(error))
print("\n".join(problems), end="\n" if problems else "")
sys.exit(1 if problems else 0)
