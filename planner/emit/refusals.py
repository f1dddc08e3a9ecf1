"""What an engine cannot load or place, said before any settings are made."""

from collections.abc import Mapping

from planner.emit.deployment import Deployment, Drafter
from planner.emit.rules import RuleBook
from planner.errors import EngineUnsupported
from planner.search.records import Plan

_GGUF_KINDS = ("q2", "q3", "q4", "q5", "q6", "q8", "iq", "tq", "ud-")


def require_loadable(drafter: Drafter, book: RuleBook) -> Drafter:
    """The drafter, when there is something to load and this engine version can.

    Raises:
        EngineUnsupported: the plan was made with a template whose sizes are assumed, or the
            engine does not know the variant.
    """
    if not drafter.exists:
        raise EngineUnsupported(
            f"no published {drafter.family} drafter is known for this model, so there is nothing "
            "that an engine could load; train one and give --drafter-path, or use --drafter none"
        )
    known = book.names.get("block_variant", {})
    if drafter.variant and drafter.variant not in known:
        others = f" or one of {', '.join(known)}" if known else ""
        raise EngineUnsupported(
            f"{book.engine} {book.version} has no loader for {drafter.variant} drafters, which "
            f"{drafter.drafter_id} is; use --drafter-path with a plain DFlash checkpoint{others}, "
            f"or another --drafter [{book.read_at}]"
        )
    return drafter


def draft_source(want: Deployment, drafter: Drafter, engine: str, source: str) -> str:
    """Repository or folder of the drafter; empty where the target's checkpoint holds it.

    Raises:
        EngineUnsupported: it lies in a folder of a repository that was not downloaded.
    """
    if not drafter.subfolder:
        return drafter.drafter_id
    if want.model_path is None or drafter.drafter_id:
        raise EngineUnsupported(
            f"{engine} takes a draft model by repository or folder, and this one lies in "
            f"{drafter.subfolder}/ of {drafter.drafter_id or want.model}; download it and give "
            f"--drafter-path [{source}]"
        )
    return str(want.model_path / drafter.subfolder)


def refuse_gguf(plan: Plan, want: Deployment, said: str, source: str) -> None:
    """Refuse GGUF weights, which files are written for with llama.cpp only.

    Raises:
        EngineUnsupported: `said` (of the engine) GGUF weights.
    """
    quant = plan.best.quant
    if want.model.lower().endswith(".gguf") or quant.lower().startswith(_GGUF_KINDS):
        raise EngineUnsupported(
            f"{said} GGUF weights ({quant}); use --engine llama.cpp, or --quant fp8 or w4a16 "
            f"[{source}]"
        )


def refuse_experts(parts: Mapping[str, str], engine: str, source: str) -> None:
    """Refuse experts in host memory, where an engine moves weights by size.

    Raises:
        EngineUnsupported: the plan keeps some there.
    """
    if "experts" in parts:
        raise EngineUnsupported(
            f"{engine} moves weights to host memory by size and not by expert; use --engine "
            f"llama.cpp for experts in host memory [{source}]"
        )
