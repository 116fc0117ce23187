"""The tests of equations of docs/math.md that tests/test_math_page.py does not check itself."""

from __future__ import annotations

ELSEWHERE = {
    "G1": "objectives/test_autograd.py::test_autograd_matches_the_closed_form",
    "G2": "objectives/test_autograd.py::test_autograd_matches_the_closed_form",
    "V1": "objectives/test_more_divergences.py::test_renyi_is_a_function_of_alpha",
    **{
        f"V{number}": "objectives/test_more_divergences.py::test_loss_is_the_plain_formula_and_forces_its_gradient"
        for number in range(2, 8)
    },
    "D3": "objectives/test_pair_objective.py::test_loss_is_the_stated_sum_and_gradient_its_derivative",
    "D4": "objectives/test_pair_objective.py::test_loss_is_the_stated_sum_and_gradient_its_derivative",
    "D5": "objectives/test_pair_objective.py::test_contrastive_loss_becomes_t_sne_with_many_negatives",
    "E1": "spaces/test_embeddability.py::test_euclidean_data_have_no_bound_in_their_dimension",
    "E2": "spaces/test_embeddability.py::test_identity_e2",
    "E3": "spaces/test_embeddability.py::test_bound_in_any_dimension_is_the_minimum",
    "E4": "spaces/test_embeddability.py::test_bound_in_any_dimension_is_the_minimum",
    "E5": "spaces/test_embeddability.py::test_no_map_beats_the_bounds",
    "E6": "spaces/test_embeddability.py::test_gap_e6_is_below_every_map_and_exact_in_all_dimensions",
    "E7": "spaces/test_embeddability.py::test_no_map_beats_the_bounds",
    "E8": "spaces/test_embeddability.py::test_closed_forms_of_distortion",
    "E9": "spaces/test_embeddability.py::test_no_map_beats_the_bounds",
    "E10": "spaces/test_embeddability.py::test_closed_forms_of_distortion",
    "E11": "spaces/test_comparisons.py::test_gromov_wasserstein_lies_above_its_lower_bounds",
    "A1": "affinities/test_fixed_kernels.py::test_affinities_match_the_closed_form",
    "A2": "affinities/test_random_walk.py::test_absorbing_markov_chain",
    "K1": "affinities/test_feature_kernels.py::test_pca_equals_classical_scaling_of_kernel_distances",
    "T1": "spaces/test_parallel_transport.py::test_flat_sheets_in_space_are_exact",
    "W1": "methods/test_learned_metric.py::test_losses_match_their_definitions",
    "W2": "methods/test_learned_metric.py::test_losses_match_their_definitions",
    "W3": "methods/test_learned_metric.py::test_gradients_match_finite_differences",
    "R1": "optimize/test_remaining_gain.py::test_gain_of_a_hyperbola_is_exact",
    "N1": "optimize/test_dynamics.py::test_harmonic_oscillator_matches_its_closed_form",
    "N2": "optimize/test_dynamics.py::test_energy_decreases_with_friction",
    "N3": "optimize/test_dynamics.py::test_leapfrog_has_its_known_frequency",
    "S1": "methods/test_mds_residuals.py::test_loss_and_forces_match_the_formula",
    "S2": "methods/test_mds_residuals.py::test_gradient_matches_finite_differences",
    "S3": "methods/test_mds_worst_case.py::test_loss_is_the_p_norm_of_the_residuals",
    "S4": "methods/test_mds_worst_case.py::test_bound_holds_for_random_spaces_and_is_zero_where_they_fit",
    "S5": "methods/test_mds_worst_case.py::test_bound_holds_for_random_spaces_and_is_zero_where_they_fit",
    "S6": "methods/test_mds_worst_case.py::test_bound_holds_for_random_spaces_and_is_zero_where_they_fit",
    "L1": "evaluate/test_local_isometry.py::test_linear_map_has_its_own_singular_values_everywhere",
    "L2": "evaluate/test_local_isometry.py::test_scaling_multiplies_all_measures",
    "L3": "evaluate/test_local_isometry.py::test_scaling_multiplies_all_measures",
    "L4": "evaluate/test_local_isometry.py::test_loadings_of_a_linear_map_are_its_matrix_times_the_deviations",
}
