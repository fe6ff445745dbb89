"""What came of candidates, on disk: written whole, and read again."""

from __future__ import annotations

from pathlib import Path

import pytest

from inductor_probe.errors import UnreadableError
from inductor_probe.model.bench import CALL, OTHER_CALL, BenchSettings
from inductor_probe.model.comparison import Comparison
from inductor_probe.model.flip import Flip, FlipResult
from inductor_probe.model.timing import Variant
from inductor_probe.model.whatif import WHATIF_NAME, Candidate, Trial, TrialReason, Turned
from inductor_probe.store.trials import read_trials, write_trials

X, Y = (Candidate(settings=((f"inductor.{name}", "1"),)) for name in "xy")
CALLS = Comparison(CALL, OTHER_CALL, 0.5, 0.49, 0.51, "FASTER", (0.5, 0.5, 0.5), 90, 0)


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    turned = Turned(("vectorisation",), "vectorised", ("cpp_fused_add_0",))
    trials = (
        Trial(X, "gain", "g", call=CALLS, turned=turned, looks=1),
        Trial(Y, "gain", "g", call=CALLS, turned=turned, looks=1, same_as=X),
        Trial(X | Y, "impossible", reason=TrialReason("script-failed", "ValueError: a")),
    )
    write_trials(tmp_path, trials, BenchSettings(), torch="2.13.0")
    assert read_trials(tmp_path, BenchSettings()) == trials
    assert read_trials(tmp_path, BenchSettings(margin=0.02)) == ()


KEPT = """
{"probe": "0.1.0", "torch": "2.13.0", "margin": 0.01, "threads": 1, "trials": [
  {"candidate": {"settings": {}, "knobs": {}, "variables": {}, "flips": [
     {"kind": "scalar", "subjects": ["op0"], "value": null, "graph": "g", "origins": [["add"]]}]},
   "rank": "undecided", "graph": "g",
   "call": {"baseline": "Compiled call", "candidate": "call_v3", "ratio": 0.5, "low": 0.49, "high": 0.51,
            "verdict": "FASTER", "process_ratios": [0.5, 0.5, 0.5], "quads": 90, "excluded": 0,
            "reason": null, "remarks": []},
   "kernel": null, "turned": {"kinds": ["vectorisation"], "outcome": "scalar", "names": ["k"]}, "looks": 1,
   "reason": null, "same_as": {"settings": {"inductor.x": "1"}, "knobs": {}, "variables": {}, "flips": []},
   "run": null, "file": null, "together": false},
  {"candidate": {"settings": {"inductor.x": "1"}, "knobs": {}, "variables": {}, "flips": []},
   "rank": "impossible", "graph": null, "call": null, "kernel": null, "turned": null, "looks": 0,
   "reason": {"code": "not-turned", "message": "", "subjects": [], "flips": [
     {"flip": {"kind": "scalar", "subjects": ["op0"], "value": null, "graph": "g", "origins": [["add"]]},
      "graph": "g", "outcome": "not-met", "reason": "no-subject", "times": 0, "place": null, "subjects": [],
      "before": null, "after": null, "operands": {"subject": "op0"}, "decision": null}], "wrong": []},
   "same_as": null, "run": null, "file": null, "together": false},
  {"candidate": {"settings": {"inductor.y": "1"}, "knobs": {}, "variables": {}, "flips": []},
   "rank": "wrong", "graph": "g", "call": null, "kernel": null, "turned": null, "looks": 1,
   "reason": {"code": "wrong-values", "message": "", "subjects": [], "flips": [], "wrong": [
     {"name": "B", "correct": false, "max_error": 1.0, "mismatches": 3, "elements": 9, "first_bad": null,
      "first_bad_output": null, "remarks": [], "unedited": false, "value": null, "expected": null}]},
   "same_as": null, "run": null, "file": null, "together": false}]}
"""


def test_a_file_that_was_kept_is_read_by_later_probes(tmp_path: Path) -> None:
    """Hours of timing are in such files: whoever changes a record sees here what must stay readable."""
    (tmp_path / WHATIF_NAME).write_text(KEPT)
    flip = Flip("scalar", ("op0",), None, "g", (("add",),))
    met = FlipResult(flip, "g", "not-met", "no-subject", operands=(("subject", "op0"),))
    wrong = Variant("B", correct=False, max_error=1.0, mismatches=3, elements=9)
    turned = Turned(("vectorisation",), "scalar", ("k",))
    assert read_trials(tmp_path, BenchSettings()) == (
        Trial(Candidate(flips=(flip,)), "undecided", "g", CALLS, turned=turned, looks=1, same_as=X),
        Trial(X, "impossible", reason=TrialReason("not-turned", flips=(met,))),
        Trial(Y, "wrong", "g", looks=1, reason=TrialReason("wrong-values", wrong=(wrong,))),
    )


@pytest.mark.parametrize("text", ["{", "[]", '{"trials": 3}', '{"probe": "", "trials": [{}]}'])
def test_what_is_of_another_form_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / WHATIF_NAME).write_text(text)
    with pytest.raises(UnreadableError, match=r"probe_whatif\.json cannot be read") as error:
        read_trials(tmp_path, BenchSettings())
    assert error.value.hint == "move it away, and each candidate is tried again"
    assert (tmp_path / WHATIF_NAME).read_text() == text
