"""Several machines: here, several nodes of Ray with memory of their own."""

import pytest

from .own_process import run


def test_a_machine_is_lost_and_the_run_goes_on():
    pytest.importorskip("ray")
    printed = run(
        """
        import numpy as np
        import ray
        from ray.cluster_utils import Cluster as Machines

        import onlinefw as ofw

        small = {"num_cpus": 2, "object_store_memory": 100 * 2**20}
        first = {**small, "include_dashboard": False}
        machines = Machines(initialize_head=True, head_node_args=first)
        second = machines.add_node(**small)
        ray.init(address=machines.address, logging_level="ERROR", log_to_driver=False)


        def learn(workers, lost_at=None):
            rng = np.random.default_rng(0)
            objective = ofw.objectives.ObservedEntries((60, 40), dtype=float, workers=workers)
            learner = ofw.OnlineFrankWolfe(objective, ofw.sets.TraceNormBall(30.0))
            for round_ in range(20):
                if round_ == lost_at:
                    machines.remove_node(second)
                X = np.column_stack((rng.integers(60, size=80), rng.integers(40, size=80)))
                learner.observe(X, rng.standard_normal(80))
            return learner


        alone, spread = learn(None), learn(2, lost_at=9)
        np.testing.assert_allclose(spread.theta.dense(), alone.theta.dense(), atol=1e-10)
        print("restarts", spread.objective._past.shards.restarts)
        spread.objective.close()
        ray.shutdown()
        machines.shutdown()
        """
    )
    assert "restarts 1" in printed
