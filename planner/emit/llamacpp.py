"""llama.cpp: a plan becomes a llama-server command, engine.json and a D schedule as advice."""

import json
from collections.abc import Mapping
from math import ceil

from planner.emit.arms import arms_of
from planner.emit.check import check, nearest
from planner.emit.deployment import Deployment, Drafter, offloaded
from planner.emit.downloads import ONLY_FOR_ARMS, drafter_download, target_download
from planner.emit.emitter import HOST, Method, RuleBoundEmitter, Written
from planner.emit.llamacpp_checks import predicates, settings_of, verify_rows
from planner.emit.names import file_stem
from planner.emit.records import EmittedFile
from planner.emit.remarks import catalog_name_note, room_left
from planner.emit.schedule import ScheduleForm
from planner.emit.script import command
from planner.errors import EngineUnsupported
from planner.search.records import Plan

_LOOKUP_NGRAM = 3
"""Tokens that ngram-simple matches; the planner's acceptance data were measured with 3."""
_UNSET = ("LLAMA_ARG_SPEC_", "LLAMA_ARG_DRAFT_")
"""Environment variables that would add a drafter to a command that has none."""
_OFF_GPU = ["-devd", "none"]


class LlamacppEmitter(RuleBoundEmitter):
    """Emitter for llama.cpp."""

    engine = "llama.cpp"
    port = 8080
    method = Method("speculative type", "common/speculative.cpp:71-83")
    cache_option = "-ctk"
    cache_types = "q8_0 (one byte an element) or f16"

    def written(self, plan: Plan, want: Deployment) -> Written:
        """The engine's own command, description and notes."""
        argv = self.argv(plan, want, want.draft_len)
        arms, skipped = arms_of(lambda n: self.argv(plan, want, n), want.arm_draft_lens)
        fetch = self._downloads(plan, want)
        return Written(
            argv=argv,
            config=EmittedFile("engine.json", self._description(want, argv)),
            schedule=ScheduleForm(
                "--spec-draft-n-max by -np slots; 0: start the arm `off`", in_config=False
            ),
            arms=arms,
            before=fetch,
            notes=(*fetch, *self._remarks(plan, want), *skipped),
            unset=_UNSET,
        )

    def argv(self, plan: Plan, want: Deployment, draft_len: int) -> tuple[str, ...]:
        """The checked command for a draft length; 0 holds no speculative flag at all."""
        step = int(self.rules.numbers["context_step"])
        slot = ceil(want.context_len / step) * step
        cache = self.cache_type(plan)
        argv = ["llama-server", "-m", self._target_file(plan, want), *_layers(plan), *_numa(plan)]
        argv += ["-c", str(slot * want.batch), "-np", str(want.batch), "-fa", "on"]
        argv += ["-ctk", cache, "-ctv", cache, "--fit", "off"]
        if plan.inputs.num_gpus > 1:
            argv += ["-sm", "layer", "-ts", ",".join(["1"] * plan.inputs.num_gpus)]
        if draft_len:
            argv += self._speculation(want, draft_len, _devices(plan))
        argv += self._batches(argv)
        argv += ["--host", HOST, "--port", str(self.port), "--metrics"]
        settings = settings_of(self.rules, argv[1:])
        check(self.rules, settings, self.facts(plan, want), predicates(self.rules))
        return tuple(argv)

    def _speculation(self, want: Deployment, draft_len: int, devices: list[str]) -> list[str]:
        drafter = self.drafter_of(want, draft_len)
        kind = self.method_of(drafter)
        self.refuse_parallel(drafter)
        if kind == "ngram-simple":
            sizes = ["--spec-ngram-simple-size-n", str(min(_LOOKUP_NGRAM, draft_len))]
            return ["--spec-type", kind, *sizes, "--spec-ngram-simple-size-m", str(draft_len)]
        flags: list[str] = []
        if _has_file(drafter):
            layers = "0" if devices == _OFF_GPU else "all"
            flags += ["-md", _draft_file(want, drafter), "-ngld", layers, *devices]
        return [*flags, "--spec-type", kind, "--spec-draft-n-max", str(draft_len)]

    def _batches(self, argv: list[str]) -> list[str]:
        """-b and -ub where the verification rows do not fit into the engine's defaults."""
        rows = verify_rows(settings_of(self.rules, argv[1:]))
        batch, ubatch = self.rules.numbers["default_batch"], self.rules.numbers["default_ubatch"]
        if rows <= ubatch:
            return []
        need = 1 << (rows - 1).bit_length()
        return ["-b", str(max(int(batch), need)), "-ub", str(need)]

    def _gguf_type(self, quant: str) -> str:
        """The GGUF type of the plan's weights."""
        name = self.rules.names["gguf"].get(quant.lower(), quant.upper())
        known = self.rules.lists["gguf_types"]
        if name in known or name.startswith("UD-") or name.endswith("_XL"):
            return name
        other = self.rules.names["nearest_gguf"].get(quant.lower()) or nearest(name, known)
        raise EngineUnsupported(
            f"{self.title} stores no {quant} weights; use --quant {other} "
            "[tools/quantize/quantize.cpp, QUANT_OPTIONS]"
        )

    def _target_file(self, plan: Plan, want: Deployment) -> str:
        if want.model.lower().endswith(".gguf") and want.model_path:
            return want.model
        kind = file_stem(self._gguf_type(plan.best.quant))
        return f"models/{_gguf_stem(want.model)}-{kind}.gguf"

    def _downloads(self, plan: Plan, want: Deployment) -> tuple[str, ...]:
        """Commands that fetch and convert the target and the drafter."""
        target = self._target_file(plan, want)
        source = str(want.model_path) if want.model_path else f"models/hf/{file_stem(want.model)}"
        lines: list[str] = []
        kind = "" if target == want.model else self._gguf_type(plan.best.quant)
        if kind and want.model_path is None and _is_gguf_repository(want.model):
            lines.append(_fetch_gguf(want.model, f"*{kind}*"))
        elif kind:
            if want.model_path is None:
                lines.append(target_download(plan, want.model, "--local-dir", source))
            lines += _convert(source, target, kind)
        drafter = want.drafter
        if drafter and drafter.exists and _has_file(drafter):
            only = "" if want.draft_len else ONLY_FOR_ARMS
            lines += [only + line for line in _draft_downloads(plan, want, source)]
        return tuple(lines)

    def _description(self, want: Deployment, argv: tuple[str, ...]) -> str:
        drafter = want.drafter if want.draft_len else None
        record = {
            "schema_version": 1,
            "engine": self.rules.engine,
            "engine_version": self.rules.version,
            "rules_read_at": self.rules.read_at,
            "model": want.model,
            "drafter": {"family": drafter.family, "id": drafter.drafter_id} if drafter else None,
            "settings": settings_of(self.rules, argv[1:]),
            "argv": list(argv),
        }
        return json.dumps(record, indent=1) + "\n"

    def _remarks(self, plan: Plan, want: Deployment) -> tuple[str, ...]:
        notes = [
            f"build llama.cpp at tag {self.rules.version}; other versions spell the speculative "
            "flags differently",
            "the draft length cannot be changed while the server runs: use the arms of plan.json "
            "or schedule.json and restart",
            *_file_notes(plan, want, self.rules.names["gguf"]),
        ]
        if want.drafter is not None:
            notes += _drafter_notes(want, want.drafter)
        if plan.inputs.drafter_device_kind == "gpu":
            notes.append(
                "CUDA numbers follow llama-server --list-devices: the target's cards come first, "
                f"the drafter's ({plan.inputs.drafter_device}) after them "
                "[common/arg.cpp:2741, 4238]"
            )
        if _numa(plan):
            notes.append(
                "two sockets: --numa distribute spreads the threads over both; drop the page cache "
                "before the first start, so that each node reads its own pages "
                f"[{self.rules.options['--numa'].source}]"
            )
        held = "-c holds the plan's context"
        return (*notes, *room_left(plan, want, held, self.rules.rule("slot-context").source))


