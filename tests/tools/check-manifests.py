#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""check-manifests - Kubernetes manifests, as a strict API server would read them, and flexVolume options, as the driver would.

usage: check-manifests.py FILE...       all files are one cluster's: names in them must match
       check-manifests.py --json FILE   the documents of FILE, as a JSON array

Prints one line for each thing that is wrong; exit status 1 if there was any.
The fields are those that our manifests use; one that is not listed here is an error, so that a misspelt one cannot pass.
"""

import json
import re
import sys

import yaml

NAME = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
QUANTITY = re.compile(r"([0-9]+(?:\.[0-9]+)?)(m|k|Ki|M|Mi|G|Gi|T|Ti)?")
FACTORS = {None: 1, "m": 0.001, "k": 1e3, "Ki": 2**10, "M": 1e6, "Mi": 2**20, "G": 1e9, "Gi": 2**30, "T": 1e12, "Ti": 2**40}


def quantity(text):
    match = QUANTITY.fullmatch(str(text))
    return float(match[1]) * FACTORS[match[2]] if match else None


class Pattern:
    def __init__(self, pattern, what):
        self.pattern, self.what = re.compile(pattern), what


class Map:  # with any keys
    def __init__(self, values):
        self.values = values


class Object:  # with these keys
    def __init__(self, required="", **fields):
        self.required, self.fields = required.split(), fields


def one_of(*words):
    return Pattern("|".join(re.escape(word) for word in words), "one of " + ", ".join(words))


QTY = "quantity"
PATH = Pattern(r"/.*", "an absolute path")
DNS = Pattern(NAME.pattern, "a name")
ACCESS = [one_of("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")]
LABELS = Map(str)
METADATA = Object(required="name", name=DNS, namespace=DNS, labels=LABELS, annotations=LABELS)
RESOURCES = Object(requests=Map(QTY), limits=Map(QTY))
SELINUX = Object(level=str, role=str, type=str, user=str)
SECCOMP = Object(required="type", type=one_of("RuntimeDefault", "Unconfined", "Localhost"), localhostProfile=str)
FLEX = Object(required="driver", driver=Pattern(r"[A-Za-z0-9._-]+/[A-Za-z0-9._-]+", "vendor/driver"), fsType=str, readOnly=bool,
              options=Map(str), secretRef=Object(required="name", name=DNS, namespace=DNS))
HOST_PATH = Object(required="path", path=PATH, type=one_of("", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"))
MATCH = Object(required="key operator", key=str, operator=one_of("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"), values=[str])
NODE_SELECTOR = Object(required="nodeSelectorTerms", nodeSelectorTerms=[Object(matchExpressions=[MATCH], matchFields=[MATCH])])
CONTAINER_SECURITY = Object(
    runAsUser=int, runAsGroup=int, runAsNonRoot=bool, privileged=bool, allowPrivilegeEscalation=bool, readOnlyRootFilesystem=bool,
    capabilities=Object(add=[str], drop=[str]), seccompProfile=SECCOMP, seLinuxOptions=SELINUX,
    procMount=one_of("Default", "Unmasked"))
CONTAINER = Object(
    required="name image", name=DNS, image=str, imagePullPolicy=one_of("Always", "IfNotPresent", "Never"), command=[str], args=[str],
    workingDir=PATH, env=[Object(required="name", name=str, value=str)], resources=RESOURCES, securityContext=CONTAINER_SECURITY,
    volumeMounts=[Object(required="name mountPath", name=DNS, mountPath=PATH, readOnly=bool, subPath=str,
                         mountPropagation=one_of("None", "HostToContainer", "Bidirectional"))])
VOLUME = Object(required="name", name=DNS, hostPath=HOST_PATH, flexVolume=FLEX, emptyDir=Object(medium=str, sizeLimit=QTY),
                persistentVolumeClaim=Object(required="claimName", claimName=DNS, readOnly=bool))
POD_SPEC = Object(
    required="containers", containers=[CONTAINER], initContainers=[CONTAINER], volumes=[VOLUME], serviceAccountName=DNS,
    automountServiceAccountToken=bool, enableServiceLinks=bool, priorityClassName=DNS, terminationGracePeriodSeconds=int,
    nodeSelector=LABELS, nodeName=DNS, hostUsers=bool, hostPID=bool, hostNetwork=bool,
    restartPolicy=one_of("Always", "OnFailure", "Never"),
    tolerations=[Object(key=str, operator=one_of("Exists", "Equal"), value=str, effect=one_of("NoSchedule", "PreferNoSchedule", "NoExecute"))],
    securityContext=Object(runAsUser=int, runAsGroup=int, runAsNonRoot=bool, fsGroup=int, supplementalGroups=[int],
                           fsGroupChangePolicy=one_of("Always", "OnRootMismatch"), seccompProfile=SECCOMP, seLinuxOptions=SELINUX))
KINDS = {
    ("v1", "Namespace"): Object(required="metadata", metadata=METADATA),
    ("v1", "ResourceQuota"): Object(required="metadata spec", metadata=METADATA, spec=Object(
        required="hard", hard=Map(QTY), scopeSelector=Object(required="matchExpressions", matchExpressions=[Object(
            required="scopeName operator", scopeName=one_of("PriorityClass"), operator=one_of("In"), values=[str])]))),
    ("v1", "ServiceAccount"): Object(required="metadata", metadata=METADATA, automountServiceAccountToken=bool),
    ("v1", "Pod"): Object(required="metadata spec", metadata=METADATA, spec=POD_SPEC),
    ("v1", "PersistentVolume"): Object(required="metadata spec", metadata=METADATA, spec=Object(
        required="capacity accessModes flexVolume", capacity=Map(QTY), accessModes=ACCESS, storageClassName=str, flexVolume=FLEX,
        persistentVolumeReclaimPolicy=one_of("Retain", "Delete"), volumeMode=one_of("Filesystem", "Block"), mountOptions=[str],
        claimRef=Object(required="name namespace", name=DNS, namespace=DNS),
        nodeAffinity=Map(NODE_SELECTOR))),
    ("v1", "PersistentVolumeClaim"): Object(required="metadata spec", metadata=METADATA, spec=Object(
        required="accessModes resources", accessModes=ACCESS, storageClassName=str, volumeName=DNS,
        volumeMode=one_of("Filesystem", "Block"), resources=RESOURCES)),
    ("apps/v1", "DaemonSet"): Object(required="metadata spec", metadata=METADATA, spec=Object(
        required="selector template", selector=Object(required="matchLabels", matchLabels=LABELS),
        updateStrategy=Object(type=one_of("RollingUpdate", "OnDelete"),
                              rollingUpdate=Object(maxUnavailable=Pattern(r"[0-9]+%?", "a number or a percentage"))),
        minReadySeconds=int, revisionHistoryLimit=int,
        template=Object(required="metadata spec", metadata=Object(labels=LABELS, annotations=LABELS), spec=POD_SPEC))),
}

# What the driver knows, by kind (it ignores the rest), and what it needs one of.
COMMON_OPTIONS = {"type", "idMappable", "cache", "mountOptions"}
OPTIONS = {
    "loop": {"pool", "image", "size", "preallocate"},
    "block": {"source", "device"},
    "bind": {"source", "path"},
    "tmpfs": {"size", "mode", "inodes"},
    "nfs": {"server", "share", "source"},
}
NEEDED = {"loop": set(), "block": {"source", "device"}, "bind": {"source", "path"}, "tmpfs": set(), "nfs": {"server", "source"}}

problems = []


def problem(where, text):
    problems.append(f"{where}: {text}")


def check(value, schema, where):
    if isinstance(schema, Object):
        if not isinstance(value, dict):
            return problem(where, "must be an object")
        for name in schema.required:
            if name not in value:
                problem(where, f"{name} is missing")
        for name, member in value.items():
            if name in schema.fields:
                check(member, schema.fields[name], f"{where}.{name}")
            else:
                problem(where, f"unknown field {name}")
    elif isinstance(schema, Map):
        if not isinstance(value, dict):
            return problem(where, "must be an object")
        for name, member in value.items():
            if not isinstance(name, str):
                problem(where, f"{name} must be a string")
            check(member, schema.values, f"{where}.{name}")
    elif isinstance(schema, list):
        if not isinstance(value, list):
            return problem(where, "must be an array")
        for index, member in enumerate(value):
            check(member, schema[0], f"{where}[{index}]")
    elif schema == QTY:
        if isinstance(value, bool) or quantity(value) is None:
            problem(where, f"{value!r} is no quantity")
    elif isinstance(schema, Pattern):
        if not isinstance(value, (str, int)) or not schema.pattern.fullmatch(str(value)):
            problem(where, f"{value!r} is not {schema.what}")
    elif not isinstance(value, schema) or (schema is int and isinstance(value, bool)):
        problem(where, f"{value!r} must be a {schema.__name__}")


def check_flex(flex, where):
    vendor, _, driver = flex.get("driver", "").partition("/")
    options = flex.get("options", {})
    kind = options.get("type", driver)
    if vendor != ("k8s" if driver == "nfs" else "flexgraft") or kind not in OPTIONS:
        return problem(where, f"nobody drives {flex.get('driver')} of type {kind}")
    for name in options:
        if name not in OPTIONS[kind] | COMMON_OPTIONS:
            problem(where, f"{kind} has no option {name}")
    if NEEDED[kind] and not NEEDED[kind] & options.keys():
        problem(where, f"{kind} needs one of {', '.join(sorted(NEEDED[kind]))}")
    if quantity(options.get("size", "1")) is None:
        problem(where, f"size {options['size']!r} is no size")
    if flex.get("fsType", "ext4") not in ("", "ext4", "xfs", "btrfs"):
        problem(where, f"fsType {flex['fsType']} cannot be made")


def check_pod(spec, where, claims):
    volumes = [volume.get("name") for volume in spec.get("volumes", [])]
    if len(set(volumes)) != len(volumes):
        problem(where, "two volumes of one name")
    mounted = set()
    names = set()
    for container in spec.get("initContainers", []) + spec.get("containers", []):
        if container.get("name") in names:
            problem(where, f"two containers called {container.get('name')}")
        names.add(container.get("name"))
        for mount in container.get("volumeMounts", []):
            mounted.add(mount.get("name"))
            if mount.get("name") not in volumes:
                problem(where, f"no volume {mount.get('name')}")
        if "/" in container.get("image", ""):
            problem(where, f"image {container['image']} names a registry")
    for name in set(volumes) - mounted:
        problem(where, f"volume {name} is mounted nowhere")
    for volume in spec.get("volumes", []):
        if len(volume) != 2:
            problem(where, f"volume {volume.get('name')} has {len(volume) - 1} sources")
        if "flexVolume" in volume:
            check_flex(volume["flexVolume"], f"{where}: volume {volume['name']}")
        claim = volume.get("persistentVolumeClaim", {}).get("claimName")
        if claim is not None and claim not in claims:
            problem(where, f"no claim {claim}")


def check_claim(claim, volumes, where):
    spec = claim["spec"]
    volume = volumes.get(spec.get("volumeName"))
    if volume is None:
        return problem(where, f"no volume {spec.get('volumeName')}")
    # "" and not absent: absent means the cluster's default class, which would provision another volume
    if spec.get("storageClassName") != "" or volume["spec"].get("storageClassName") != "":
        problem(where, 'storageClassName of claim and volume must be ""')
    if not set(spec["accessModes"]) <= set(volume["spec"]["accessModes"]):
        problem(where, "the volume has not all its accessModes")
    if spec.get("volumeMode", "Filesystem") != volume["spec"].get("volumeMode", "Filesystem"):
        problem(where, "volumeMode differs from the volume's")
    asked = quantity(spec["resources"].get("requests", {}).get("storage", ""))
    has = quantity(volume["spec"]["capacity"].get("storage", ""))
    if asked is None or has is None or asked > has:
        problem(where, "asks for more than the volume has")


def check_volume(volume, where):
    spec = volume["spec"]
    check_flex(spec["flexVolume"], where)
    size = spec["flexVolume"].get("options", {}).get("size")
    if size is not None and quantity(size) != quantity(spec["capacity"].get("storage", "")):
        problem(where, f"size {size} is not its capacity")
    if spec["flexVolume"].get("driver") == "k8s/nfs":
        if "nodeAffinity" in spec:
            problem(where, "nodeAffinity: a server's storage is of every node")
    elif "nodeAffinity" not in spec:
        problem(where, "no nodeAffinity: its storage is of one node")
    elif set(spec["nodeAffinity"]) != {"required"}:
        problem(where, "nodeAffinity has required, and nothing else")


def main(paths):
    documents = []
    for path in paths:
        with open(path, encoding="utf-8") as file:
            for document in yaml.load_all(file, Loader=UniqueKeys):
                documents.append((path, document))

    found = {}
    for path, document in documents:
        if not isinstance(document, dict):
            problem(path, "a document is no object")
            continue
        kind = document.pop("kind", None)
        schema = KINDS.get((document.pop("apiVersion", None), kind))
        name = (document.get("metadata") or {}).get("name")
        where = f"{path}: {kind} {name}"
        if schema is None:
            problem(where, "no such kind in that apiVersion")
            continue
        before = len(problems)
        check(document, schema, where)
        if (kind, name) in found:
            problem(where, f"there is another in {found[kind, name][0]}")
        if len(problems) == before:
            found[kind, name] = (path, document)
    if problems:
        return

    def all_of(wanted):
        return {name: document for (kind, name), (_, document) in found.items() if kind == wanted}

    volumes, claims, spaces, accounts = (all_of(kind) for kind in ("PersistentVolume", "PersistentVolumeClaim", "Namespace", "ServiceAccount"))
    for (kind, name), (path, document) in found.items():
        where = f"{path}: {kind} {name}"
        space = document["metadata"].get("namespace")
        if space is not None and space not in spaces:
            problem(where, f"no namespace {space}")
        if kind == "Pod":
            check_pod(document["spec"], where, claims)
        elif kind == "PersistentVolumeClaim":
            check_claim(document, volumes, where)
        elif kind == "PersistentVolume":
            check_volume(document, where)
            if name not in [claim["spec"].get("volumeName") for claim in claims.values()]:
                problem(where, "nobody claims it")
        elif kind == "DaemonSet":
            template = document["spec"]["template"]
            selector = document["spec"]["selector"]["matchLabels"]
            if not selector or not selector.items() <= template["metadata"].get("labels", {}).items():
                problem(where, "the selector does not match the template")
            if template["spec"].get("serviceAccountName", "default") not in [*accounts, "default"]:
                problem(where, f"no service account {template['spec']['serviceAccountName']}")
            check_pod(template["spec"], where, claims)


class UniqueKeys(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
    """A key that is repeated in a mapping is refused; PyYAML takes the last."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise yaml.constructor.ConstructorError(None, None, f"{key} is repeated", node.start_mark)
        return super().construct_mapping(node, deep)


if sys.argv[1:2] == ["--json"]:
    with open(sys.argv[2], encoding="utf-8") as stream:
        json.dump(list(yaml.load_all(stream, Loader=UniqueKeys)), sys.stdout)
else:
    try:
        main(sys.argv[1:])
    except yaml.YAMLError as error:
        problem("YAML", str(error))
    print("\n".join(problems), end="\n" if problems else "")
    sys.exit(1 if problems else 0)
