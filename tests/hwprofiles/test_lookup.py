from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hwprofiles.errors import InputError
from hwprofiles.load import DATA, load_gpu, load_host
from hwprofiles.lookup import GpuMatch, HostMatch, find_gpu, find_host, refuse_far_apart

GPU_IDS = sorted(path.stem for path in (DATA / "gpus").glob("*.yaml"))
HOST_IDS = sorted(path.stem for path in (DATA / "hosts").glob("*.yaml"))

WRITTEN = {
    "4090": "nvidia-rtx-4090",
    "NVIDIA GeForce RTX 4090": "nvidia-rtx-4090",
    "rtx 4090 48g": "nvidia-rtx-4090-48gb-modded",
    "4090 modded": "nvidia-rtx-4090-48gb-modded",
    "RTX 3090 24GB": "nvidia-rtx-3090",
    "H100 SXM": "nvidia-h100-sxm-80gb",
    "NVIDIA H100 80GB HBM3": "nvidia-h100-sxm-80gb",
    "H100 (not stated in excerpt)": "nvidia-h100-sxm-80gb",
    "H100 / gfx950": "nvidia-h100-sxm-80gb",
    "RTX PRO 6000 Blackwell Max-Q 96GB": "nvidia-rtx-pro-6000-blackwell-max-q",
    "RTX PRO 6000 Server": "nvidia-rtx-pro-6000-blackwell-server",
    "RTX PRO 6000 class SM120": "nvidia-rtx-pro-6000-blackwell",
    "NVIDIA RTX PRO 6000 Blackwell Workstation Edition": "nvidia-rtx-pro-6000-blackwell",
    "DGX Spark": "nvidia-dgx-spark-gb10",
    "DGX Spark GB10": "nvidia-dgx-spark-gb10",
    "5060 Ti 16G": "nvidia-rtx-5060-ti-16gb",
    "5060 Ti 8G": "nvidia-rtx-5060-ti-8gb",
    "Tesla V100 32GB": "nvidia-v100-sxm2-32gb",
    "Tesla V100-PCIE-16GB": "nvidia-v100-pcie-16gb",
    "RTX 2080 Ti 22GB (modified)": "nvidia-rtx-2080-ti-22gb-modded",
    "RTX 4080 SUPER 32GB (modified)": "nvidia-rtx-4080-super-32gb-modded",
    "NVIDIA A100-SXM4-40GB": "nvidia-a100-sxm-40gb",
    "NVIDIA A100 80GB PCIe": "nvidia-a100-pcie-80gb",
    "PCIe A100 80GB": "nvidia-a100-pcie-80gb",
    "A100 80GB": "nvidia-a100-sxm-80gb",
    "A100": "nvidia-a100-sxm-80gb",
    "L40S": "nvidia-l40s",
    "2080ti22g": "nvidia-rtx-2080-ti-22gb-modded",
    "4090-48g": "nvidia-rtx-4090-48gb-modded",
    "RTX5060Ti 16GB": "nvidia-rtx-5060-ti-16gb",
    "A10G": "nvidia-a10g",
    "H100 PCIe Gen5": "nvidia-h100-pcie-80gb",
    "RTX 6000 Pro": "nvidia-rtx-pro-6000-blackwell",
    "MSI GeForce RTX 3090 24 GB GDDR6X": "nvidia-rtx-3090",
    "Mac Studio M3 Ultra 256GB": "apple-m3-ultra",
    "H20": "nvidia-h20-96gb",
    "NVIDIA GH200 480GB": "nvidia-gh200-96gb",
    "NVIDIA GeForce RTX 3080 Ti Laptop GPU": "nvidia-rtx-3080-ti-laptop",
    "NVIDIA RTX 6000 Ada Generation": "nvidia-rtx-6000-ada",
    "rtx 6000 96gb": "nvidia-rtx-pro-6000-blackwell",
    "B200": "nvidia-b200-sxm",
    "B300": "nvidia-b300-sxm",
    "GB200": "nvidia-gb200",
    "GB300": "nvidia-gb300",
    "GTX 1080 Ti 11GB": "nvidia-gtx-1080-ti",
    "7900 XTX": "amd-rx-7900-xtx",
    "AMD Instinct (MI355X class)": "amd-mi355x",
    "Ryzen AI MAX+ 395 (Strix Halo)": "amd-radeon-8060s",
    "Radeon 890M (gfx1150, UMA)": "amd-radeon-890m",
}