def _devices(plan: Plan) -> list[str]:
    """Where the drafter runs, where that is not beside the target.

    The target keeps to the first cards and the drafter takes the next one.
    """
    if plan.inputs.drafter_device_kind is None:
        return []
    if plan.inputs.drafter_device_kind == "cpu":
        return _OFF_GPU
    count = plan.inputs.num_gpus
    return ["-dev", ",".join(f"CUDA{i}" for i in range(count)), "-devd", f"CUDA{count}"]


def _layers(plan: Plan) -> list[str]:
    """GPU layers and what stays in host memory.

    `layers=N/TOTAL` becomes -ngl TOTAL+1-N (the output counts as one layer,
    src/llama-model.cpp:1591); without the total, the first N blocks are pinned by name.
    """
    parts = offloaded(plan)
    flags = ["-ngl", "all"]
    if "layers" in parts:
        host, _, total = parts["layers"].partition("/")
        if host == "all":
            flags = ["-ngl", "0"]
        elif total:
            flags = ["-ngl", str(max(0, int(total) + 1 - int(host)))]
        elif int(host) > 0:
            blocks = "|".join(str(i) for i in range(int(host)))
            flags += ["-ot", rf"blk\.({blocks})\.=CPU"]
    if "experts" in parts:
        count = parts["experts"].partition("/")[0]
        flags += ["--cpu-moe"] if count == "all" else ["--n-cpu-moe", count]
    return flags


def _numa(plan: Plan) -> list[str]:
    """Threads over both sockets, where layers or experts lie in the memory of two."""
    two = (plan.inputs.host_sockets or 1) > 1
    return ["--numa", "distribute"] if two and offloaded(plan) else []


