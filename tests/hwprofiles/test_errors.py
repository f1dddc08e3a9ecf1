from hwprofiles.errors import LONGEST_MESSAGE, InputError


def test_a_message_keeps_its_beginning_and_its_next_step() -> None:
    whole = f"start {'x' * 1_000_000} next step"
    said = str(InputError(whole))
    assert said.startswith("start x")
    assert said.endswith("x next step")
    assert f"{len(whole) - LONGEST_MESSAGE} characters left out" in said
    assert len(said) < LONGEST_MESSAGE + 100
    assert str(InputError("short")) == "short"