def outcome(find: Callable[[str], GpuMatch | HostMatch], text: str) -> str:
    """Name of the match or message of the `InputError`; anything else that is raised is a bug."""
    try:
        return find(text).name
    except InputError as error:
        message = str(error)
    return message if len(message) < 700 else ""


@pytest.mark.parametrize(("text", "gpu_id"), WRITTEN.items())
def test_gpu_as_people_write_it(text: str, gpu_id: str) -> None:
    assert find_gpu(text).gpu_id == gpu_id


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("2x3090", 2),
        ("2 x RTX 3090", 2),
        ("3090 x2", 2),
        ("4 * RTX A4000", 4),
        ("8xH100", 8),
        ("8 H100", 8),
        ("quad 3090", 4),
        ("3090 + 3090", 2),
        ("2\u00d7 RTX 3090", 2),
        ("RTX 3090 (2x)", 2),
        ("RTX 3090 24GB (PCIe 4.0 x4)", None),
        ("4x RTX 3090 24GB (PCIe 4.0 x8)", 4),
        ("2x RTX 3090 w/ NVLink", 2),
        ("7900 xt", None),
        ("3090", None),
    ],
)
def test_count(text: str, count: int | None) -> None:
    assert find_gpu(text).count == count


@pytest.mark.parametrize(
    ("text", "watts"),
    [
        ("RTX 5090 32GB @ 400W", 400),
        ("RTX 5090 32GB (400 W cap)", 400),
        ("RTX 3090 Ti 24GB @150W", 150),
        ("4090 450 watts", 450),
        ("RTX 5090 32GB", None),
    ],
)
def test_power_limit(text: str, watts: float | None) -> None:
    assert find_gpu(text).power_limit_w == watts


def test_memory_of_all_cards_together_is_shared_out() -> None:
    match = find_gpu("2x RTX 3090 48GB")
    assert (match.gpu_id, match.vram_mib_stated) == ("nvidia-rtx-3090", 24 * 1024)
    assert "sum over 2" in match.note


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("A100", "A100 PCIe 40GB"),
        ("A100 80GB", "A100 PCIe 80GB"),
        ("h100", "H100 NVL 94GB"),
        ("v100", "V100S PCIe 32GB"),
        ("rtx 6000", "Quadro RTX 6000"),
        ("pro 6000", "RTX PRO 6000 Blackwell Max-Q"),
        ("4090", "RTX 4090 48GB (modded)"),
        ("5060 ti", "RTX 5060 Ti 8GB"),
        ("orin", "Jetson Orin Nano Super"),
        ("5090 d", "RTX 5090 D V2"),
    ],
)
def test_shared_names_take_the_default_and_say_so(text: str, other: str) -> None:
    match = find_gpu(text)
    assert other in match.alternatives
    assert other in match.note


def test_stated_memory_leaves_only_the_boards_that_have_it() -> None:
    assert find_gpu("A100 80GB").alternatives == ("A100 PCIe 80GB",)
    assert find_gpu("RTX 4090 24GB").note == ""