def _is_gguf_repository(hub_id: str) -> bool:
    return hub_id.lower().endswith("-gguf")


def _fetch_gguf(hub_id: str, pattern: str) -> str:
    """Download of converted files; which of them it is, only the repository tells."""
    fetch = ("hf", "download", hub_id, "--include", f"{pattern}.gguf", "--local-dir", "models")
    return command(fetch)


def _gguf_stem(name: str) -> str:
    """File stem without the -GGUF that repositories add to the model's name."""
    stem = file_stem(name)
    return stem[: -len("-gguf")] if _is_gguf_repository(stem) else stem


def _has_file(drafter: Drafter) -> bool:
    """Whether the drafter is a GGUF of its own; MTP inside the target's GGUF is not."""
    if drafter.family == "ngram":
        return False
    return drafter.family != "mtp" or not drafter.in_checkpoint


def _draft_file(want: Deployment, drafter: Drafter) -> str:
    if drafter.drafter_id.lower().endswith(".gguf"):
        return drafter.drafter_id
    if drafter.drafter_id:
        # A draft may have the target's own name under another owner.
        same = _gguf_stem(drafter.drafter_id) == _gguf_stem(want.model)
        name = _gguf_stem(drafter.drafter_id) + ("-draft" if same else "")
    else:
        name = f"{file_stem(want.model)}-{drafter.family}"
    return f"models/{name}-{_draft_type(drafter)}.gguf"


def _draft_type(drafter: Drafter) -> str:
    """GGUF type of the drafter, from the bits that the plan counted on."""
    if drafter.core_bits >= 12:
        return "BF16"
    return "Q8_0" if drafter.core_bits >= 7 else "Q4_K_M"


def _convert(source: str, target: str, kind: str, *extra: str) -> list[str]:
    """Commands from a Hugging Face folder to a GGUF of the given type."""
    script = ("python", "convert_hf_to_gguf.py", source, *extra)
    if kind in ("BF16", "F16", "F32", "Q8_0"):
        return [command((*script, "--outtype", kind.lower(), "--outfile", target))]
    wide = target.removesuffix(f"-{kind}.gguf") + "-BF16.gguf"
    return [
        command((*script, "--outtype", "bf16", "--outfile", wide)),
        command(("llama-quantize", wide, target, kind)),
    ]


def _draft_downloads(plan: Plan, want: Deployment, target_source: str) -> list[str]:
    drafter = want.drafter
    assert drafter is not None  # noqa: S101 - asked for where there is one
    path = drafter.drafter_id
    if path.lower().endswith(".gguf"):
        return []
    lines: list[str] = []
    source = path
    if drafter.on_hub and _is_gguf_repository(path):
        return [_fetch_gguf(path, "*")]
    if drafter.on_hub:
        source = f"models/hf/draft/{file_stem(path)}"
        lines.append(drafter_download(plan, path, "--local-dir", source))
    elif not path:
        source = target_source
    source = f"{source}/{drafter.subfolder}".rstrip("/")
    own_tokenizer = drafter.family == "external"
    extra = () if own_tokenizer else ("--target-model-dir", target_source)
    return lines + _convert(source, _draft_file(want, drafter), _draft_type(drafter), *extra)


def _file_notes(plan: Plan, want: Deployment, formats: Mapping[str, str]) -> list[str]:
    """What to know of the names and formats of the files; `formats`: the plan's -> GGUF's."""
    notes = []
    drafter = want.drafter.drafter_id if want.drafter else ""
    if any(_is_gguf_repository(name) for name in (want.model, drafter)):
        notes.append("repositories name their GGUF files as they like: adapt the file names")
    notes += catalog_name_note(want)
    quant = plan.best.quant
    native = formats.get(quant.lower())
    if native and native != quant.upper():
        notes.append(f"the plan counts on {quant}, which a GGUF holds as {native}")
    if quant.upper().startswith("UD-") or quant.upper().endswith("_XL"):
        notes.append(f"{quant} is published by others and not made by llama-quantize")
    return notes


def _drafter_notes(want: Deployment, drafter: Drafter) -> list[str]:
    notes = []
    if drafter.family == "mtp" and drafter.in_checkpoint:
        notes.append("the target's GGUF must keep its MTP tensors; some converted files drop them")
    if drafter.family == "external":
        notes.append("draft and target need compatible vocabularies [common/speculative.cpp:106]")
    if want.draft_len:
        notes.append(_other_front_ends(drafter))
    return notes


def _other_front_ends(drafter: Drafter) -> str:
    """What programs around llama.cpp do with such a drafter."""
    if drafter.family == "external":
        studio = "LM Studio takes the pair (draftModel) but no draft length"
    else:
        studio = f"LM Studio documents draft models only, not {drafter.family}"
    return (
        f"{studio} [lmstudio.ai/docs, Speculative Decoding]; Ollama hands llama.cpp no drafter "
        "[github.com/ollama/ollama/issues/5800]"
    )
