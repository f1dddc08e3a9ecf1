"""llama-server's flags, without the library that serves."""

from types import SimpleNamespace

import pytest

from autotune.engines.llama_server import parameters, parser
from planner.cli.launchable import launchable
from planner.search.question import Question


def library() -> SimpleNamespace:
    """The names of xllamacpp that are used."""
    speculative = {
        f"COMMON_SPECULATIVE_TYPE_{x}": x for x in ("NONE", "NGRAM_SIMPLE", "DRAFT_SIMPLE", "COUNT")
    }
    attention = {f"LLAMA_FLASH_ATTN_TYPE_{x}": x for x in ("ENABLED", "DISABLED", "AUTO")}
    return SimpleNamespace(
        CommonParams=lambda: SimpleNamespace(
            model=SimpleNamespace(),
            cpuparams=SimpleNamespace(),
            cpuparams_batch=SimpleNamespace(),
            speculative=SimpleNamespace(
                draft=SimpleNamespace(mparams=SimpleNamespace()), ngram_simple=SimpleNamespace()
            ),
        ),
        llama_load_mode=SimpleNamespace(LLAMA_LOAD_MODE_NONE="none"),
        llama_flash_attn_type=SimpleNamespace(**attention),
        ggml_type=SimpleNamespace(GGML_TYPE_F16=1, GGML_TYPE_Q8_0=8),
        common_speculative_type=SimpleNamespace(**speculative),
    )


@pytest.mark.parametrize("drafter", ["ngram", "external", "eagle3"])
def test_every_command_of_a_plan_is_understood(drafter: str) -> None:
    question = Question(
        "Qwen/Qwen3-8B",
        "4090",
        engine="llama.cpp",
        quant="Q4_K_M",
        drafter=drafter,
        calibration="none",
    )
    launch = launchable(question, must=True)[0].launch
    assert launch is not None
    assert len(launch.arms) > 2
    for argv in (launch.argv, *launch.arms.values()):
        assert argv[0] == "llama-server"
        given = parser().parse_args(argv[1:])
        assert given.metrics
        assert given.model.endswith(".gguf")


def test_flags_become_the_librarys_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLAMA_API_KEY", "k")
    words = "-m x.gguf --port 81 -ngl all -ctk q8_0 -fa on -np 3 --spec-type ngram-simple"
    words += " --spec-ngram-simple-size-n 3 --spec-ngram-simple-size-m 5 --spec-synth-rates 0.9,0.5"
    found = parameters(library(), parser().parse_args(words.split()))
    assert (found.model.path, found.port, found.n_gpu_layers, found.n_parallel) == (
        "x.gguf",
        81,
        -2,
        3,
    )
    assert (found.cache_type_k, found.cache_type_v, found.flash_attn_type) == (8, 1, "ENABLED")
    assert found.speculative.types == ["NGRAM_SIMPLE"]
    assert vars(found.speculative.ngram_simple) == {"size_n": 3, "size_m": 5}
    assert found.speculative.synth_rates == [0.9, 0.5]
    assert found.api_keys == ["k"]
    assert found.load_mode == "none"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("-m x --spec-type draft", "give one of draft-simple, ngram-simple, none"),
        ("-m x -ctk q9", "give one of f16, q8_0"),
        ("-m x -ngl many", "a number, all or auto"),
    ],
)
def test_values_that_are_not_known_end_with_those_that_are(words: str, said: str) -> None:
    with pytest.raises(SystemExit, match=said):
        parameters(library(), parser().parse_args(words.split()))


def test_a_flag_that_is_not_known_is_no_abbreviation(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parser().parse_args(["-m", "x", "--spec-ngram-simple-size", "3"])
    assert "unrecognized arguments" in capsys.readouterr().err