@pytest.mark.parametrize(
    ("text", "asks"),
    [
        ("32 GB GPU", "names no GPU"),
        ("Blackwell", "family"),
        ("Ascend", "family"),
        ("Ascend NPU", "family"),
        ("Apple (MLX)", "family"),
        ("a6000 ada", "RTX 6000 Ada or RTX A6000"),
        ("rtx a6000 48gb ada", "contradicts"),
        ("3090 + A4000", "several devices"),
        ("RTX 3090 24GB (+3060 12GB)", "several devices"),
        ("RTX 3090 24GB + RTX A4000 16GB", "several devices"),
        ("Ryzen AI Max+ 395 (CPU)", "processor"),
        ("none (CPU only)", "processor"),
        ("not stated (3 CUDA devices)", "no known GPU"),
        ("RTX 3090 48GB", "no profile of RTX 3090 has 48 GB"),
        ("RTX 4O90", "did you mean RTX 4090"),
        ("0x 3090", "1 to 999"),
        ("", "1 to 200"),
        ("   ", "1 to 200"),
        ("9" * 300, "1 to 200"),
        ("any", "names no GPU"),
    ],
)
def test_what_does_not_decide_it_is_asked(text: str, asks: str) -> None:
    with pytest.raises(InputError, match=asks):
        find_gpu(text)


def test_name_of_a_match_finds_the_same_profile() -> None:
    for gpu_id in GPU_IDS:
        again = find_gpu(load_gpu(gpu_id).name.upper())
        assert (again.gpu_id, again.count, again.power_limit_w) == (gpu_id, None, None)


def test_ids_are_names_too() -> None:
    assert [find_gpu(gpu_id).gpu_id for gpu_id in GPU_IDS] == GPU_IDS
    assert [find_host(host_id).host_id for host_id in HOST_IDS] == HOST_IDS


def test_strangers_cannot_make_us_read_a_file() -> None:
    for find in (find_gpu, find_host):
        with pytest.raises(InputError, match="names no known"):
            find("/etc/h100-99.yaml", own_files=False)


def test_every_name_and_alias_finds_its_own_profile() -> None:
    wrong = []
    for gpu_id in GPU_IDS:
        profile = load_gpu(gpu_id)
        for text in (profile.name, *profile.aliases):
            if find_gpu(text).gpu_id != gpu_id:
                wrong.append((text, gpu_id))
    assert wrong == []


def test_every_host_name_and_alias_finds_its_own_profile() -> None:
    wrong = []
    for host_id in HOST_IDS:
        profile = load_host(host_id)
        for text in (profile.name, *profile.aliases):
            if find_host(text).host_id != host_id:
                wrong.append((text, host_id))
    assert wrong == []


@given(st.sampled_from(sorted(WRITTEN)), st.randoms(use_true_random=False))
def test_case_and_spacing_do_not_matter(text: str, random: object) -> None:
    changed = "".join(
        char.swapcase() if random.random() < 0.5 else char  # type: ignore[attr-defined]
        for char in text
    )
    spaced = f"  {changed.replace(' ', '   ')}\t"
    assert find_gpu(spaced).gpu_id == find_gpu(text).gpu_id


@given(st.text(max_size=220))
def test_any_text_is_a_gpu_or_an_input_error(text: str) -> None:
    if text.lower().endswith((".yaml", ".yml")):
        return
    assert outcome(find_gpu, text)


WORDS = """
rtx 4090 3090 a100 h100 ti super laptop 80gb 24g 2x x2 + / ( ) @ 400w max-q ada pro 6000 blackwell
modded pcie sxm 0x 99999x gb10 apple cpu - , & and 1e9 0gb .5gb 0w
"""
PIECES = st.sampled_from(WORDS.split())


@given(st.lists(PIECES, min_size=1, max_size=7))
def test_any_mix_of_words_is_a_gpu_or_an_input_error(words: list[str]) -> None:
    for find in (find_gpu, find_host):
        assert outcome(find, " ".join(words))


@given(st.text(max_size=220))
def test_any_text_is_a_host_or_an_input_error(text: str) -> None:
    if text.lower().endswith((".yaml", ".yml")):
        return
    assert outcome(find_host, text)


