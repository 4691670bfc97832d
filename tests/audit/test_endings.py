"""Targets that go on where an episode ends, as `endings` reads them in a script."""

import pytest

from course_utils.audit.endings import endless_targets
from course_utils.audit.source import tree_of

_SCRIPT = """
for episode in range(9):
    s, done, t = 0, False, 0
    while not done and t < 50:
        a = random.randrange(2)
        s2, r, done = env_step(s, a)
        buffer.append((s, a, r, s2, float(done)))
        s, t = s2, t + 1
        S, A, R, S2, Dn = (torch.tensor(c) for c in zip(*random.sample(buffer, 32)))
        y = R + gamma * {} * target(one_hot(S2.tolist())).max(1).values
        loss = F.mse_loss(q(one_hot(S.tolist())).gather(1, A[:, None]).squeeze(1), y)
"""


@pytest.mark.parametrize(
    ("factor", "told"), [("(1 - Dn)", []), ("(1.0 - Dn)", []), ("0.5", ["done"]), ("(1 - gamma)", ["done"])]
)
def test_what_is_taken_from_one_ends_an_episode_whatever_its_name(tmp_path, factor, told):
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT.format(factor))
    tree = tree_of(str(script))
    assert [it.flag for it in endless_targets(str(script), tree)] == told
