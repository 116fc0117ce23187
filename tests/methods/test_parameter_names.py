"""Unknown parameters: the names of other libraries and misspelled ones are answered with ours."""

import pickle

import pytest
from sklearn.base import clone
from support.methods import brief, every_method

import equipoise as eq
from equipoise.methods.parameter_names import FOREIGN, parameters_of


@pytest.mark.parametrize(
    ("Method", "name", "suggestion"),
    [
        (eq.UMAP, "n_epochs", "use n_iter"),
        (eq.UMAP, "perplexity", "use n_neighbors"),
        (eq.TSNE, "initialization", "use init"),
        (eq.TSNE, "n_neighbors", "use perplexity"),
        (eq.TSNE, "method", "use engine"),
        (eq.MDS, "dissimilarity", "use metric"),
        (eq.PCA, "seed", "use random_state"),
        (eq.TSNE, "perplxity", r"did you mean perplexity\?"),
        (eq.PCA, "dof", "its parameters are n_components"),
    ],
)
def test_unknown_parameters_raise_with_a_suggestion(Method, name, suggestion):
    with pytest.raises(TypeError, match=f"{Method.__name__} has no parameter '{name}'; {suggestion}"):
        Method(**{name: 1})


@every_method
def test_known_parameters_survive_cloning_and_pickling(Method):
    method = brief(Method)
    assert clone(method).get_params().keys() == method.get_params().keys()
    assert pickle.loads(pickle.dumps(method)).get_params().keys() == method.get_params().keys()


def test_subclasses_have_the_parameters_of_their_constructor():
    class Renamed(eq.TSNE):
        pass

    class Open(eq.TSNE):
        def __init__(self, **parameters):
            super().__init__(**parameters)

    assert Renamed(perplexity=5).perplexity == Open(perplexity=5).perplexity == 5
    with pytest.raises(TypeError, match="Renamed has no parameter 'n_epochs'; use n_iter"):
        Renamed(n_epochs=5)


def test_every_suggestion_is_a_parameter_of_a_method():
    known = {name for Method in (eq.TSNE, eq.UMAP, eq.MDS, eq.Isomap) for name in parameters_of(Method)}
    assert {ours for suggestions in FOREIGN.values() for ours in suggestions} <= known


def test_messages_name_the_class_of_an_object_and_not_its_address():
    class Heavy:
        pass

    with pytest.raises(
        ValueError, match=r"kernel must be an equipoise.kernels.Kernel or None, got an object of class Heavy$"
    ):
        eq.SymmetricSNE(kernel=Heavy()).problem([[0.0], [1.0], [2.0]])
