"""compose.yaml: the command of launch.sh in the engine's own container image."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import yaml

from planner.emit.deployment import Deployment
from planner.emit.devices import vendor
from planner.emit.names import one_line
from planner.emit.records import Emission, EmittedFile
from planner.emit.rules import RuleBook
from planner.search.records import Plan

_IMAGE_OF = {"NVIDIA": "container", "AMD": "container_rocm"}
_HUB_CACHE = "${HF_HOME:-${HOME}/.cache/huggingface}"


def with_compose(emission: Emission, book: RuleBook, plan: Plan, want: Deployment) -> Emission:
    """The emission with compose.yaml and its start line, where an image is known.

    `container` is the image for NVIDIA cards, `container_rocm` that for AMD's; where there is none,
    a line says so.
    """
    maker = vendor(plan)
    container = book.names.get(_IMAGE_OF.get(maker, ""))
    if container is None:
        note = f"no compose.yaml: no {book.engine} image of {book.version} is known for {maker}"
        where = book.names.get("image_lists", {}).get(maker)
        note += f"; {where} lists images" if where else ""
        return replace(emission, notes=(*emission.notes, note))
    needs = "the amdgpu driver" if maker == "AMD" else "the NVIDIA Container Toolkit"
    note = (
        f"compose.yaml (--out) starts it in a container: image {container['image']}, which was "
        f"not pulled here; needs {needs}"
    )
    if "caveat" in container:
        note += f"; {container['caveat']}"
    text = _compose_text(emission, container, plan, want)
    file = EmittedFile("compose.yaml", text)
    return replace(emission, files=(*emission.files, file), notes=(*emission.notes, note))


def _compose_text(
    emission: Emission, container: dict[str, str], plan: Plan, want: Deployment
) -> str:
    launch = emission.launch
    program = container.get("program", launch.argv[0])
    cache = container.get("hub_cache")
    hub = [f"{_HUB_CACHE}:{cache}"] if cache else []
    # Stated, so that it holds whichever user the image runs as.
    told = ["HF_TOKEN", f"HF_HOME={cache}"] if cache else []
    service = {
        "image": container["image"],
        "entrypoint": [_literal(program)],
        "command": [_literal(word) for word in launch.argv[1:]],
        "working_dir": "/plan",
        "volumes": [".:/plan:ro", *hub, *_local_folders(want)],
        "environment": [*told, *(_literal(f"{k}={v}") for k, v in launch.env.items())],
        # The server listens on 127.0.0.1 alone, which a published port does not reach.
        "network_mode": "host",
        # Ranks of a tensor-parallel engine share memory.
        "ipc": "host",
        "stop_signal": launch.stop_signal,
        **_access(plan),
    }
    head = "".join(
        f"# {one_line(line)}\n"
        for line in (
            f"What launch.sh starts, in a container: docker compose up  ({plan.planner_version})",
            f"image: {container['source']}",
            *([f"caution: {container['caveat']}"] if "caveat" in container else []),
        )
    )
    return head + yaml.safe_dump({"services": {"engine": service}}, sort_keys=False)


def _literal(text: str) -> str:
    """The text with its dollar signs kept from interpolation."""
    return text.replace("$", "$$")


def _local_folders(want: Deployment) -> Sequence[object]:
    """Mounts of checkpoints that lie on this machine, under the same path."""
    paths = [want.model_path] if want.model_path else []
    if want.draft_len and want.drafter and Path(want.drafter.drafter_id).is_absolute():
        paths.append(Path(want.drafter.drafter_id))
    folders = {str(path.parent if path.suffix == ".gguf" else path) for path in paths}
    return [
        {"type": "bind", "source": _literal(f), "target": _literal(f), "read_only": True}
        for f in sorted(folders)
    ]


def _access(plan: Plan) -> dict[str, object]:
    """How the container reaches the cards."""
    if vendor(plan) == "AMD":
        # rocm.docs.amd.com, vLLM inference: the devices and rights that ROCm needs.
        return {
            "devices": ["/dev/kfd", "/dev/dri"],
            "group_add": ["video"],
            "cap_add": ["SYS_PTRACE"],
            "security_opt": ["seccomp=unconfined"],
        }
    return {"deploy": {"resources": {"reservations": {"devices": [_devices(plan)]}}}}


def _devices(plan: Plan) -> dict[str, object]:
    count = plan.inputs.num_gpus + (plan.inputs.drafter_device_kind == "gpu")
    return {"driver": "nvidia", "count": count, "capabilities": ["gpu"]}