@pytest.mark.parametrize(
    ("text", "host_id"),
    [
        ("Ryzen 5 5600, 32 GB", "ryzen-5-5600-ddr4-3200"),
        ("Ryzen 9 8945HS, experts on CPU", "ryzen-9-8945hs-ddr5-5600"),
        ("Ryzen 9 9950X, 128 GB", "ryzen-9-9950x-ddr5-5600"),
        ("Ryzen AI 9 HX 470, 57 GiB UMA", "ryzen-ai-9-hx-470-lpddr5x"),
        ("dual EPYC 7642", "dual-epyc-7642-16ch-ddr4"),
        ("W-3345", "xeon-w-3345-ddr4-3200"),
        ("DDR5-4800", "desktop-ddr5-4800-dual-channel"),
        ("some board, DDR5-4800", "desktop-ddr5-4800-dual-channel"),
    ],
)
def test_host_as_people_write_it(text: str, host_id: str) -> None:
    assert find_host(text).host_id == host_id


def test_host_memory_and_channels_are_read() -> None:
    match = find_host("Threadripper PRO 5975WX, 512 GB, 4 channels")
    assert match.ram_mib_stated == 512 * 1024


@pytest.mark.parametrize(
    "text", ["768 GB RAM, EPYC class", "CPU not stated", "offload", "Ryzen 7 7700X DDR5-5600"]
)
def test_unknown_host_is_asked(text: str) -> None:
    with pytest.raises(InputError, match="names no known host"):
        find_host(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("4091", "did you mean RTX 4090"),
        ("EPYC 7302P", "names a processor; give the GPU here"),
        ("0x4090", "number of GPUs must be 1 to 999"),
    ],
)
def test_a_near_miss_says_what_to_write(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        find_gpu(text)


@pytest.mark.parametrize(
    ("row", "gpu_id", "mib"),
    [
        ("NVIDIA GeForce RTX 4090, 49140", "nvidia-rtx-4090-48gb-modded", 49140),
        ("NVIDIA GeForce RTX 3080, 20480 MiB", "nvidia-rtx-3080-20gb-modded", 20480),
        ("NVIDIA GeForce RTX 5090, 32607", "nvidia-rtx-5090", 32607),
        ("NVIDIA GB10, [N/A], 580.126.09", "nvidia-dgx-spark-gb10", None),
        (
            "NVIDIA RTX PRO 6000 Blackwell, 97887, 590.42, [N/A], [Not Supported], 14001",
            "nvidia-rtx-pro-6000-blackwell",
            97887,
        ),
    ],
)
def test_rows_of_the_drivers_own_table(row: str, gpu_id: str, mib: int | None) -> None:
    """Rows that owners posted (nvidia-smi --query-gpu=... --format=csv)."""
    found = find_gpu(row)
    assert (found.gpu_id, found.vram_mib_stated) == (gpu_id, mib)


@pytest.mark.parametrize("row", ["memory.total [MiB], memory.used [MiB]", "[N/A], [N/A]", ", 4096"])
def test_a_row_without_a_card_names_none(row: str) -> None:
    with pytest.raises(InputError):
        find_gpu(row)


def test_cards_between_commas_are_to_be_repeated() -> None:
    with pytest.raises(InputError, match='repeat --gpu to compare them: --gpu "4090" --gpu "5090"'):
        find_gpu("4090,5090")
    with pytest.raises(InputError, match='write "2xRTX 4090"'):
        find_gpu("4090, 4090")
    assert find_gpu("NVIDIA GeForce RTX 4090, 24564").gpu_id == "nvidia-rtx-4090"


@pytest.mark.parametrize("text", ["RTX 6000", "2x rtx 6000"])
def test_a_name_of_boards_far_apart_is_refused_with_all_of_them(text: str) -> None:
    with pytest.raises(InputError, match=r"2\.7x in bandwidth.*Ada, Quadro RTX 6000.*Blackwell"):
        refuse_far_apart(text, find_gpu(text))


@pytest.mark.parametrize("text", ["RTX 6000 48GB", "RTX 6000 Ada", "h100", "a100", "4090"])
def test_boards_of_one_kind_are_taken_for_each_other(text: str) -> None:
    refuse_far_apart(text, find_gpu(text))
