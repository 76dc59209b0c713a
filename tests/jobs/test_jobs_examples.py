"""The example clusters are valid for Ray, and their ports are not reachable from outside."""

from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

FOLDER = Path(__file__).parents[2] / "examples" / "ray"
FILES = sorted(FOLDER.glob("*.yaml"))


def documents(path: Path) -> list[Any]:
    return list(YAML(typ="safe").load_all(path.read_text("utf-8")))


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for key, one in value.items() for text in (str(key), *strings(one))]
    if isinstance(value, list):
        return [text for one in value for text in strings(one)]
    return [str(value)]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_nothing_in_an_example_cluster_is_open_to_the_world(path: Path) -> None:
    said = [text for document in documents(path) for text in strings(document)]
    assert said
    assert not [text for text in said if "0.0.0.0" in text or "::/0" in text]
    assert not {"NodePort", "LoadBalancer", "Ingress"} & {str(document.get("kind")) for document in documents(path)}
    assert not {"NodePort", "LoadBalancer"} & set(said)
    assert any("token" in text for text in said), "anybody who reaches it may send it code"


def test_the_kubernetes_cluster_is_internal_and_every_pod_of_it_is_behind_the_policy() -> None:
    cluster, _, policy, shell = documents(FOLDER / "kuberay.yaml")
    spec = cluster["spec"]
    assert spec["headGroupSpec"]["serviceType"] == "ClusterIP"
    assert spec["authOptions"]["mode"] == "token"
    assert spec["enableInTreeAutoscaling"] is True
    behind = policy["spec"]["podSelector"]["matchLabels"]
    pods = [spec["headGroupSpec"]["template"], *(group["template"] for group in spec["workerGroupSpecs"]), shell]
    assert all(behind.items() <= pod["metadata"]["labels"].items() for pod in pods)
    assert policy["spec"]["ingress"] == [{"from": [{"podSelector": {"matchLabels": behind}}]}]


def test_the_cloud_cluster_has_no_public_addresses_and_no_group_of_rays_making() -> None:
    (cluster,) = documents(FOLDER / "aws.yaml")
    assert cluster["provider"]["use_internal_ips"] is True
    assert all(kind["node_config"]["SecurityGroupIds"] for kind in cluster["available_node_types"].values())
    (head,) = [line for line in cluster["head_start_ray_commands"] if "--head" in line]
    assert "--dashboard-host=127.0.0.1" in head
    assert "RAY_AUTH_MODE=token" in head


def test_ray_itself_takes_the_cloud_cluster() -> None:
    pytest.importorskip("ray", reason="ray is not installed: pip install 'pitboss[ray]'")
    from ray.autoscaler._private.util import prepare_config, validate_config

    (cluster,) = documents(FOLDER / "aws.yaml")
    validate_config(prepare_config(cluster))
